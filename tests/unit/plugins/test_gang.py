"""gang: when a job is valid, ready, starving; what it can lose; what its group is told."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, decided, job_in, open_session, row_in, shape, task, with_nodes

from navarch.engine.job import Job
from navarch.engine.points.protocols import Vote
from navarch.engine.semantics import STRICT, Semantics
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, Requests, SubGroupSpec
from navarch.model.status import TaskStatus
from navarch.plugins.gang import Gang, KubeBatchGang

S = TaskStatus


def job_of(*statuses: TaskStatus, minimum: int = 2, kind: type[Gang] = Gang, empty: int = 0) -> tuple[Gang, Job]:
    cluster = with_nodes(("n", {"cpu": 64}))
    cluster.put_job(JobSpec("ns/j", "default", min_member=minimum, phase="Inqueue"))
    for number, status in enumerate(statuses):
        cluster.put_task(task(f"t{number}", shape(cpu=1), "ns/j", "" if status == S.PENDING else "n", status=status))
    for number in range(empty):
        cluster.put_task(task(f"e{number}", shape(), "ns/j"))
    session = open_session(cluster, kind)
    (plugin,) = session.plugins
    assert isinstance(plugin, Gang)
    return plugin, job_in(session, "j")


@pytest.mark.parametrize(
    ("statuses", "valid", "ready", "starving"),
    [
        ([], False, False, True),
        ([S.PENDING], False, False, True),
        ([S.PENDING, S.PENDING], True, False, True),
        ([S.RUNNING, S.PENDING], True, False, True),
        ([S.RUNNING, S.BOUND], True, True, False),
        ([S.BINDING, S.SUCCEEDED], True, True, False),
        ([S.RUNNING, S.RELEASING], False, False, True),
        ([S.RUNNING, S.FAILED], False, False, True),
        ([S.RUNNING, S.UNKNOWN], False, False, True),
    ],
)
def test_which_tasks_count(statuses: list[TaskStatus], valid: bool, ready: bool, starving: bool) -> None:
    gang, job = job_of(*statuses)
    assert (gang.job_valid(job) is None) == valid
    assert gang.job_ready(job) == ready
    assert gang.job_starving(job) == starving


def test_pending_pods_that_ask_for_nothing_count_as_ready_but_feed_no_one() -> None:
    gang, job = job_of(S.RUNNING, empty=1)
    assert gang.job_ready(job)
    assert gang.job_missing(job) == 1
    assert gang.job_starving(job)
    theirs, job = job_of(S.RUNNING, empty=1, kind=KubeBatchGang)
    assert not theirs.job_ready(job)


@pytest.mark.parametrize(("statuses", "missing"), [([S.PENDING] * 4, 3), ([S.RUNNING, S.PENDING], 2), ([S.RUNNING] * 3, 1)])
def test_the_missing_placements_are_a_lower_bound(statuses: list[TaskStatus], missing: int) -> None:
    gang, job = job_of(*statuses, minimum=3)
    assert gang.job_missing(job) == missing


def test_promises_count_for_what_will_be() -> None:
    gang, job = job_of(S.PENDING, S.PENDING)
    session = job.session
    rows = list(job.tasks)
    session.statement().allocate(job, rows[:1], [0], session.class_of(rows[0]))
    assert gang.job_pipelined(job) == Vote.REJECT
    session.statement().pipeline(job, rows[1:], [0], session.class_of(rows[1]))
    assert gang.job_pipelined(job) == Vote.PERMIT
    assert not gang.job_ready(job)
    assert not gang.job_starving(job)


def test_a_job_that_is_not_ready_goes_first() -> None:
    cluster = with_nodes(("n", {"cpu": 64}))
    add_job(cluster, "runs", [shape(cpu=1)], node="n", created=0.0)
    add_job(cluster, "waits", [shape(cpu=1)], created=1.0)
    session = open_session(cluster, Gang)
    assert [job.key for job in sorted(session.all_jobs(), key=session.job_order)] == ["ns/waits", "ns/runs"]


ROLES: Requests = (("master", 1), ("worker", 2))


@pytest.mark.parametrize(
    ("minimum", "roles", "running", "valid", "ready"),
    [
        (3, "mww", "mww", True, True),
        (3, "mww", "mw", True, False),
        (3, "www", "www", False, False),
        (2, "www", "www", True, True),
        (4, "mwww", "www", True, False),
    ],
)
def test_roles_are_a_demand_where_the_minimum_covers_them(minimum: int, roles: str, running: str, valid: bool, ready: bool) -> None:
    cluster = with_nodes(("n", {"cpu": 64}))
    cluster.put_job(JobSpec("ns/j", "default", min_member=minimum, roles=ROLES))
    left = list(running)
    for number, letter in enumerate(roles):
        runs = letter in left
        if runs:
            left.remove(letter)
        role = "master" if letter == "m" else "worker"
        cluster.put_task(task(f"t{number}", shape(cpu=1), "ns/j", "n" if runs else "", role=role))
    session = open_session(cluster, Gang)
    job = job_in(session, "j")
    reason = session.job_valid(job)
    assert (reason is None) == valid
    assert reason is None or reason.code == "NotEnoughPodsOfTask"
    assert session.job_ready(job) == ready


def test_sub_groups_are_a_demand_of_their_own() -> None:
    cluster = with_nodes(("n", {"cpu": 64}))
    policy = SubGroupSpec("rack", min_member=2, match_label_keys=("rack",), min_groups=1)
    cluster.put_job(JobSpec("ns/j", "default", min_member=2, sub_groups=(policy,)))
    for name, rack in (("a", "1"), ("b", "2")):
        cluster.put_task(task(name, shape(cpu=1), "ns/j", labels={"rack": rack}))
    session = open_session(cluster, Gang)
    reason = session.job_valid(job_in(session, "j"))
    assert reason is not None
    assert "sub-groups" in reason.message
    cluster.put_task(task("c", shape(cpu=1), "ns/j", labels={"rack": "2"}))
    session = open_session(cluster, Gang)
    assert session.job_valid(job_in(session, "j")) is None


def offered(kind: type[Gang], minimum: int, running: int) -> int:
    gang, job = job_of(*[S.RUNNING] * running, minimum=minimum, kind=kind)
    both = [gang.preemptable(-1, job.tasks), gang.reclaimable(-1, job.tasks)]
    assert both[0] == both[1]
    return len(both[0] or [])


@pytest.mark.parametrize(
    ("minimum", "running", "strict", "kube_batch"),
    [(0, 3, 3, 3), (1, 3, 2, 3), (1, 1, 0, 1), (2, 2, 0, 0), (2, 3, 1, 3), (3, 2, 0, 0)],
)
def test_the_pods_that_a_gang_can_lose(minimum: int, running: int, strict: int, kube_batch: int) -> None:
    assert offered(Gang, minimum, running) == strict
    assert offered(KubeBatchGang, minimum, running) == kube_batch


def conditions(cluster: Cluster, kind: type[Gang] = Gang, semantics: Semantics = STRICT) -> dict[str, tuple[str, str]]:
    (job,) = decided(cluster, kind, semantics=semantics).jobs
    return {c.type: (c.reason, c.message) for c in job.conditions}


def test_a_gang_that_waits_is_told_what_it_lacks() -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    add_job(cluster, "gang", [shape(cpu=1)] * 2)
    reason, message = conditions(cluster)["Unschedulable"]
    assert reason == "NotEnoughResources"
    assert message == "cannot start: needs 2 CPUs, the cluster has 1. Next: request less, change its node selector, or add nodes"
    theirs = conditions(cluster, semantics=Semantics(refusals_tell_all=False))["Unschedulable"][1]
    assert theirs == (
        "1/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Schedulable, 1 Unschedulable. "
        "Origin reason is gang-worker-1: 0/1 nodes are unavailable: 1 Insufficient cpu."
    )


@pytest.mark.parametrize(
    ("pods", "minimum", "ours", "theirs"),
    [
        (1, 3, "the gang needs 3 pods to start, and a place was found for none of its 1", "3/1 tasks in gang unschedulable"),
        (3, 1, "cannot start", "1/3 tasks in gang unschedulable"),
    ],
)
def test_the_counts_in_the_message_of_a_gang_that_does_not_fit(pods: int, minimum: int, ours: str, theirs: str) -> None:
    cluster = with_nodes(("n", {"cpu": 1}))
    add_job(cluster, "gang", [shape(cpu=2)] * pods, minimum=minimum)
    for semantics, told in ((STRICT, ours), (Semantics(refusals_tell_all=False), theirs)):
        message = conditions(cluster, semantics=semantics)["Unschedulable"][1]
        assert message.partition(":")[0] == told


def test_a_gang_that_runs_is_told_so_and_kube_batch_says_nothing() -> None:
    cluster = with_nodes(("n", {"cpu": 2}))
    add_job(cluster, "gang", [shape(cpu=1)] * 2)
    assert conditions(cluster) == {"Scheduled": ("tasks in gang are ready to be scheduled", "")}
    assert conditions(cluster, KubeBatchGang) == {}


def test_a_group_without_pods_is_told_nothing() -> None:
    cluster = with_nodes(("n", {"cpu": 2}))
    cluster.put_job(JobSpec("ns/empty", "default", min_member=2, phase="Inqueue"))
    assert conditions(cluster) == {}


def test_a_gang_whose_pods_are_only_leaving_is_not_called_unschedulable() -> None:
    cluster = with_nodes(("n", {"cpu": 2}))
    spec = add_job(cluster, "gang", [shape(cpu=1)], node="n")
    pod = cluster.task("gang-0")
    assert pod is not None
    cluster.put_task(replace(pod, status=S.RELEASING))
    assert spec.min_member == 1
    assert conditions(cluster) == {}


def test_a_gang_with_too_few_pods_is_tried_by_kube_batch_only() -> None:
    cluster = with_nodes(("n", {"cpu": 9}))
    add_job(cluster, "short", [shape(cpu=1)], minimum=2)
    session = open_session(cluster, Gang)
    assert session.job_valid(job_in(session, "short")) is not None
    session = open_session(cluster, KubeBatchGang)
    assert session.job_valid(job_in(session, "short")) is None
    assert row_in(session, "short-0") == 0
