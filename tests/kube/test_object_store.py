"""The accounting under random histories: whatever order of events and lists, the handler's books are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.kube.watching import Metadata, Pod, Recorder

from navarch.kube.errors import OutcomeUnknown
from navarch.kube.watch.decoding import BadObject, Change, ObjectDecoder, ObjectMetadata
from navarch.kube.watch.object_store import ObjectStore

NAMES = st.sampled_from(["a", "b", "c"])
STEPS = ["put", "put-bad", "delete", "recreate", "hidden-put", "hidden-delete", "list", "replay"]
STEP = st.tuples(NAMES, st.sampled_from(STEPS))


class Cluster:
    """The truth: which objects there are, with the events that tell of them."""

    def __init__(self) -> None:
        self.version = 0
        self.objects: dict[str, Pod | BadObject] = {}
        self.sent: list[Change[Pod] | BadObject] = []

    def put(self, name: str, *, bad: bool = False, fresh: bool = False) -> Change[Pod] | BadObject:
        self.version += 1
        old = self.objects.get(name)
        uid = f"{name}-{self.version}" if old is None or fresh else old.metadata.uid or ""
        version = str(self.version)
        kind: Literal["MODIFIED", "ADDED"] = "MODIFIED" if old is not None and not fresh else "ADDED"
        if bad:
            event: Change[Pod] | BadObject = BadObject(kind, ObjectMetadata(name, "d", uid, version), ValueError("bad"))
            self.objects[name] = BadObject("ADDED", ObjectMetadata(name, "d", uid, version), ValueError("bad"))
        else:
            pod = Pod(Metadata(name, "d", uid, version))
            event, self.objects[name] = Change(kind, pod), pod
        return event

    def delete(self, name: str) -> Change[Pod] | BadObject:
        self.version += 1
        old = self.objects.pop(name).metadata
        if self.version % 2:
            return BadObject("DELETED", ObjectMetadata(name, "d", old.uid or "", str(self.version)), ValueError("bad"))
        return Change("DELETED", Pod(Metadata(name, "d", old.uid or "", str(self.version))))


@given(st.lists(STEP, max_size=60))
@settings(max_examples=300, deadline=None)
def test_the_handlers_books_are_right_after_any_history(steps: list[tuple[str, str]]) -> None:
    seen, cluster = Recorder(), Cluster()
    mirror = ObjectStore(seen, seen.on_bad)
    lost = False

    def deliver(event: Change[Pod] | BadObject) -> None:
        cluster.sent.append(event)
        mirror.apply_bad(event) if isinstance(event, BadObject) else mirror.apply(event)

    for name, step in steps:
        present = name in cluster.objects
        if step in ("put", "put-bad") and not lost:
            deliver(cluster.put(name, bad=step == "put-bad"))
        elif step == "delete" and present and not lost:
            deliver(cluster.delete(name))
        elif step == "recreate" and present:
            cluster.delete(name)
            cluster.put(name, fresh=True)
            lost = True
        elif step == "hidden-put":
            cluster.put(name)
            lost = True
        elif step == "hidden-delete" and present:
            cluster.delete(name)
            lost = True
        elif step == "replay" and cluster.sent and not lost:
            # A stream resumed a little too early sends its last event again.
            story, last = len(seen.story), cluster.sent[-1]
            metadata = last.metadata if isinstance(last, BadObject) else last.object.metadata
            if metadata.resource_version == str(cluster.version):
                deliver(last)
                assert len(seen.story) == story
        elif step == "list":
            mirror.replace(list(mirror.with_known(cluster.objects.values())))
            lost = False
    mirror.replace(list(cluster.objects.values()))
    # The Recorder itself refuses anything told twice or out of order. What is left is the truth.
    good = {item.metadata.uid: item for item in cluster.objects.values() if isinstance(item, Pod)}
    assert {uid: pod for uid, pod in seen.alive.items() if uid in good} == good
    bad_uids = {item.metadata.uid for item in cluster.objects.values() if isinstance(item, BadObject)}
    assert set(seen.alive) - set(good) <= bad_uids, "only a good version of what is bad now may be left over"
    assert set(mirror.bad) == {("d", name) for name, item in cluster.objects.items() if isinstance(item, BadObject)}
    before = len(seen.story)
    mirror.replace(list(cluster.objects.values()))
    assert len(seen.story) == before, "the same list again tells nothing"


def test_a_late_event_does_not_go_back_in_time() -> None:
    seen = Recorder()
    mirror = ObjectStore(seen, seen.on_bad)
    mirror.apply(Change("ADDED", Pod(Metadata("a", "d", "u", "10"))))
    mirror.apply(Change("MODIFIED", Pod(Metadata("a", "d", "u", "9"))))
    mirror.apply(Change("MODIFIED", Pod(Metadata("a", "d", "u", "10"))))
    mirror.apply(Change("DELETED", Pod(Metadata("a", "d", "another", "11"))))
    assert seen.story == [("added", "a")]


def test_versions_that_are_no_numbers_can_only_differ() -> None:
    seen = Recorder()
    mirror = ObjectStore(seen, seen.on_bad)
    for version in ("x1", "x1", "x0"):
        mirror.apply(Change("ADDED", Pod(Metadata("a", "d", "u", version))))
    assert seen.story == [("added", "a"), ("updated", "a")]


def test_objects_of_a_known_version_are_kept_once() -> None:
    seen = Recorder()
    mirror = ObjectStore(seen, seen.on_bad)
    first, second = Pod(Metadata("a", "d", "u", "1")), Pod(Metadata("b", "d", "v", "1"))
    mirror.replace([first, second])
    bad = BadObject("ADDED", ObjectMetadata("c", "d", "w", "1"), ValueError("bad"))
    again, newer, other = Pod(Metadata("a", "d", "u", "1")), Pod(Metadata("b", "d", "v", "2")), Pod(Metadata("a", "d", "x", "1"))
    found = list(mirror.with_known([again, newer, bad, other]))
    assert found[0] is first and found[1] is newer and found[2] is bad and found[3] is other


class Bulk(Recorder):
    """Takes new objects many at a time, and fails on the one named."""

    def __init__(self, fails_on: str = "") -> None:
        super().__init__()
        self.fails_on = fails_on

    def added_all(self, new: Iterator[Pod]) -> None:
        for pod in [each for each in new if self._read(each)]:
            super().added(pod)

    def added(self, new: Pod) -> None:
        self._read(new)
        super().added(new)

    def _read(self, pod: Pod) -> bool:
        if pod.metadata.name == self.fails_on:
            raise ValueError("odd")
        return True


@pytest.mark.parametrize("anew", [False, True])
def test_a_handler_that_fails_on_one_of_many_is_told_of_the_others(anew: bool) -> None:
    seen = Bulk("c")
    mirror = ObjectStore(seen, seen.on_bad)
    bad = BadObject("ADDED", ObjectMetadata("x", "d", "x", "1"), ValueError("bad"))
    pods = [Pod(Metadata(name, "d", name, "1")) for name in "abcd"]
    mirror.add([pods[0], bad, *pods[1:]], anew=anew)
    assert seen.story == [("added", "a"), ("added", "b"), ("added", "d")]
    assert [name for name, _ in seen.bad] == ["x", "c"] and sorted(name for _, name in mirror.objects) == ["a", "b", "c", "d"]


def test_what_came_before_a_list_breaks_off_is_told() -> None:
    seen = Bulk()
    mirror = ObjectStore(seen, seen.on_bad)
    items = ",".join(f'{{"metadata":{{"name":"{n}","uid":"{n}","resourceVersion":"1"}},"x":"{"-" * 5000}"}}' for n in range(40))
    body = f'{{"kind":"PodList","metadata":{{}},"items":[{items}]}}'.encode()
    with pytest.raises(OutcomeUnknown):
        mirror.add(ObjectDecoder(Pod).page(body[:-20_000], "/pods"))
    assert 0 < len(seen.story) == len(mirror.objects) < 40
    mirror.replace(ObjectDecoder(Pod).page(body, "/pods"))
    assert seen.story == [("added", str(n)) for n in range(40)]
