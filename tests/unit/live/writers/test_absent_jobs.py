"""Pods that no cycle looks at: told once, again when the reason is another, and no more when what was missing is there."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import SETTINGS, cache, group, pod, put
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.apis.core.pod_objects import SchedulingGate
from navarch.kube.client import Client
from navarch.live.writers.absent_jobs import AbsentJobs, absent_rows
from navarch.live.writers.events import Events
from navarch.live.writers.group_status import GroupStatuses
from navarch.live.writers.pod_status import PodStatuses
from navarch.model.spec import QueueSpec


def test_pods_without_a_group_or_a_queue_get_an_event() -> None:
    made, _ = cache(settings=replace(SETTINGS, scheduler_names=frozenset({"navarch"})))
    for name in ("default", "research"):
        made.cluster.put_queue(QueueSpec(name=name))
    statuses = Submitted()
    pods = PodStatuses(statuses.pool, made, Events(Submitted().pool), lambda: 1e9)
    events = Events(Submitted().pool)
    groups = GroupStatuses(Submitted().pool, cast(Client, None), made, made.assumed, events, lambda: 1e9)
    duty = AbsentJobs(made, pods, groups, lambda: 1e9)
    made.put(group("known", 1, queue="research"))
    put(made, pod("fine", group="known"))
    put(made, pod("alone"))
    assert absent_rows(made.cluster) == []

    put(made, pod("a", group="late"))
    put(made, pod("theirs", group="late", scheduler="other"))
    gated = pod("gated", group="late")
    put(made, replace(gated, spec=replace(gated.spec, scheduling_gates=(SchedulingGate("example.com/wait"),))))
    duty.report(0.0)
    pods.flush(2.0)
    (told,) = statuses.bodies()
    (condition,) = told["status"]["conditions"]
    assert told["metadata"]["uid"] == "uid-a"
    assert (condition["reason"], condition["message"]) == ("PodGroupNotFound", 'the PodGroup "default/late" does not exist')
    statuses.end()

    duty.report(3.0)
    pods.flush(5.0)
    assert len(statuses.writes) == 1, "nothing new"
    made.put(group("late", 1, queue="nowhere"))
    duty.report(6.0)
    pods.flush(30.0)
    assert statuses.bodies()[1]["status"]["conditions"][0]["message"] == 'the queue "nowhere" does not exist'
    spec = made.cluster.jobs.specs[made.cluster.jobs.rows.of["default/late"]]
    assert spec is not None
    (condition,) = spec.conditions
    assert (condition.type, condition.status, condition.reason) == ("Unschedulable", "True", "QueueNotFound")
    assert (condition.message, condition.last_transition) == ('the queue "nowhere" does not exist', 1e9)
    made.put(group("late", 1, queue="nowhere"))
    duty.report(60.0)
    after = made.cluster.jobs.specs[made.cluster.jobs.rows.of["default/late"]]
    assert after is not None and after.conditions == (condition,), "said once, with the time of its first saying"
    made.cluster.put_queue(QueueSpec(name="nowhere"))
    assert absent_rows(made.cluster) == []


def test_a_pod_whose_group_goes_is_told_at_once_not_when_words_may_change_again() -> None:
    made, _ = cache()
    made.cluster.put_queue(QueueSpec(name="default"))
    statuses = Submitted()
    pods = PodStatuses(statuses.pool, made, Events(Submitted().pool), lambda: 1e9)
    groups = GroupStatuses(Submitted().pool, cast(Client, None), made, made.assumed, Events(Submitted().pool), lambda: 1e9)
    duty = AbsentJobs(made, pods, groups, lambda: 1e9)
    made.put(group("gang", 1))
    put(made, pod("a", group="gang"))
    task = made.cluster.task("uid-a")
    assert task is not None
    pods.refuse(task, "Unschedulable", "0/3 nodes are available", 0.0)
    pods.flush(1.0)
    statuses.end()
    pods.refuse(task, "Unschedulable", "0/2 nodes are available", 2.0)
    made.remove(group("gang", 1))
    duty.report(3.0)
    pods.flush(4.0)
    messages = [body["status"]["conditions"][0]["message"] for body in statuses.bodies()]
    assert messages == ["0/3 nodes are available", 'the PodGroup "default/gang" does not exist']


def test_pods_of_a_group_in_another_pool_are_told_nothing() -> None:
    made, _ = cache()
    made.configure(replace(SETTINGS, node_pool_key="pool", node_pool="blue"))
    statuses = Submitted()
    pods = PodStatuses(statuses.pool, made, Events(Submitted().pool), lambda: 1e9)
    groups = GroupStatuses(Submitted().pool, cast(Client, None), made, made.assumed, Events(Submitted().pool), lambda: 1e9)
    duty = AbsentJobs(made, pods, groups, lambda: 1e9)
    put(made, pod("a", group="red"))
    made.put(replace(group("red", 1), labels={"pool": "red"}))
    duty.report(0.0)
    pods.flush(2.0)
    assert statuses.writes == []
    made.remove(replace(group("red", 1), labels={"pool": "red"}))
    duty.report(3.0)
    pods.flush(5.0)
    assert statuses.bodies()[0]["status"]["conditions"][0]["message"] == 'the PodGroup "default/red" does not exist'
