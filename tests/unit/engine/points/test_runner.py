"""Asking plugins: tiers and switches, orders that are total, and which plugins are asked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from tests.worlds.small_cluster import ACTIONS, add_job, job_in, open_session, row_in, shape, task, with_nodes

from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import JobReady, Vote
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.queue import Queue
from navarch.engine.reasons import Reason
from navarch.engine.registry import Registry
from navarch.engine.semantics import STRICT, Semantics
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.spec import QueueSpec


def plugin(called: str, **methods: Any) -> type[Plugin]:
    """A plugin of these methods, each a function of what the session hands over."""
    wrapped = {point: (lambda answer: lambda self, *given, **named: answer(*given, **named))(m) for point, m in methods.items()}
    return type(called.title(), (Plugin,), {"name": called, **wrapped})


def session_of(
    cluster: Cluster, *tiers: Sequence[type[Plugin] | tuple[type[Plugin], dict[str, bool]]], semantics: Semantics = STRICT
) -> Session:
    kinds: list[type[Plugin]] = []
    options = []
    for tier in tiers:
        row = []
        for each in tier:
            kind, enabled = each if isinstance(each, tuple) else (each, {})
            kinds.append(kind)
            row.append(PluginOption(kind.name, enabled))
        options.append(tuple(row))
    policy = Policy(("allocate",), tuple(options), semantics=semantics)
    return Session(cluster.snapshot(), policy, Registry(kinds, ACTIONS), now=0.0)


def world() -> Cluster:
    cluster = with_nodes(("a", {"cpu": 8}))
    cluster.put_queue(QueueSpec("late", created=5.0))
    cluster.put_queue(QueueSpec("early", created=1.0))
    add_job(cluster, "old", [shape(cpu=1)], created=1.0)
    add_job(cluster, "new", [shape(cpu=1)] * 2, created=2.0)
    return cluster


def test_a_point_that_is_switched_off_is_not_asked() -> None:
    no = plugin("no", job_ready=lambda job: False)
    cluster = world()
    assert not session_of(cluster, [no]).job_ready(job_in(open_session(cluster), "old"))
    session = session_of(cluster, [(no, {"job_ready": False})])
    assert session.job_ready(job_in(session, "old"))
    assert session.implementing(JobReady) == []


def test_a_plugin_that_is_not_installed_is_passed_over() -> None:
    policy = Policy(("allocate",), ((PluginOption("unknown"),),))
    session = Session(world().snapshot(), policy, Registry(), now=0.0)
    assert session.plugins == []
    assert session.job_ready(job_in(session, "old"))


def test_a_plugin_may_withdraw_from_points() -> None:
    no = plugin("no", job_ready=lambda job: False, job_valid=lambda job: Reason("No", "no"))
    session = session_of(world(), [no])
    session.stop_asking(session.plugins[0], JobReady)
    assert session.job_ready(job_in(session, "old"))
    assert session.job_valid(job_in(session, "old")) is not None


def test_queues_without_a_preference_are_ordered_by_age_then_by_name() -> None:
    session = open_session(world())
    early, late, default = (session.queues[name] for name in ("early", "late", "default"))
    assert session.queue_order(early, late) < 0
    assert session.queue_order(late, early) > 0
    assert session.queue_order(default, early) < 0
    assert session.queue_order(early, early) == 0


def test_the_first_plugin_that_prefers_a_queue_decides() -> None:
    by_name = plugin("by_name", queue_order=lambda left, right: (left.name < right.name) - (left.name > right.name))
    neutral = plugin("neutral", queue_order=lambda left, right: 0)
    session = session_of(world(), [neutral], [by_name])
    assert session.queue_order(session.queues["late"], session.queues["early"]) < 0


def test_queues_of_victims_are_in_reverse_order_unless_a_plugin_says_otherwise() -> None:
    session = open_session(world())
    early, late, mine = (session.queues[name] for name in ("early", "late", "default"))
    assert session.victim_queue_order(early, late, mine) > 0
    same = plugin("same", victim_queue_order=lambda left, right, preemptor: -1)
    session = session_of(world(), [same])
    assert session.victim_queue_order(early, late, mine) == -1


def test_jobs_go_by_plugins_then_age_then_key() -> None:
    cluster = world()
    add_job(cluster, "also-old", [shape(cpu=1)], created=1.0)
    session = open_session(cluster)
    assert [j.key for j in sorted(session.all_jobs(), key=session.job_order)] == ["ns/also-old", "ns/old", "ns/new"]
    largest = plugin("largest", job_order=lambda job: -len(job.tasks))
    session = session_of(cluster, [largest])
    assert sorted(session.all_jobs(), key=session.job_order)[0].key == "ns/new"


def sorted_uids(cluster: Cluster, *kinds: type[Plugin], **options: Any) -> list[str]:
    session = session_of(cluster, list(kinds), **options)
    rows = [i for i, spec in enumerate(session.snapshot.tasks.specs) if spec is not None]
    ordered = session.sorted_tasks(rows)
    assert session.sorted_tasks(rows, reverse=True) == ordered[::-1]
    pairs = pairwise(ordered)
    assert all(session.compare_tasks(left, right) < 0 for left, right in pairs), "both orders agree"
    return [session.task(t).uid for t in ordered]


def test_tasks_go_by_the_number_of_their_name_then_by_age_then_by_uid() -> None:
    cluster = Cluster()
    cluster.put_task(task("u1", shape(), name="job-worker-10", created=1.0))
    cluster.put_task(task("u2", shape(), name="job-worker-9", created=5.0))
    cluster.put_task(task("u4", shape(), name="other-worker-9", created=5.0))
    cluster.put_task(task("u3", shape(), name="zzz-worker-9", created=5.0))
    assert sorted_uids(cluster) == ["u2", "u3", "u4", "u1"]


def test_a_task_without_a_number_is_compared_by_age() -> None:
    cluster = Cluster()
    cluster.put_task(task("numbered", shape(), name="job-worker-1", created=2.0))
    cluster.put_task(task("plain", shape(), name="plain", created=1.0))
    assert sorted_uids(cluster) == ["plain", "numbered"]


def test_plugins_come_before_numbers() -> None:
    cluster = Cluster()
    cluster.put_task(task("u1", shape(), name="job-worker-1", priority=1))
    cluster.put_task(task("u2", shape(), name="job-worker-2", priority=9))

    class Highest(Plugin):
        name = "highest"

        def task_order(self, row: int) -> int:
            return -self.session.task(row).priority

    assert sorted_uids(cluster, Highest) == ["u2", "u1"]


def test_readiness_needs_every_plugin_and_missing_is_the_largest_answer() -> None:
    yes = plugin("yes", job_ready=lambda job: True, job_missing=lambda job: 2)
    no = plugin("no", job_ready=lambda job: False, job_missing=lambda job: 5)
    session = session_of(world(), [yes], [no])
    job = job_in(session, "old")
    assert not session.job_ready(job)
    assert session.job_missing(job) == 5
    silent = open_session(world())
    assert silent.job_ready(job)
    assert silent.job_missing(job) == 1
    assert silent.job_pipelined(job)


def test_the_first_refusal_counts() -> None:
    first = plugin("first", job_valid=lambda job: Reason("First", ""), overused=lambda queue: Reason("First", ""))
    second = plugin("second", job_valid=lambda job: Reason("Second", ""), overused=lambda queue: Reason("Second", ""))
    session = session_of(world(), [first, second])
    valid, overused = session.job_valid(job_in(session, "old")), session.overused(session.queues["default"])
    assert valid is not None
    assert valid.code == "First"
    assert overused is not None
    assert overused.code == "First"
    assert open_session(world()).overused(session.queues["default"]) is None


@pytest.mark.parametrize(
    ("answers", "count", "code"), [([], 5, ""), ([7, 3], 3, ""), ([3, 0], 0, "QueueLimit"), ([4, Reason("Full", "")], 0, "Full")]
)
def test_a_queue_may_take_on_the_smallest_number_that_any_plugin_allows(answers: list[Any], count: int, code: str) -> None:
    def allow(answer: Any) -> Any:
        def allocatable(queue: Queue, task: TaskClass, wanted: int) -> Any:
            return answer

        return allocatable

    kinds = [plugin(f"p{number}", allocatable=allow(answer)) for number, answer in enumerate(answers)]
    session = session_of(world(), kinds)
    room, reason = session.allocatable(session.queues["default"], session.class_of(row_in(session, "old-0")), 5)
    assert room == count
    assert (reason.code if reason else "") == code


def test_admission_is_a_vote_and_a_plain_no_has_a_reason() -> None:
    no = plugin("no", job_enqueueable=lambda job: Vote.REJECT)
    session = session_of(world(), [no])
    reason = session.job_enqueueable(job_in(session, "old"))
    assert reason is not None
    assert reason.code == "NotAdmitted"
    said = plugin("said", job_enqueueable=lambda job: Reason("Quota", "too much"))
    session = session_of(world(), [said])
    assert session.job_enqueueable(job_in(session, "old")) == Reason("Quota", "too much")
    assert open_session(world()).job_enqueueable(job_in(session, "old")) is None


def test_starving_follows_the_plugins_or_what_is_pending() -> None:
    def starving(kinds: list[type[Plugin]], semantics: Semantics, name: str) -> bool:
        session = session_of(world(), kinds, semantics=semantics)
        return session.job_starving(job_in(session, name))

    no = plugin("no", job_starving=lambda job: False)
    assert starving([], STRICT, "old")
    assert not starving([no], STRICT, "old")
    assert starving([no], Semantics(starving_is_pending=True), "old")


def test_the_orders_of_an_empty_list() -> None:
    session = open_session(world())
    assert session.sorted_tasks([]) == []
    assert session.tasks_by_age([]) == []


def test_a_listening_plugin_that_is_named_twice_is_asked_twice() -> None:
    """As the policy says: two entries are two plugins, each with arguments of its own."""
    asked: list[Job] = []
    note = plugin("note", job_enqueued=asked.append)
    session = session_of(world(), [note], [note])
    session.job_enqueued(job_in(session, "old"))
    assert len(asked) == 2
