"""A snapshot that copies only the changed rows of the one before equals a full copy."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.small_cluster import shape

from navarch.engine.cycle import decide
from navarch.engine.policy import Policy, preset
from navarch.engine.session import Session
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.snapshot import Snapshot
from navarch.model.spec import Condition, JobSpec, NodeSpec, QueueSpec, SubGroupSpec, TaskSpec
from navarch.model.status import TaskStatus
from navarch.model.tables import incremental_copy, node_copies
from navarch.model.tables.columns import sums_by_group
from navarch.offline.replay import decisions

REGISTRY = installed()
POLICY = preset("navarch", REGISTRY.catalogue())
SHAPES = [shape(cpu="1"), shape(cpu="500m", memory="1Gi"), shape(), shape(cpu="1", nvidia_com="1")]

PARTS = (SubGroupSpec("x"), SubGroupSpec("y", 2))
READY = "tasks in gang are ready to be scheduled"
STANDINGS = [status for status in TaskStatus if status not in (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)]
"""The two left out live in a session only."""


def change(rng: Random, cluster: Cluster) -> None:
    """One event as a watch might bring it: any object, in any order, known or not."""
    number = rng.randrange(24)
    job = f"ns/j{number % 7}"
    match rng.randrange(14):
        case 0:
            cluster.put_node(NodeSpec(f"n{number % 5}", allocatable=requests_from({"cpu": rng.choice((2, 8)), "pods": 9})))
        case 1 if rng.random() < 0.3:
            cluster.remove_node(f"n{number % 5}")
        case 2 | 3:
            least = rng.choice((None, requests_from({"cpu": 1, f"example.com/{rng.randrange(3)}": 1})))
            said = rng.choice(((), (Condition("Scheduled", "True", READY, ""),)))
            phase = rng.choice(("", "Pending", "Inqueue", "Running", "Completed"))
            queue = rng.choice(("a", "b", "missing"))
            cluster.put_job(
                JobSpec(
                    *(job, queue, rng.randint(0, 3), "ns", job[3:]),
                    phase=phase,
                    conditions=said,
                    min_resources=least,
                    stale_since=rng.choice((None, None, 0.5, -100.0)),
                    sub_groups=rng.choice(((), (), PARTS)),
                )
            )
        case 4:
            cluster.remove_job(job)
        case 5:
            cluster.remove_task(f"t{number}")
        case 6 | 7:
            cluster.jobs.hold(job, rng.random() < 0.7)
        case _:
            status = rng.choice(STANDINGS)
            node = f"n{rng.randrange(6)}" if status != TaskStatus.PENDING else ""
            cluster.put_task(
                TaskSpec(
                    uid=f"t{number}",
                    namespace="ns",
                    name=f"a-b-{number}",
                    shape=rng.choice(SHAPES),
                    job=rng.choice((job, "")),
                    node=node,
                    status=status,
                    priority=rng.randrange(3),
                    labels={"app": str(rng.randrange(3))},
                    sub_group=rng.choice(("", "x", "y")),
                    gates=rng.choice(((), ("gate",))),
                )
            )


def plain(snapshot: Snapshot) -> dict[str, Any]:
    """Everything in it, in values that compare."""
    out: dict[str, Any] = {}
    for part in ("nodes", "tasks", "jobs"):
        columns = getattr(snapshot, part)
        for name in (field.name for field in dataclasses.fields(columns)):
            value = vars(columns.marks) if name == "marks" else {name: getattr(columns, name)}
            for key, each in value.items():
                out[f"{part}.{key}"] = each.tolist() if isinstance(each, np.ndarray) else each
    for name in ("resource_names", "shapes", "queues", "objects", "identities"):
        out[name] = getattr(snapshot, name)
    apart = ("nodes._row", "jobs.left_out", "nodes.opening", "nodes.written", "nodes.read", "tasks.opening")
    return {name: value for name, value in out.items() if name not in apart}


def _opening_is_kept(snapshot: Snapshot) -> None:
    """The figures beside the columns that a session writes equal them, in arrays of their own."""
    assert not snapshot.nodes.nothing_leaves or not snapshot.nodes.releasing.any()
    for part in (snapshot.tasks, snapshot.nodes):
        assert part.opening is not None
        for name, kept in part.opening.items():
            assert np.array_equal(kept, getattr(part, name)) and not np.shares_memory(kept, getattr(part, name))


@given(st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_a_snapshot_made_of_the_last_one_is_the_same_as_a_new_one(seed: int) -> None:
    rng = Random(seed)
    kept, fresh = Cluster(), Cluster()
    for cluster in (kept, fresh):
        cluster.put_queue(QueueSpec("a", state="Open"))
        cluster.put_queue(QueueSpec("b", state="Open", weight=2))
    last: Snapshot | None = None
    for _ in range(12):
        for _ in range(rng.choice((0, 1, 2, 40))):
            state = rng.getstate()
            change(rng, kept)
            rng.setstate(state)
            change(rng, fresh)
        order = rng.choice(("name", "name", "listed"))
        many = rng.choice((0, incremental_copy.MANY))  # 0: always by changed rows
        with patch.object(incremental_copy, "MANY", many), patch.object(node_copies, "MANY", many):
            last = kept.snapshot(order, instead_of=last if rng.random() < 0.8 else None)
        other = fresh.snapshot(order)
        assert plain(last) == plain(other)
        _sums_are_right(last)
        _opening_is_kept(last)
        out = [row for row, spec in enumerate(last.jobs.specs) if spec is not None and rng.random() < 0.2]
        for snapshot in (last, other):
            for row in out:
                snapshot.jobs.leave_out(row)
        decided = [decisions(decide(each, POLICY, REGISTRY, 1.0, report_all=False)) for each in (last, other)]
        assert decided[0] == decided[1]
        _nothing_is_kept_back(fresh, out)


@pytest.mark.parametrize("name", ["volcano", "kube-batch", "kai", "kube-scheduler"])
@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_a_short_report_keeps_nothing_back_under_any_policy(name: str, seed: int) -> None:
    rng, cluster, policy = Random(seed), Cluster(), preset(name, REGISTRY.catalogue())
    cluster.put_queue(QueueSpec("a", state="Open"))
    cluster.put_queue(QueueSpec("b", state="Open", weight=2))
    for _ in range(4):
        for _ in range(30):
            change(rng, cluster)
        _nothing_is_kept_back(cluster, [], policy)


@given(st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_every_gang_that_is_below_its_minimum_is_among_those_that_may_be(seed: int) -> None:
    rng, cluster, policy = Random(seed), Cluster(), preset("kai", REGISTRY.catalogue())
    cluster.put_queue(QueueSpec("a", state="Open"))
    for _ in range(60):
        change(rng, cluster)
    session = Session(cluster.snapshot(), policy, REGISTRY, 1.0)
    below = [job.key for job in session.all_jobs() if job.tree.used and not job.tree.is_whole]
    assert set(below) <= {job.key for job in session.jobs_maybe_broken()}


def _nothing_is_kept_back(cluster: Cluster, out: list[int], policy: Policy = POLICY) -> None:
    """A job that a short report leaves out has no news in a full one."""
    reports = []
    for report_all in (False, True):
        snapshot = cluster.snapshot()
        for row in out:
            snapshot.jobs.leave_out(row)
        reports.append(decide(snapshot, policy, REGISTRY, 1.0, report_all=report_all).jobs)
    short = {decision.job for decision in reports[0]}
    for decision in reports[1]:
        assert decision.job in short or not (decision.changed or decision.reasons), decision


def _sums_are_right(snapshot: Snapshot) -> None:
    jobs = snapshot.jobs
    absent = np.array([row in jobs.held for row in range(len(jobs.specs))], dtype=bool)
    waits = (jobs.counts[:, TaskStatus.PENDING] > 0) & ~jobs.marks.absent
    assert not (absent & ~jobs.marks.absent).any()
    assert all(jobs.specs[row] is None for row in np.flatnonzero(jobs.marks.absent))
    assert (jobs.queue_allocated == sums_by_group(jobs.allocated, jobs.queue, len(jobs.queue_names))).all()
    assert (jobs.queue_pending == sums_by_group(jobs.pending, jobs.queue, len(jobs.queue_names))).all()
    assert jobs.queue_jobs.tolist() == [int((jobs.queue == number).sum()) for number in range(len(jobs.queue_names))]
    assert jobs.marks.waiting.tolist() == waits.tolist()


def test_a_snapshot_that_is_not_the_last_one_is_not_used_again() -> None:
    cluster = Cluster()
    cluster.put_queue(QueueSpec("a", state="Open"))
    cluster.put_job(JobSpec("ns/j", "a", 1, "ns", "j"))
    first = cluster.snapshot()
    second = cluster.snapshot()
    third = cluster.snapshot(instead_of=first)
    assert third.jobs.specs is not first.jobs.specs
    assert third.jobs.specs is not second.jobs.specs
    assert cluster.snapshot(instead_of=third).jobs.specs is third.jobs.specs
