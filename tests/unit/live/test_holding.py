"""Who waits for what, and for how long."""

from __future__ import annotations

from navarch.engine.reasons import Event
from navarch.live.queue.scheduling_queue import SchedulingQueue


def test_waits_double_from_one_second_to_ten() -> None:
    holding = SchedulingQueue()
    waits = []
    for _ in range(6):
        holding.failed("default/job", (), 1, now=100.0)
        assert holding.next_expiry is not None
        waits.append(holding.next_expiry - 100.0)
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_the_longest_wait_of_a_gang_grows_with_the_root_of_its_size() -> None:
    holding = SchedulingQueue()
    for _ in range(10):
        holding.failed("default/gang", (), 16, now=0.0)
    assert holding.next_expiry == 40.0


def test_a_job_sleeps_until_its_wait_is_over() -> None:
    holding = SchedulingQueue()
    holding.failed("default/a", (), 1, now=0.0)
    assert holding.asleep() == ["default/a"]
    assert holding.expire(0.9) == 0
    assert holding.expire(1.0) == 1
    assert holding.asleep() == []


def test_events_wake_those_whose_refusals_name_them() -> None:
    holding = SchedulingQueue()
    holding.failed("default/a", (Event.NODE_ADDED,), 1, now=0.0)
    holding.failed("default/b", (Event.POD_REMOVED, Event.NODE_ADDED), 1, now=0.0)
    assert holding.wake(Event.QUOTA_CHANGED) == 0
    assert holding.wake(Event.POD_REMOVED) == 1
    assert holding.asleep() == ["default/a"]
    assert holding.wake(Event.NODE_ADDED) == 1
    assert holding.asleep() == []


def test_waking_does_not_forget_how_often_it_failed_and_success_does() -> None:
    holding = SchedulingQueue()
    holding.failed("default/a", (), 1, now=0.0)
    assert holding.awake("default/a")
    holding.failed("default/a", (), 1, now=0.0)
    assert holding.next_expiry == 2.0
    holding.forget("default/a")
    holding.failed("default/a", (), 1, now=0.0)
    assert holding.next_expiry == 1.0


def test_an_old_wait_does_not_wake_a_job_that_failed_again() -> None:
    holding = SchedulingQueue()
    holding.failed("default/a", (), 1, now=0.0)
    holding.failed("default/a", (), 1, now=0.5)
    assert holding.expire(1.0) == 0
    assert holding.asleep() == ["default/a"]
    assert holding.expire(2.5) == 1


def test_jobs_of_long_ago_are_not_remembered_for_ever() -> None:
    holding = SchedulingQueue()
    holding.failed("default/a", (), 1, now=0.0)
    holding.expire(1.0)
    holding.expire(1000.0)
    assert holding._jobs == {}


def test_who_was_told_is_told_what_changed_and_who_was_not_everything() -> None:
    holding, first, second = SchedulingQueue(), object(), object()
    holding.failed("a", (), 1, now=0.0)
    holding.failed("b", (), 1, now=0.0)
    assert holding.changes(first) == [("a", True), ("b", True)]
    assert holding.changes(first) == []
    holding.awake("a")
    holding.failed("c", (), 1, now=0.0)
    assert holding.changes(first) == [("a", False), ("c", True)]
    assert holding.changes(second) == [("b", True), ("c", True)]
    holding.forget("b")
    assert holding.changes(second) == [("b", False)]
