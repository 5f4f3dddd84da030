"""Closing: the phase machine, conditions, refusals, promises, and pods that went back and forth."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import ACTIONS, add_job, decided, job_in, open_session, policy, row_in, shape, task, with_nodes

from navarch.engine.close import close, phase_of
from navarch.engine.cycle import decide
from navarch.engine.plugin import Plugin
from navarch.engine.policy.compat import COMPAT
from navarch.engine.queue import Queue
from navarch.engine.record import JobDecision, QueueFigures
from navarch.engine.registry import Registry
from navarch.engine.semantics import STRICT, Semantics
from navarch.engine.session import Session
from navarch.model.spec import JobSpec
from navarch.model.status import TaskStatus
from navarch.plugins.gang import Gang

S = TaskStatus
WAIT = "Next: wait until running jobs end, or request less"
VOLCANO, KUBE_BATCH = COMPAT["volcano"], COMPAT["kube-batch"]


def job_with(statuses: list[TaskStatus], minimum: int, phase: str, semantics: Semantics) -> Session:
    cluster = with_nodes(("n", {"cpu": 64}))
    cluster.put_job(JobSpec("ns/j", "default", namespace="ns", name="j", min_member=minimum, phase=phase))
    for number, status in enumerate(statuses):
        node = "" if status == S.PENDING else "n"
        cluster.put_task(task(f"t{number}", shape(cpu=1), "ns/j", node, status=status))
    return open_session(cluster, semantics=semantics)


PHASES = [
    # statuses, minimum, phase before, strict, kube-batch
    ([], 1, "Pending", "Pending", "Pending"),
    ([], 1, "Inqueue", "Inqueue", "Pending"),
    ([], 0, "Pending", "Pending", "Running"),
    ([S.PENDING], 0, "Inqueue", "Inqueue", "Running"),
    ([S.PENDING], 1, "Inqueue", "Inqueue", "Pending"),
    ([S.PENDING], 1, "Running", "Pending", "Pending"),
    ([S.PENDING], 1, "Unknown", "Pending", "Pending"),
    ([S.RUNNING], 1, "Inqueue", "Running", "Running"),
    ([S.BOUND], 1, "Inqueue", "Running", "Running"),
    ([S.BINDING], 1, "Inqueue", "Inqueue", "Running"),
    ([S.RUNNING, S.PENDING], 2, "Running", "Pending", "Pending"),
    ([S.RUNNING, S.PENDING], 1, "Pending", "Running", "Running"),
    ([S.RELEASING], 1, "Running", "Running", "Pending"),
    ([S.SUCCEEDED, S.RUNNING], 2, "Running", "Running", "Pending"),
    ([S.SUCCEEDED, S.SUCCEEDED], 2, "Running", "Completed", "Pending"),
    ([S.SUCCEEDED, S.FAILED], 2, "Running", "Completed", "Pending"),
    ([S.FAILED], 1, "Running", "Completed", "Pending"),
    ([S.SUCCEEDED, S.PENDING], 1, "Running", "Completed", "Pending"),
    ([S.SUCCEEDED], 2, "Running", "Pending", "Pending"),
    ([S.UNKNOWN], 1, "Running", "Pending", "Pending"),
]


@pytest.mark.parametrize(("statuses", "minimum", "before", "strict", "kube_batch"), PHASES)
def test_the_phase_of_a_job_follows_from_its_pods(
    statuses: list[TaskStatus], minimum: int, before: str, strict: str, kube_batch: str
) -> None:
    for semantics, after in ((STRICT, strict), (KUBE_BATCH, kube_batch)):
        session = job_with(statuses, minimum, before, semantics)
        assert phase_of(session, job_in(session, "j")) == after


def test_a_group_whose_minimum_is_zero_is_complete_at_once_only_where_a_peer_says_so() -> None:
    session = job_with([S.PENDING], 0, "Inqueue", VOLCANO)
    assert phase_of(session, job_in(session, "j")) == "Completed"


@pytest.mark.parametrize("semantics", [STRICT, VOLCANO, KUBE_BATCH])
def test_a_running_job_that_this_cycle_called_unschedulable_is_unknown(semantics: Semantics) -> None:
    session = job_with([S.RUNNING, S.PENDING], 1, "Running", semantics)
    job = job_in(session, "j")
    job.set_condition("Unschedulable", "True", "NotEnoughResources", "why")
    assert phase_of(session, job) == "Unknown"


def decision(session: Session, name: str) -> JobDecision:
    close(session)
    (found,) = [d for d in session.record.jobs if d.job == f"ns/{name}"]
    return found


def test_a_condition_moves_its_time_only_with_its_status() -> None:
    session = job_with([S.RUNNING], 1, "Running", STRICT)
    job = job_in(session, "j")
    session.now, session.uid = 10.0, "first"
    job.set_condition("Scheduled", "True", "ready", "")
    session.now, session.uid = 20.0, "second"
    job.set_condition("Scheduled", "True", "ready", "")
    assert job.conditions["Scheduled"].last_transition == 10.0
    assert job.conditions["Scheduled"].transition_id == "second"
    job.set_condition("Scheduled", "False", "not ready", "")
    assert job.conditions["Scheduled"].last_transition == 20.0


def test_a_decision_is_changed_when_the_group_does_not_say_so_yet() -> None:
    session = job_with([S.RUNNING], 1, "Running", STRICT)
    assert not decision(session, "j").changed
    session = job_with([S.RUNNING], 1, "Inqueue", STRICT)
    assert decision(session, "j").changed


def test_a_gang_that_waits_says_what_it_lacks_and_each_pod_why() -> None:
    cluster = with_nodes(("n", {"cpu": 3}))
    add_job(cluster, "other", [shape(cpu=1)], node="n")
    add_job(cluster, "gang", [shape(cpu=1)] * 3)
    record = decided(cluster, Gang)
    (job,) = [each for each in record.jobs if each.job == "ns/gang"]
    why = "0/1 nodes are available: 1 Insufficient cpu, with 2 other pods of this job placed."
    assert job.phase == "Inqueue"
    assert job.pods == {"Pending": 3}
    (condition,) = job.conditions
    assert condition.type == "Unschedulable"
    told = f"the gang needs 3 pods to start, and a place was found for 2 of its 3: gang-worker-2: {why}"
    assert condition.message == f"{told} {WAIT}"
    assert [reason.message for reason in job.reasons] == [f"gang-worker-2: {why}"]
    assert job.reasons[0].nodes == {"Insufficient cpu": 1}
    alone = f"the task could run, but its gang is not ready: gang-worker-2: {why} {WAIT}"
    assert [(r.pod, r.reason, r.message) for r in job.refusals] == [
        ("ns/gang-worker-0", "Unschedulable", alone),
        ("ns/gang-worker-1", "Unschedulable", alone),
        ("ns/gang-worker-2", "Unschedulable", f"{why} {WAIT}"),
    ]


def test_a_gang_that_can_never_start_says_so_first() -> None:
    cluster = with_nodes(("n", {"cpu": 2}))
    add_job(cluster, "gang", [shape(cpu=1)] * 3)
    (job,) = decided(cluster, Gang).jobs
    (condition,) = job.conditions
    never, step = "cannot start: needs 3 CPUs, the cluster has 2", "Next: request less, change its node selector, or add nodes"
    assert condition.message == f"{never}. {step}"
    assert [reason.code for reason in job.reasons] == ["NeverStarts", "Unschedulable"]
    assert [r.message for r in job.refusals] == [f"{never}. {step}"] * 3
    (job,) = decided(cluster, Gang, semantics=Semantics(refusals_tell_all=False, next_step_is_told=False)).jobs
    assert [reason.code for reason in job.reasons] == ["Unschedulable"], "the words of another system stay its own"


def test_a_pod_that_was_not_tried_because_another_failed_is_told_of_that_one() -> None:
    cluster = with_nodes(("n", {"cpu": 9}))
    add_job(cluster, "other", [shape(cpu=8)], node="n")
    add_job(cluster, "gang", [shape(cpu=3)] * 3)
    (job,) = [each for each in decided(cluster, Gang).jobs if each.job == "ns/gang"]
    why = "0/1 nodes are available: 1 Insufficient cpu."
    assert [r.message for r in job.refusals] == [f"{why} {WAIT}", *2 * [f"its gang is not ready: gang-worker-0: {why} {WAIT}"]]
    decided_ = decided(cluster, Gang, semantics=Semantics(refusals_tell_all=False, next_step_is_told=False)).jobs
    (job,) = [each for each in decided_ if each.job == "ns/gang"]
    assert [r.message for r in job.refusals] == [why.replace("available", "unavailable"), *2 * ["the job is not ready"]]


def test_a_gated_pod_says_that_it_waits_for_its_gates() -> None:
    cluster = with_nodes(("n", {"cpu": 2}))
    cluster.put_job(JobSpec("ns/j", "default", phase="Inqueue"))
    cluster.put_task(task("t", shape(cpu=1), "ns/j", gates=("example.com/quota", "b")))
    record = decided(cluster, Gang)
    (refusal,) = record.jobs[0].refusals
    assert refusal.reason == "SchedulingGated"
    assert refusal.message == "waiting for scheduling gates: [example.com/quota b]"
    assert not record.binds


def test_a_job_that_got_all_it_wanted_waits_for_nothing() -> None:
    cluster = with_nodes(("n", {"cpu": 2}))
    add_job(cluster, "fits", [shape(cpu=1)])
    (job,) = decided(cluster, Gang).jobs
    assert job.reasons == ()
    assert job.refusals == ()
    assert [c.type for c in job.conditions] == ["Scheduled"]


def test_a_pod_bound_and_evicted_in_one_cycle_is_an_eviction_only_however_often_it_went() -> None:
    cluster = with_nodes(("n", {"cpu": 4}))
    add_job(cluster, "j", [shape(cpu=1)])
    session = open_session(cluster)
    job, row = job_in(session, "j"), row_in(session, "j-0")
    for _ in range(2):
        statement = session.statement()
        statement.allocate(job, [row], [0], session.class_of(row))
        statement.commit()
        session.status[row] = TaskStatus.RUNNING
        statement = session.statement()
        statement.evict(row)
        statement.commit()
        session.status[row] = TaskStatus.PENDING
    close(session)
    assert session.record.binds == []
    assert len(session.record.evictions) == 1


def test_promises_come_by_pod_and_say_whether_something_went_for_them() -> None:
    cluster = with_nodes(("n", {"cpu": 4}))
    add_job(cluster, "z", [shape(cpu=1)])
    add_job(cluster, "a", [shape(cpu=1)])
    session = open_session(cluster)
    for name, evicting in (("z", True), ("a", False)):
        row = row_in(session, f"{name}-0")
        statement = session.statement()
        statement.pipeline(job_in(session, name), [row], [0], session.class_of(row), evicting=evicting)
        statement.commit()
    close(session)
    found = [(n.pod, n.node, n.evicting) for n in session.record.nominations]
    assert found == [("ns/a-worker-0", "n", False), ("ns/z-worker-0", "n", True)]


def test_queues_have_figures_even_if_no_plugin_counts_them() -> None:
    cluster = with_nodes(("n", {"cpu": 4}))
    add_job(cluster, "run", [shape(cpu=1)], node="n")
    add_job(cluster, "huge", [shape(cpu=9)])
    (queue,) = decided(cluster, Gang).queues
    assert (queue.queue, queue.allocated, queue.request) == ("default", {"cpu": 1000, "pods": 1}, {"cpu": 10000, "pods": 2})


def test_the_first_plugin_that_reports_queues_gives_their_figures() -> None:
    def reporting(called: str, share: float) -> type[Plugin]:
        def queue_figures(self: Plugin, queue: Queue) -> QueueFigures:
            return QueueFigures(queue.name, {}, {}, {}, share)

        return type(called.title(), (Plugin,), {"name": called, "queue_figures": queue_figures})

    (queue,) = decided(with_nodes(("n", {"cpu": 4})), Gang, reporting("first", 0.25), reporting("second", 0.75)).queues
    assert (queue.queue, queue.share) == ("default", 0.25)


def test_equal_reasons_of_many_pods_are_told_once() -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    add_job(cluster, "j", [shape(cpu=9)] * 5, minimum=1)
    (job,) = decided(cluster, Gang).jobs
    assert [reason.code for reason in job.reasons] == ["NeverStarts", "Unschedulable"]
    assert len(job.refusals) == 5


def test_an_untouched_job_is_left_out_of_a_report_of_changes() -> None:
    cluster = with_nodes(("n", {"cpu": 4}))
    spec = add_job(cluster, "calm", [shape(cpu=1)], node="n")
    first = decided(cluster, Gang)
    cluster.put_job(replace(spec, conditions=first.jobs[0].conditions))
    record = decide(cluster.snapshot(), policy("gang"), Registry([Gang], ACTIONS), 1.0, report_all=False)
    assert record.jobs == []
