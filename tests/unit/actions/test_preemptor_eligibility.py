"""Whether a task may evict at all."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, open_session, row_in, shape, task, with_nodes

from navarch.actions.preemptor_eligibility import may_evict_for, needs_domain
from navarch.engine.semantics import STRICT, Semantics
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, SubGroupSpec, TaskSpec, TopologyDemand
from navarch.model.status import TaskStatus

BLOCKS = Semantics(stale_promise_blocks=True)


def world() -> Cluster:
    cluster = with_nodes(("a", {"cpu": 4}))
    add_job(cluster, "want", [shape(cpu=1)], priority=10)
    return cluster


def may(cluster: Cluster, semantics: Semantics = STRICT, **fields: object) -> bool:
    spec = cluster.task("want-0")
    assert isinstance(spec, TaskSpec)
    cluster.put_task(replace(spec, **fields))
    session = open_session(cluster, semantics=semantics)
    row = row_in(session, "want-0")
    job = session.job_of(row)
    assert job is not None
    return may_evict_for(session, row)


def test_a_pod_that_never_preempts_never_does() -> None:
    assert may(world())
    assert not may(world(), preemption_policy="Never")
    assert may(world(), preemption_policy="PreemptLowerPriority")


@pytest.mark.parametrize(("node", "strict", "blocked"), [("a", True, False), ("gone", True, False)])
def test_a_promise_that_came_to_nothing(node: str, strict: bool, blocked: bool) -> None:
    assert may(world(), nominated_node=node) == strict
    assert may(world(), BLOCKS, nominated_node=node) == blocked


@pytest.mark.parametrize(
    ("priority", "deleting", "ours", "waits"),
    [(1, True, True, True), (10, True, True, False), (1, False, True, False), (1, True, False, False)],
)
def test_it_waits_while_lower_pods_leave_the_promised_node(priority: int, deleting: bool, ours: bool, waits: bool) -> None:
    cluster = world()
    leaving = task(
        "leaving", shape(cpu=4), "", "a", status=TaskStatus.RELEASING, pod_priority=priority, deleting=deleting, disruption_target=ours
    )
    cluster.put_task(leaving)
    assert may(cluster, nominated_node="a") == (not waits)


HARD, SOFT, KAI = (
    TopologyDemand(highest_tier=1),
    TopologyDemand(highest_tier=1, hard=False),
    TopologyDemand(topology="t", required="rack"),
)


@pytest.mark.parametrize(
    ("job", "part", "needs"),
    [(None, None, False), (HARD, None, True), (SOFT, None, False), (KAI, None, False), (None, HARD, True), (SOFT, SOFT, False)],
)
def test_jobs_that_must_lie_together(job: TopologyDemand | None, part: TopologyDemand | None, needs: bool) -> None:
    cluster = with_nodes(("a", {"cpu": 1}))
    cluster.put_job(JobSpec("ns/j", "default", topology=job, sub_groups=(SubGroupSpec("p", topology=part),)))
    (found,) = open_session(cluster).all_jobs()
    assert needs_domain(found) == needs
