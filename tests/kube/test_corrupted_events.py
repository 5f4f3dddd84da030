"""Bytes of a watch that are corrupted and JSON still: what contradicts itself is not applied, and the truth is read anew."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.worlds.kube.small_api import SmallApi
from tests.worlds.kube.watching import Pod, Recorder, informing

from navarch.kube.client import Client

Corrupt = Callable[[dict[str, Any]], None]


def changed(**metadata: str) -> Corrupt:
    return lambda event: event["object"]["metadata"].update(metadata)


CORRUPTIONS: dict[str, Corrupt] = {
    "the uid of a change": changed(uid="uid-x"),
    "no uid": changed(uid=""),
    "no version": changed(resourceVersion=""),
    "an old version": changed(resourceVersion="100"),
    "the name of a change": changed(name="x"),
    "the namespace of a change": changed(namespace="x"),
    "the name of another": changed(name="b"),
    "another node": lambda event: event["object"].update(spec={"nodeName": "n2"}),
}


def node_stays(informer_store: Callable[[], dict[tuple[str, str], Pod]]) -> Callable[[Pod], str]:
    def contradiction(new: Pod) -> str:
        old = informer_store()[new.metadata.namespace, new.metadata.name]
        return "nodeName" if old.spec.node_name not in ("", new.spec.node_name) else ""

    return contradiction


@pytest.mark.parametrize("corruption", list(CORRUPTIONS))
async def test_the_truth_is_read_anew(api: SmallApi, client: Client, corruption: str) -> None:
    api.put("a", spec={"nodeName": "n1"})
    api.put("b", spec={"nodeName": "n1"})
    seen, store = Recorder(), dict[tuple[str, str], Pod]()
    async with informing(client, seen, objects=store, contradiction=node_stays(lambda: store)) as informer:
        await api.watch_started.wait()
        watchers, api.watchers = api.watchers, []
        event = {"type": "MODIFIED", "object": copy.deepcopy(api.put("a", spec={"nodeName": "n1", "priority": 7}))}
        api.watchers = watchers
        CORRUPTIONS[corruption](event)
        api.send_raw(msgspec.json.encode(event) + b"\n")
        await seen.heard("updated", "a")
        api.put("c")
        await seen.heard("added", "c")
        assert informer.counters.lists == 2
        assert {key: pod.spec.node_name for key, pod in store.items()} == {
            ("default", "a"): "n1", ("default", "b"): "n1", ("default", "c"): ""
        }  # fmt: skip
        assert store["default", "a"].spec.priority == 7
    assert seen.story == [("added", "a"), ("added", "b"), ("updated", "a"), ("added", "c")]


async def test_a_version_that_jumped_ahead_is_noticed_at_the_next_event(api: SmallApi, client: Client) -> None:
    api.put("a")
    seen = Recorder()
    async with informing(client, seen) as informer:
        await api.watch_started.wait()
        watchers, api.watchers = api.watchers, []
        event = {"type": "MODIFIED", "object": copy.deepcopy(api.put("a"))}
        api.watchers = watchers
        changed(resourceVersion="900000")(event)
        api.send_raw(msgspec.json.encode(event) + b"\n")
        await seen.heard("updated", "a")
        api.put("a", spec={"nodeName": "n1"})
        await seen.until(lambda: [pod.spec.node_name for pod in informer.store.values()] == ["n1"])
        assert informer.resource_version == str(api.version)


@pytest.mark.parametrize("listed", [True, False], ids=["in a list", "in an event"])
async def test_an_object_that_was_shown_and_could_not_be_read_is_known(api: SmallApi, client: Client, listed: bool) -> None:
    """Its changes contradict nothing, so the kind is not listed again for each of them; a corrupted one is noticed all the same."""
    seen = Recorder()
    if listed:
        api.put("a", spec={"nodeName": 5})
    async with informing(client, seen) as informer:
        await api.watch_started.wait()
        for priority in range(3):
            api.put("a", spec={"nodeName": 5, "priority": priority})
        api.put("a", spec={"nodeName": "n1"})
        await seen.heard("added", "a")
        api.put("a", spec={"nodeName": 5})
        api.put("a", spec={"nodeName": "n1", "priority": 7})
        await seen.heard("updated", "a")
        assert (informer.counters.lists, [name for name, _ in seen.bad]) == (1, ["a"] * (5 if listed else 4))
        api.put("b", spec={"nodeName": 5})
        await seen.until(lambda: seen.bad[-1][0] == "b")
        watchers, api.watchers = api.watchers, []
        event = {"type": "MODIFIED", "object": copy.deepcopy(api.put("b", spec={"nodeName": "n1"}))}
        api.watchers = watchers
        changed(uid="uid-x")(event)
        api.send_raw(msgspec.json.encode(event) + b"\n")
        await seen.heard("added", "b")
        assert (informer.counters.lists, set(seen.alive)) == (2, {"uid-a", "uid-b"})
