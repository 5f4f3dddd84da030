"""The live core: which events start a cycle, and what becomes of binds."""

from __future__ import annotations

from tests.worlds.live_parts.cluster_cache import SETTINGS, group, node, pod, put

from navarch.engine.reasons import Event
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.core import LiveCore
from navarch.live.instructions import (
    AbandonPreparation,
    BindResult,
    EndBind,
    EvictPod,
    Instruction,
    StartCycle,
    WriteGroupStatus,
    WriteRefusal,
)
from navarch.model.status import TaskStatus


class World:
    def __init__(self) -> None:
        self.emitted: list[Instruction] = []
        self.core = LiveCore(SETTINGS, self.emitted.append)
        self.core.cache.put(node("n1"))

    def pop(self) -> list[Instruction]:
        emitted, self.emitted[:] = list(self.emitted), []
        return emitted

    def assumed(self, name: str) -> AssumedBind:
        bind = AssumedBind(f"uid-{name}", "default", name, "n1", f"default/pod/{name}", 0.0)
        self.core.assumed.binds[bind.uid] = bind
        self.core.cache.refresh(bind.uid)
        self.pop()
        return bind


def test_an_event_that_may_let_a_job_be_placed_starts_a_cycle() -> None:
    world = World()
    world.pop()
    world.core.cluster_event(Event.NODE_ADDED)
    assert world.pop() == [StartCycle()]


def test_a_change_that_concerns_no_inactive_job_starts_no_cycle() -> None:
    world = World()
    world.pop()
    world.core.cluster_event(Event.POD_CHANGED, urgent=False)
    assert world.pop() == []


def test_an_event_that_an_unschedulable_job_waits_for_starts_a_cycle() -> None:
    world = World()
    world.pop()
    world.core.queue.add_unschedulable("default/a", (Event.POD_CHANGED,), 1, now=0.0)
    world.core.cluster_event(Event.POD_CHANGED, urgent=False)
    assert (world.pop(), world.core.queue.inactive()) == ([StartCycle()], [])


def test_a_change_of_a_job_activates_that_job() -> None:
    world = World()
    world.core.queue.add_unschedulable("default/a", (), 1, now=0.0)
    world.core.queue.add_unschedulable("default/b", (), 1, now=0.0)
    world.core.cluster_event(Event.POD_CHANGED, "default/a")
    assert world.core.queue.inactive() == ["default/b"]


def test_group_statuses_are_written_only_while_we_lead_and_only_for_groups_with_an_object() -> None:
    world = World()
    world.core.cluster_event(Event.JOB_CHANGED, "default/before", urgent=False)
    world.core.start_leading(1.0)
    world.pop()
    world.core.cluster_event(Event.JOB_CHANGED, "default/g", urgent=False)
    world.core.cluster_event(Event.JOB_CHANGED, "default/pod/a", urgent=False)
    world.core.cluster_event(Event.NODE_CHANGED, urgent=False)
    world.core.stop_leading()
    world.core.cluster_event(Event.JOB_CHANGED, "default/h", urgent=False)
    assert world.pop() == [WriteGroupStatus("default/g")]


def test_a_bind_that_failed_is_written_on_the_pod_backs_off_and_frees_its_place() -> None:
    world = World()
    put(world.core.cache, pod("a", cpu="3"))
    world.core.queue.add_unschedulable("default/waits", (Event.POD_REMOVED,), 1, 0.0, requests=(("cpu", 1000),))
    bind = world.assumed("a")
    world.core.bind_failed(bind, "the node is full", now=5.0)
    emitted = world.pop()
    assert EndBind(bind, BindResult.FAILED) in emitted and StartCycle() in emitted
    (refusal,) = [each for each in emitted if isinstance(each, WriteRefusal)]
    assert (refusal.reason, refusal.message, refusal.at_once) == ("SchedulerError", "binding to n1 failed: the node is full", True)
    assert world.core.queue.inactive() == ["default/pod/a"] and world.core.queue.next_retry == 6.0


def test_a_bind_that_failed_because_its_pod_has_a_node_is_no_refusal() -> None:
    world = World()
    put(world.core.cache, pod("a"))
    bind = world.assumed("a")
    put(world.core.cache, pod("a", node="n2"))
    world.pop()
    world.core.bind_failed(bind, "it is bound already", now=5.0)
    assert world.pop() == [EndBind(bind, BindResult.DROPPED)] and world.core.queue.next_retry is None


def test_a_gang_that_is_released_is_evicted_once() -> None:
    world = World()
    world.core.cache.put(group("g", 3))
    for name in ("a", "b"):
        put(world.core.cache, pod(name, node="n1", phase="Running", group="g"))
    put(world.core.cache, pod("c", group="g"))
    world.pop()
    for now in (0.0, 120.0, 240.0, 360.0):
        world.core.check_gangs(now)
    emitted = world.pop()
    assert "default/g" in [each.job for each in emitted if isinstance(each, AbandonPreparation)]
    assert [each.task.name for each in emitted if isinstance(each, EvictPod)] == ["a", "b"]
    tasks = [world.core.cache.cluster.task(f"uid-{name}") for name in ("a", "b")]
    assert [task.status for task in tasks if task is not None] == [TaskStatus.RELEASING] * 2
