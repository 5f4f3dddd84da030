"""The scheduling queue: what a job waits for, and for how long."""

from __future__ import annotations

from navarch.engine.reasons import Event
from navarch.live.queue.scheduling_queue import SchedulingQueue
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, Shape, TaskSpec


def test_waits_double_from_one_second_to_ten() -> None:
    queue = SchedulingQueue()
    waits = []
    for _ in range(6):
        queue.add_unschedulable("default/job", (), 1, now=100.0)
        assert queue.next_retry is not None
        waits.append(queue.next_retry - 100.0)
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_the_longest_wait_of_a_gang_grows_with_the_root_of_its_size() -> None:
    queue = SchedulingQueue()
    for _ in range(10):
        queue.add_unschedulable("default/gang", (), 16, now=0.0)
    assert queue.next_retry == 40.0


def test_a_job_is_inactive_until_its_back_off_ends() -> None:
    queue = SchedulingQueue()
    queue.add_unschedulable("default/a", (), 1, now=0.0)
    assert queue.inactive() == ["default/a"]
    assert queue.flush_backoff(0.9) == 0
    assert queue.flush_backoff(1.0) == 1
    assert queue.inactive() == []


def test_events_activate_the_jobs_whose_refusals_name_them() -> None:
    queue = SchedulingQueue()
    queue.add_unschedulable("default/a", (Event.NODE_ADDED,), 1, now=0.0)
    queue.add_unschedulable("default/b", (Event.POD_REMOVED, Event.NODE_ADDED), 1, now=0.0)
    assert queue.activate_on(Event.QUOTA_CHANGED) == 0
    assert queue.activate_on(Event.POD_REMOVED) == 1
    assert queue.inactive() == ["default/a"]
    assert queue.activate_on(Event.NODE_ADDED) == 1
    assert queue.inactive() == []


def test_waking_does_not_forget_how_often_it_failed_and_success_does() -> None:
    queue = SchedulingQueue()
    queue.add_unschedulable("default/a", (), 1, now=0.0)
    assert queue.activate("default/a")
    queue.add_unschedulable("default/a", (), 1, now=0.0)
    assert queue.next_retry == 2.0
    queue.forget("default/a")
    queue.add_unschedulable("default/a", (), 1, now=0.0)
    assert queue.next_retry == 1.0


def test_the_back_off_of_an_earlier_failure_does_not_activate_a_job() -> None:
    queue = SchedulingQueue()
    queue.add_unschedulable("default/a", (), 1, now=0.0)
    queue.add_unschedulable("default/a", (), 1, now=0.5)
    assert queue.flush_backoff(1.0) == 0
    assert queue.inactive() == ["default/a"]
    assert queue.flush_backoff(2.5) == 1


def test_jobs_of_long_ago_are_not_remembered_for_ever() -> None:
    queue = SchedulingQueue()
    queue.add_unschedulable("default/a", (), 1, now=0.0)
    queue.flush_backoff(1.0)
    assert queue.attempts("default/a") == 1
    queue.flush_backoff(1000.0)
    assert queue.attempts("default/a") == 0


def test_a_cluster_gets_the_changes_since_its_last_call_or_every_inactive_job() -> None:
    queue, first, second = SchedulingQueue(), Cluster(), Cluster()
    queue.add_unschedulable("a", (), 1, now=0.0)
    queue.add_unschedulable("b", (), 1, now=0.0)
    assert queue.pop_changes(first) == [("a", True), ("b", True)]
    assert queue.pop_changes(first) == []
    queue.activate("a")
    queue.add_unschedulable("c", (), 1, now=0.0)
    assert queue.pop_changes(first) == [("a", False), ("c", True)]
    assert queue.pop_changes(second) == [("b", True), ("c", True)]
    queue.forget("b")
    assert queue.pop_changes(second) == [("b", False)]


def test_back_off_follows_the_policy_from_the_next_failure_on() -> None:
    queue = SchedulingQueue()
    queue.add_unschedulable("lab/a", (), 1, 0.0)
    assert queue.next_retry == 1.0
    queue.set_backoff(5.0, 7.0)
    queue.activate("lab/a")
    queue.add_unschedulable("lab/b", (), 1, 0.0)
    assert queue.next_retry == 5.0


def test_an_active_group_activates_the_others_of_its_group_of_groups() -> None:
    queue, cluster = SchedulingQueue(), Cluster()
    for name, composite in (("a", "both"), ("b", "both"), ("plain", "")):
        cluster.put_job(JobSpec(f"default/{name}", "default", namespace="default", name=name, composite=composite))
        cluster.put_task(TaskSpec(f"uid-{name}", "default", f"{name}-0", Shape(), job=f"default/{name}"))
        queue.add_unschedulable(f"default/{name}", (Event.NODE_ADDED,), 1, now=0.0)
    assert queue.activate_composites(cluster) == 0, "none of them is active"
    queue.activate("default/plain")
    assert queue.activate_composites(cluster) == 0
    queue.activate("default/a")
    assert queue.activate_composites(cluster) == 1 and queue.inactive() == []
