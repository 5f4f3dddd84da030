"""Promises that the API server never shows: they end by time."""

from __future__ import annotations

from tests.worlds.live_parts.cluster_cache import SETTINGS, node, pod, put

from navarch.live.core import LiveCore
from navarch.live.instructions import AbandonEviction, Instruction, StartCycle
from navarch.live.unconfirmed_decisions import EVICTION_TIMEOUT, NOMINATION_TIMEOUT, UNANSWERED_TIMEOUT
from navarch.model.status import TaskStatus


class World:
    """A victim on a node, and a pod that is promised its place."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.core = LiveCore(SETTINGS, self.instructions.append)
        self.core.cache.put(node("n1"))
        put(self.core.cache, pod("victim", "n1", "Running"))
        put(self.core.cache, pod("winner"))
        self.core.start_leading(0.0)
        self.instructions.clear()

    def evict(self, *, accepted: bool) -> None:
        self.core.assumed.evictions["uid-victim"] = 0.0
        self.core.cache.refresh("uid-victim")
        if accepted:
            self.core.assumed.accept_eviction("uid-victim")

    def nominate(self) -> None:
        self.core.assumed.nominations["uid-winner"] = "n1"
        self.core.cache.refresh("uid-winner")

    def victim(self) -> TaskStatus:
        task = self.core.cache.cluster.task("uid-victim")
        assert task is not None
        return task.status

    @property
    def nominated(self) -> str:
        task = self.core.cache.cluster.task("uid-winner")
        assert task is not None
        return task.nominated_node


def test_a_victim_whose_eviction_was_answered_falsely_runs_again() -> None:
    world = World()
    world.evict(accepted=True)
    world.core.check_promises(100.0)
    world.core.check_promises(99.0 + EVICTION_TIMEOUT)
    assert world.victim() is TaskStatus.RELEASING
    world.core.check_promises(100.0 + EVICTION_TIMEOUT)
    assert world.victim() is TaskStatus.RUNNING
    abandoned = [each.task.name for each in world.instructions if isinstance(each, AbandonEviction)]
    assert abandoned == ["victim"] and StartCycle() in world.instructions
    assert (world.core.assumed.evictions, world.core.assumed.accepted_evictions) == ({}, set())


def test_an_eviction_that_waits_for_its_turn_or_its_answer_does_not_end_so_soon() -> None:
    world = World()
    world.evict(accepted=False)
    world.core.check_promises(0.0)
    world.core.check_promises(UNANSWERED_TIMEOUT - 1)
    assert world.victim() is TaskStatus.RELEASING
    world.core.assumed.accept_eviction("uid-victim")
    world.core.check_promises(UNANSWERED_TIMEOUT)
    assert world.victim() is TaskStatus.RELEASING, "its time-out begins with the answer"
    world.core.check_promises(UNANSWERED_TIMEOUT + EVICTION_TIMEOUT)
    assert world.victim() is TaskStatus.RUNNING


def test_an_eviction_that_is_lost_ends_too() -> None:
    world = World()
    world.evict(accepted=False)
    world.core.check_promises(0.0)
    world.core.check_promises(UNANSWERED_TIMEOUT)
    assert world.victim() is TaskStatus.RUNNING


def test_an_eviction_that_the_watch_shows_leaves_nothing_behind() -> None:
    world = World()
    world.evict(accepted=True)
    world.core.cache.remove_pod("uid-victim")
    world.core.assumed.accept_eviction("uid-victim")
    assert (world.core.assumed.evictions, world.core.assumed.accepted_evictions) == ({}, set())


def test_a_nomination_that_no_cycle_repeats_ends() -> None:
    world = World()
    world.nominate()
    world.core.check_promises(0.0)
    world.core.check_promises(NOMINATION_TIMEOUT - 1)
    assert world.nominated == "n1"
    world.core.check_promises(NOMINATION_TIMEOUT)
    assert world.nominated == ""
