"""A gang that was whole looks half bound when it comes to have too few pods while others of it wait: it is left alone, also by a
scheduler that has just started; one whose start stopped half-way is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import SETTINGS, cache, group, pod, put
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.apis import coscheduling, kube_batch
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod, PodStatus
from navarch.apis.upstream import podgroups as upstream
from navarch.apis.volcano import podgroups as volcano
from navarch.kube.errors import Unreachable
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.gang_history import CONDITION, GangHistory
from navarch.live.half_bound_gangs import HalfBoundGangs
from navarch.live.writers.gang_marks import GangMarks
from navarch.model.spec import JobSpec

SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"}
MARK = {"type": CONDITION, "status": "True", "lastTransitionTime": "2026-01-01T01:00:00Z"}
TIMEOUT = 10.0


def on_a_node(name: str, *conditions: dict[str, str], phase: str = "Running") -> Pod:
    status = from_manifest({"phase": phase, "conditions": [SCHEDULED, *conditions]}, PodStatus)
    return replace(pod(name, "n1", group="g"), status=status)


class Scene:
    """Two of three pods run, the third never found room; the group asks for two."""

    def __init__(self, minimum: int = 2) -> None:
        self.cache, _ = cache()
        self.cache.put(group("g", minimum))
        for name in ("a", "b"):
            put(self.cache, on_a_node(name))
        put(self.cache, pod("c", group="g"))
        self.now = 100.0
        self.start()

    def start(self) -> None:
        """A scheduler that knows nothing, in the place of the one before."""
        self.released: list[str] = []
        self.writes = Submitted()
        history = GangHistory(self.cache, GangMarks(self.writes.pool, lambda: 1_800_000_000.0).mark)
        self.gangs = HalfBoundGangs(self.cache, lambda job, tasks, now: self.released.append(job), TIMEOUT, history=history)
        self.gangs.start_leading(self.now)

    def look(self) -> list[str]:
        """What has been released by now, with time enough for it."""
        for _ in range(3):
            self.now += TIMEOUT
            self.gangs.check(self.now)
        return self.released


def raised(scene: Scene) -> None:
    scene.cache.put(group("g", 3))


def failed(scene: Scene) -> None:
    put(scene.cache, on_a_node("b", phase="Failed"))


def deleted(scene: Scene) -> None:
    scene.cache.remove_pod("uid-b")


LOSSES = [raised, failed, deleted]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_gang_that_was_seen_whole_is_left_alone(loss: Callable[[Scene], None]) -> None:
    scene = Scene()
    loss(scene)
    assert (scene.look(), len(scene.gangs)) == ([], 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_marks_on_the_pods_tell_the_next_leader(loss: Callable[[Scene], None]) -> None:
    scene = Scene()
    loss(scene)
    scene.look()
    standing = ["a", "b"] if loss is raised else ["a"]
    assert [write.path.split("/")[-2] for write in scene.writes.writes] == standing
    [condition] = scene.writes.bodies()[0]["status"]["conditions"]
    assert (condition["type"], condition["status"]) == (CONDITION, "True")
    put(scene.cache, on_a_node("a", condition))
    scene.start()
    assert scene.look() == []


@pytest.mark.parametrize("loss", LOSSES)
def test_without_that_the_successor_could_not_know(loss: Callable[[Scene], None]) -> None:
    scene = Scene()
    loss(scene)
    scene.start()
    assert scene.look() == ["default/g"] * len(scene.released) != []


def test_a_mark_that_was_not_written_is_written_again_and_one_that_was_is_not() -> None:
    scene = Scene()
    raised(scene)
    scene.look()
    assert len(scene.writes.writes) == 2  # on their way
    scene.writes.end(Unreachable("nobody there"))
    scene.writes.end()
    put(scene.cache, on_a_node("b", MARK))
    scene.look()
    assert [write.path.split("/")[-2] for write in scene.writes.writes] == ["a", "b", "a"]


def test_a_gang_that_starts_again_is_a_new_one() -> None:
    """All of it went, and of the new one half is bound."""
    scene = Scene()
    raised(scene)
    scene.look()
    for name in ("a", "b"):
        scene.cache.remove_pod(f"uid-{name}")
    assert scene.look() == []
    put(scene.cache, on_a_node("d"))
    put(scene.cache, pod("e", group="g"))
    assert scene.look() != []


def test_a_gang_that_is_completed_after_it_was_half_bound_was_whole() -> None:
    scene = Scene(minimum=3)
    assert len(scene.gangs) == 1
    scene.cache.put(group("g", 2))
    scene.gangs.check(scene.now)
    raised(scene)
    assert scene.look() == []


INCOMPLETE = {"type": CONDITION, "status": "False", "lastTransitionTime": "2026-01-01T01:00:00Z"}


def written(scene: Scene) -> list[tuple[str, str]]:
    """The pods that were marked, with the status of the condition."""
    bodies = zip(scene.writes.writes, scene.writes.bodies(), strict=True)
    return [(write.path.split("/")[-2], body["status"]["conditions"][0]["status"]) for write, body in bodies]


def test_a_half_bound_gang_is_released_after_a_restart_though_the_member_it_waited_for_is_gone() -> None:
    scene = Scene(minimum=3)
    assert written(scene) == [("a", "False"), ("b", "False")]
    scene.cache.remove_pod("uid-c")
    put(scene.cache, on_a_node("a", INCOMPLETE))  # the write of b was lost
    scene.start()
    assert len(scene.gangs) == 1
    assert set(scene.look()) == {"default/g"}


def test_without_the_mark_it_counts_as_a_gang_that_lost_a_member() -> None:
    scene = Scene(minimum=3)
    scene.cache.remove_pod("uid-c")
    scene.start()
    assert (scene.look(), len(scene.gangs), written(scene)) == ([], 0, [])


def test_a_gang_that_is_completed_loses_the_mark_of_a_half_bound_one() -> None:
    scene = Scene(minimum=3)
    for name in ("a", "b"):
        put(scene.cache, on_a_node(name, INCOMPLETE))
    scene.writes.end()
    scene.writes.end()
    scene.cache.remove_pod("uid-c")
    put(scene.cache, on_a_node("c"))
    scene.gangs.check(scene.now)
    assert written(scene)[2:] == [("a", "True"), ("b", "True")]
    scene.writes.end(Unreachable("nobody there"))
    scene.writes.end()
    put(scene.cache, on_a_node("b", MARK))
    scene.gangs.check(scene.now)
    assert written(scene)[4:] == [("a", "True")]
    scene.cache.remove_pod("uid-c")
    scene.start()
    assert scene.look() == []  # the mark of b tells


def test_a_gang_whose_group_says_that_it_ran_is_not_released_because_of_an_old_mark() -> None:
    """The scheduler ended after it had completed the gang and before it had marked the pods again."""
    scene = Scene(minimum=3)
    for name in ("a", "b"):
        put(scene.cache, on_a_node(name, INCOMPLETE))
    scene.cache.remove_pod("uid-c")
    scene.cache.remove(group("g", 3))
    scene.cache.put(read("volcano", {"phase": "Running", "running": 3}))
    scene.start()
    assert scene.look() == []


def test_under_a_policy_without_gangs_nothing_is_remembered_of_them() -> None:
    scene = Scene()
    applies = [True]
    gangs = HalfBoundGangs(scene.cache, lambda job, tasks, now: scene.released.append(job), TIMEOUT, lambda: applies[0])
    gangs.check(100.0)
    applies[0] = False
    gangs.check(101.0)
    applies[0] = True
    raised(scene)
    for now in (102.0, 120.0):
        gangs.check(now)
    assert scene.released == ["default/g"]


def read(dialect: str, status: dict[str, Any]) -> JobSpec:
    meta = {"name": "g", "namespace": "default", "uid": "uid-g"}
    if dialect == "upstream":
        policy = {"gang": {"minCount": 3}}
        manifest: dict[str, Any] = {"metadata": meta, "spec": {"schedulingPolicy": policy}, "status": status}
        return upstream.read_pod_group(from_manifest(manifest, upstream.PodGroup), SETTINGS)
    manifest = {"metadata": meta, "spec": {"minMember": 3}, "status": status}
    if dialect == "coscheduling":
        return coscheduling.read_pod_group(from_manifest(manifest, coscheduling.PodGroup), SETTINGS)
    if dialect == "kube-batch":
        return kube_batch.read_pod_group(from_manifest(manifest, kube_batch.PodGroup), SETTINGS)
    return volcano.read_pod_group(from_manifest(manifest, volcano.PodGroup), SETTINGS)


def started(status: str, at: str) -> dict[str, Any]:
    return {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": status, "lastTransitionTime": at}]}


@pytest.mark.parametrize(
    ("dialect", "status", "whole"),
    [
        ("volcano", {"phase": "Running", "running": 2}, True),
        ("volcano", {"phase": "Inqueue"}, False),
        ("volcano", {"phase": "Unknown", "running": 2}, False),
        ("volcano", {"phase": "Running", "running": 2, "failed": 1}, False),
        ("kube-batch", {"phase": "Running", "running": 2}, True),
        ("kube-batch", {"phase": "Pending"}, False),
        ("coscheduling", {"phase": "Running", "running": 2}, True),
        ("coscheduling", {"phase": "Scheduling", "scheduled": 2}, False),
        ("upstream", started("True", "2026-01-01T00:00:11Z"), True),
        ("upstream", started("True", "2025-12-31T00:00:00Z"), False),
        ("upstream", started("False", "2026-01-01T00:00:11Z"), False),
        ("upstream", {}, False),
    ],
)
def test_the_status_of_a_group_tells_of_its_start_before_its_minimum_was_raised(
    dialect: str, status: dict[str, Any], whole: bool
) -> None:
    scene = Scene()
    scene.cache.remove(group("g", 2))
    scene.cache.put(read(dialect, status))
    scene.start()
    said = scene.cache.group("default/g")
    assert said is not None
    scene.cache.put(replace(said, phase="Pending", conditions=(), counts={}))  # as its status is written now
    assert (scene.look() == []) is whole


def test_a_group_status_counts_only_when_a_term_starts() -> None:
    """The phase may lag behind the pods: a gang all of whose pods went a moment ago still says that it runs."""
    made: ClusterCache = Scene(minimum=2).cache
    released = list[str]()
    gangs = HalfBoundGangs(made, lambda job, tasks, now: released.append(job), TIMEOUT)
    made.put(read("volcano", {"phase": "Running", "running": 2}))
    for now in (100.0, 110.0):
        gangs.check(now)
    assert released == ["default/g"]
