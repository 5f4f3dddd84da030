"""Faults on demand, and what clients see of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.embedded.objects import config_map, pod
from tests.worlds.embedded.server import Http, ServerThread, http_of

from navarch.embedded.api.server import ApiServer

pytestmark = pytest.mark.live
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def api(thread: ServerThread, tmp_path: Path) -> Iterator[Http]:
    assert thread.server is not None
    client = http_of(thread.server, tmp_path)
    yield client
    client.close()


def revision(obj: dict[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


def test_a_cut_watch_ends_and_can_be_taken_up_again(thread: ServerThread, api: Http) -> None:
    assert thread.server is not None
    since = revision(api.get(MAPS).body)
    with api.watch(MAPS, resourceVersion=since) as events:
        api.post(MAPS, config_map("a"))
        seen = [next(events)]
        assert thread.run(thread.server.faults.cut_watches) == 1
        seen += list(events)
    api.post(MAPS, config_map("b"))
    with api.watch(MAPS, resourceVersion=revision(seen[-1]["object"])) as events:
        seen.append(next(events))
    assert [event["object"]["metadata"]["name"] for event in seen] == ["a", "b"]


def test_expired_history_is_410_for_watches_exact_lists_and_pages(thread: ServerThread, api: Http) -> None:
    assert thread.server is not None
    for name in "abcd":
        api.post(MAPS, config_map(name))
    first = api.get(MAPS, limit=2).body
    old = revision(first)
    api.post(MAPS, config_map("e"))
    thread.run(thread.server.faults.expire_history)
    with api.watch(MAPS, resourceVersion=old) as events:
        event = next(events)
    assert event["type"] == "ERROR" and (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith(f"too old resource version: {old} (")
    exact = api.get(MAPS, resourceVersion=old, resourceVersionMatch="Exact")
    assert (exact.code, exact.reason) == (410, "Expired")
    page = api.get(MAPS, limit=2, **{"continue": first["metadata"]["continue"]})
    assert (page.code, page.reason) == (410, "Expired")
    inconsistent = page.body["metadata"]["continue"]
    rest = api.get(MAPS, limit=9, **{"continue": inconsistent}).body
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c", "d", "e"]


def test_errors_at_a_rate_come_in_the_same_order_for_the_same_seed(thread: ServerThread, api: Http) -> None:
    assert thread.server is not None
    faults = thread.server.faults

    def codes() -> list[int]:
        faults.errors(503, path="/configmaps", rate=0.5, seed=7)
        found = [api.get(MAPS).code for _ in range(20)]
        faults.clear()
        return found

    first = codes()
    assert first == codes() and set(first) == {200, 503}


def test_a_limited_number_of_errors_with_retry_after(thread: ServerThread, api: Http) -> None:
    assert thread.server is not None
    thread.server.faults.errors(429, path="/binding", times=1, retry_after=1)
    api.post(PODS, pod("a"))
    body = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    refused = api.post(f"{PODS}/a/binding", body)
    assert (refused.code, refused.reason, refused.headers["Retry-After"]) == (429, "TooManyRequests", "1")
    assert api.post(f"{PODS}/a/binding", body).code == 201
    assert thread.server.faults.struck == 1


def test_a_restart_drops_connections_and_keeps_port_and_data(thread: ServerThread, api: Http) -> None:
    assert thread.server is not None
    api.post(MAPS, config_map("kept"))
    url = thread.server.url
    with api.watch(MAPS) as events:
        next(events)
        thread.run(thread.server.faults.restart)
        assert list(events) == []
    assert thread.server.url == url
    assert api.get(f"{MAPS}/kept").code == 200


def test_a_reader_that_does_not_read_is_cut_off(thread: ServerThread, api: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    assert thread.server is not None
    server = thread.server
    monkeypatch.setattr("navarch.embedded.api.output.watch_stream.BEHIND_LIMIT", 20)
    since = revision(api.get(MAPS).body)
    with api.watch(MAPS, resourceVersion=since) as events:

        def flood() -> bool:
            kind = server.operations.kind("configmaps")
            for index in range(60):  # in one turn of the loop: the reader has no chance
                server.operations.create(kind, "default", config_map(f"m-{index}"))
            return any(watch.is_remote for watch in server.store.watches())

        assert thread.run(flood) is False
        assert len(list(events)) < 60
    assert api.get(f"{MAPS}/m-59").code == 200


def test_it_listens_on_loopback_only() -> None:
    with pytest.raises(ValueError, match="loopback only"):
        ApiServer(host="0.0.0.0")


def test_a_delay_holds_an_answer_back_and_nothing_else(thread: ServerThread, api: Http, tmp_path: Path) -> None:
    assert thread.server is not None
    thread.server.faults.delay(0.2, method="POST", times=1)
    made = api.post(MAPS, config_map("late"))
    assert made.code == 201 and thread.server.faults.struck == 1
