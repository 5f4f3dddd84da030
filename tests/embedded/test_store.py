"""The store by itself: revisions, conflicts, watches in order, history."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from navarch.embedded.api.errors import ApiError
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import Store
from navarch.object_types import Manifest


def pod(name: str, namespace: str = "default", **labels: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels}}


def relabel(**labels: str) -> Callable[[Manifest], Manifest]:
    def change(obj: Manifest) -> Manifest:
        obj["metadata"]["labels"] = labels
        return obj

    return change


def is_red(record: Record) -> bool:
    return record.labels.get("color") == "red"


def names(records: list[Record]) -> list[str]:
    return [record.name for record in records]


def test_each_write_takes_the_next_revision_and_a_write_without_change_takes_none() -> None:
    store = Store()
    first = store.create("pods", pod("a"))
    node = store.create("nodes", {"metadata": {"name": "n"}})
    assert (first.obj["metadata"]["resourceVersion"], node.revision) == ("1", 2)
    same = store.update("pods", first.decode())
    assert same.revision == 1 and store.revision == 2
    assert store.modify("pods", "default", "a", lambda _: None).revision == 1


def test_a_stale_update_and_a_second_create_are_conflicts() -> None:
    store = Store()
    old = store.create("pods", pod("a")).decode()
    store.modify("pods", "default", "a", relabel(color="red"))
    with pytest.raises(ApiError, match="the object has been modified"):
        store.update("pods", old)
    with pytest.raises(ApiError, match='pods "a" already exists'):
        store.create("pods", pod("a"))
    with pytest.raises(ApiError, match="Precondition failed: UID"):
        store.delete("pods", "default", "a", uid="other")


def test_a_decoded_copy_is_the_callers_own() -> None:
    store = Store()
    record = store.create("pods", pod("a"))
    record.decode()["metadata"]["name"] = "changed"
    assert store.get("pods", "default", "a").obj["metadata"]["name"] == "a"


def test_lists_come_in_key_order_of_the_namespace() -> None:
    store = Store()
    for namespace, name in [("b", "x"), ("a", "y"), ("a-b", "z"), ("a", "c")]:
        store.create("pods", pod(name, namespace))
    assert [record.key for record in store.list("pods")] == ["a-b/z", "a/c", "a/y", "b/x"]
    assert names(store.list("pods", "a")) == ["c", "y"]


def test_a_watch_replays_what_is_there_and_then_follows() -> None:
    store = Store()
    store.create("pods", pod("a"))
    watch = store.watch("pods")
    store.create("pods", pod("b"))
    store.delete("pods", "default", "a")
    assert [(event.type, event.record.name, event.revision) for event in watch.take()] == [
        ("ADDED", "a", 1),
        ("ADDED", "b", 2),
        ("DELETED", "a", 3),
    ]


def test_entering_and_leaving_a_selector_is_added_and_deleted() -> None:
    store = Store()
    store.create("pods", pod("a"))
    watch = store.watch("pods", since=1, matches=is_red)
    store.modify("pods", "default", "a", relabel(color="red"))
    store.modify("pods", "default", "a", relabel(color="red", size="l"))
    store.modify("pods", "default", "a", relabel(color="blue"))
    store.delete("pods", "default", "a")
    seen = watch.take()
    assert [event.type for event in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert seen[-1].obj["metadata"]["labels"] == {"color": "red", "size": "l"}
    assert seen[-1].obj["metadata"]["resourceVersion"] == "4"


def test_a_write_inside_a_callback_is_seen_after_its_cause() -> None:
    store = Store()
    seen: list[tuple[str, int]] = []

    def answer(event: Event) -> None:
        if event.type == "ADDED":
            store.modify("pods", "default", event.record.name, relabel(done="yes"))

    store.subscribe("pods", answer)
    store.subscribe("pods", lambda event: seen.append((event.type, event.revision)))
    store.create("pods", pod("a"))
    assert seen == [("ADDED", 1), ("MODIFIED", 2)]


def test_history_shows_the_past_until_it_is_compacted() -> None:
    store = Store()
    for name in "abc":
        store.create("pods", pod(name))
    store.delete("pods", "default", "b")
    store.modify("pods", "default", "a", relabel(color="red"))
    store.create("pods", pod("d"))
    past = list(store.collection("pods").at(3))
    assert names(past) == ["a", "b", "c"] and past[0].labels == {}
    assert [event.revision for event in store.collection("pods").since(4)] == [5, 6]
    store.compact(4)
    with pytest.raises(ApiError) as refused:
        store.watch("pods", since=3)
    assert refused.value.code == 410 and "too old resource version: 3 (4)" in refused.value.message
    assert len(store.watch("pods", since=4).take()) == 2


async def test_a_reader_that_falls_behind_is_closed() -> None:
    store = Store()
    watch = store.watch("pods", limit=2)
    for name in "abc":
        store.create("pods", pod(name))
    assert watch.closed and watch.overflowed and not list(store.watches())


async def test_async_iteration_ends_when_the_watch_is_closed() -> None:
    store = Store()
    store.create("pods", pod("a"))
    with store.watch("pods") as watch:
        assert (await anext(watch)).record.name == "a"
    assert [event async for event in watch] == []
