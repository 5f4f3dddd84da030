"""A paged first list: the handler receives each page as it comes."""

from __future__ import annotations

from typing import Any

from tests.worlds.kube.small_api import SmallApi, status_body
from tests.worlds.kube.watching import Recorder, informing

from navarch.kube.client import Client


async def test_each_object_is_told_once_and_then_each_change(api: SmallApi, client: Client) -> None:
    seen = Recorder()
    for number in range(1203):
        api.put(f"p{number:04}")
    async with informing(client, seen, paged=True) as informer:
        assert len(seen.story) == len(informer.store) == 1203
        assert (informer.synced, informer.counters.lists) == (True, 1)
        await api.watch_started.wait()
        api.remove("p0000")
        api.put("new")
        await seen.heard("added", "new")
    assert seen.story[1203:] == [("deleted", "p0000"), ("added", "new")]
    lists = [request for request in api.requests if request.query.get("watch") != "true"]
    assert [request.query.get("continue") for request in lists] == [None, "500", "1000"]
    assert all(request.query.get("sendInitialEvents") is None for request in api.requests)


async def test_a_list_that_breaks_off_is_compared_with_what_came(api: SmallApi, client: Client) -> None:
    api.put("kept", uid="kept")
    api.put("late")
    first = page(["kept", "gone"], following="500")
    api.script.extend([(200, {}, first), (410, {}, status_body(410, "Expired"))])
    seen = Recorder()
    async with informing(client, seen, paged=True) as informer:
        assert sorted(name for _, name in informer.store) == ["kept", "late"]
    assert seen.story == [("added", "kept"), ("added", "gone"), ("deleted", "gone"), ("updated", "kept"), ("added", "late")]


async def test_the_metadata_of_a_list_may_follow_its_items(api: SmallApi, client: Client) -> None:
    """Lists of custom resources are written in the order of the alphabet."""
    first = page(["a"], following="1")
    api.put("a", uid="a")
    api.put("b")
    api.script.append((200, {}, {"kind": "PodList", "items": first["items"], "metadata": first["metadata"]}))
    seen = Recorder()
    async with informing(client, seen, paged=True) as informer:
        assert seen.story == [("added", "a"), ("added", "b")]
        assert informer.counters.lists == 1


async def test_a_bad_object_does_not_hide_the_others_of_its_page(api: SmallApi, client: Client) -> None:
    first = page(["a", "bad", "c"])
    first["items"][1]["spec"] = {"nodeName": 5}
    api.script.append((200, {}, first))
    seen = Recorder()
    async with informing(client, seen, paged=True):
        assert seen.story[:2] == [("added", "a"), ("added", "c")]
        assert [name for name, _ in seen.bad] == ["bad"]


def page(names: list[str], following: str = "") -> dict[str, Any]:
    metadata = {"resourceVersion": "1", "continue": following} if following else {"resourceVersion": "1"}
    items = [{"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}} for name in names]
    return {"kind": "PodList", "metadata": metadata, "items": items}
