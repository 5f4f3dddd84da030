"""A proxy that answers lists and watches in the server's place: no object that is known is forgotten for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.worlds.kube.small_api import SmallApi, status_body
from tests.worlds.kube.watching import Recorder, informing

from navarch.kube.client import Client

HTML = b"<html><body>Sign in</body></html>"
EXPIRED = (410, dict[str, str](), status_body(410, "Expired", "too old"))


def listed(version: str, kind: str = "PodList", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": [], **more}


END = {"metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}}
LIES: dict[str, tuple[int, object]] = {
    "200 with a page": (200, HTML),
    "200 with nothing": (200, b""),
    "200 with an empty object": (200, {}),
    "200 with a refusal": (200, status_body(404, "NotFound")),
    "a list that is cut off": (200, json.dumps(listed("900"))[:-9].encode()),
    "an empty list without a version": (200, listed("")),
    "an empty list without a kind": (200, {"metadata": {"resourceVersion": "900"}, "items": []}),
    "an empty list of another kind": (200, listed("900", "NodeList")),
    "an empty list of pod groups": (200, listed("900", "PodGroupList")),
    "an empty list of now": (200, listed("900")),
    "an empty list of the past": (200, listed("1")),
    "an older list with another pod": (200, listed("1", items=[{"metadata": {"name": "old", "uid": "u", "resourceVersion": "1"}}])),
    "a stream that ends its beginning at once": (200, json.dumps({"type": "BOOKMARK", "object": END}).encode() + b"\n"),
    "404 with a page": (404, HTML),
    "404 in plain text": (404, b"404 page not found\n"),
    "404 about a pod": (404, status_body(404, "NotFound", details={"name": "a", "kind": "pods"})),
    "403 with a page": (403, HTML),
    "410 with a page": (410, HTML),
    "502 with a page": (502, HTML),
    "302": (302, b""),
}


@pytest.mark.parametrize("watch_list", [True, False], ids=["watch-list", "list-then-watch"])
@pytest.mark.parametrize("lie", list(LIES))
async def test_objects_stay_known(api: SmallApi, client: Client, lie: str, watch_list: bool) -> None:
    api.watch_list = watch_list
    status, body = LIES[lie]
    for name in ("a", "b"):
        api.put(name)
    seen = Recorder()
    async with informing(client, seen, optional=True) as informer:
        await api.watch_started.wait()
        api.watch_started.clear()
        # The watch ends; what answers first is the proxy, to the watch itself, then to the list after it.
        api.script.extend([(status, {}, body), EXPIRED, (status, {}, body)])
        api.cut_watches()
        await api.watch_started.wait()
        api.put("c")
        await seen.heard("added", "c")
        assert sorted(pod.metadata.name for pod in informer.store.values()) == ["a", "b", "c"]
    assert not api.script
    assert seen.story == [("added", "a"), ("added", "b"), ("added", "c")]


async def test_what_the_next_list_says_as_well_is_believed(api: SmallApi, client: Client) -> None:
    """A server that was restored from a backup, or a namespace that was emptied while no watch was open."""
    for name in ("a", "b"):
        api.put(name)
    seen = Recorder()
    async with informing(client, seen) as informer:
        await api.watch_started.wait()
        api.collections["/api/v1/pods"].clear()
        api.script.append(EXPIRED)
        api.cut_watches()
        await seen.heard("deleted", "b")
        assert informer.store == {}
        api.put("c")
        await seen.heard("added", "c")
