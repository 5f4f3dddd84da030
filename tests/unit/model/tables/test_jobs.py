"""The job table: sums by status, rows that wait for their group, rows that are reused."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from navarch.model.resources import ResourceSpace, requests_from
from navarch.model.spec import Condition, JobSpec, SubGroupSpec
from navarch.model.status import STATUS_COUNT, TaskStatus
from navarch.model.tables.jobs import JobTable

JOB = JobSpec("ns/j", "q", min_member=2)
REQUEST = np.array([1000, 0, 1])


def table() -> JobTable:
    return JobTable(ResourceSpace())


def test_a_tasks_status_decides_which_sum_it_joins() -> None:
    for status in TaskStatus:
        jobs = table()
        row = jobs.put(JOB)
        jobs.count(row, 7, status, REQUEST, False, 1)
        assert jobs.counts[row].tolist() == [int(s == status) for s in range(STATUS_COUNT)]
        holds = status in (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
        assert jobs.allocated[:, row].tolist() == (REQUEST.tolist() if holds else [0, 0, 0])
        assert jobs.pending[:, row].tolist() == (REQUEST.tolist() if status == TaskStatus.PENDING else [0, 0, 0])


def test_only_pending_tasks_that_ask_for_nothing_are_counted_as_such() -> None:
    jobs = table()
    row = jobs.put(JOB)
    jobs.count(row, 1, TaskStatus.PENDING, REQUEST, True, 1)
    jobs.count(row, 2, TaskStatus.RUNNING, REQUEST, True, 1)
    assert jobs.best_effort_pending[row] == 1


def test_tasks_may_arrive_before_their_group_and_outlive_it() -> None:
    jobs = table()
    row = jobs.row_for("ns/j")
    jobs.count(row, 1, TaskStatus.PENDING, REQUEST, False, 1)
    assert jobs.queue[row] == -1, "without a group it takes no part"
    assert jobs.put(JOB) == row
    assert jobs.queue[row] >= 0
    jobs.remove("ns/j")
    assert jobs.queue[row] == -1
    assert jobs.pending[0, row] == 1000, "its pods are still there"
    jobs.count(row, 1, TaskStatus.PENDING, REQUEST, False, -1)
    assert jobs.row_for("ns/next") == row


def test_removing_an_unknown_job_changes_nothing() -> None:
    jobs = table()
    jobs.remove("ns/unknown")
    assert jobs.rows.top == 0


def test_a_reused_row_knows_nothing_of_the_job_before() -> None:
    jobs = table()
    before = replace(
        JOB,
        min_member=9,
        phase="Running",
        min_resources=requests_from({"cpu": 8}),
        conditions=(Condition("Scheduled", "True", ""),),
        stale_since=1.0,
        sub_groups=(SubGroupSpec("leaf"),),
    )
    row = jobs.put(before)
    jobs.remove("ns/j")
    assert jobs.put(JobSpec("ns/other", "p", min_member=1)) == row
    assert jobs.keys[row] == "ns/other"
    assert jobs.min_member[row] == 1
    assert not jobs.min_resources[:, row].any()
    assert not jobs.has_min_resources[row]
    assert not jobs.scheduled[row] and not jobs.stale[row] and not jobs.in_parts[row]
    assert list(jobs.phases)[jobs.phase[row]] == ""
    assert list(jobs.queue_names)[jobs.queue[row]] == "p"


def test_a_group_that_no_longer_says_what_it_needs_needs_nothing_known() -> None:
    jobs = table()
    row = jobs.put(replace(JOB, min_resources=requests_from({"cpu": 8})))
    assert jobs.min_resources[0, row] == 8000
    jobs.put(JOB)
    assert not jobs.min_resources[:, row].any()


def test_the_tasks_that_a_snapshot_holds_do_not_change_with_the_table() -> None:
    jobs = table()
    row = jobs.put(JOB)
    jobs.count(row, 1, TaskStatus.PENDING, REQUEST, False, 1)
    jobs.epoch += 1  # a snapshot was taken
    seen = jobs.tasks[row]
    jobs.count(row, 2, TaskStatus.PENDING, REQUEST, False, 1)
    assert list(seen) == [1]
    assert list(jobs.tasks[row]) == [1, 2]


def test_a_resource_learned_late_has_a_row_in_every_sum() -> None:
    jobs = table()
    row = jobs.put(JOB)
    jobs.space.learn((("nvidia.com/gpu", 1),))
    jobs.count(row, 1, TaskStatus.RUNNING, np.array([0, 0, 1, 1000]), False, 1)
    assert jobs.allocated[3, row] == 1000
    jobs.count(row, 2, TaskStatus.RUNNING, REQUEST, False, 1)  # a request from before that name was known
    assert jobs.allocated[:4, row].tolist() == [1000, 0, 2, 1000]


def test_many_jobs_keep_their_figures_while_the_table_grows() -> None:
    jobs = table()
    for i in range(40):
        row = jobs.put(JobSpec(f"ns/{i}", f"q{i % 3}", min_member=i))
        jobs.count(row, i, TaskStatus.RUNNING, np.array([i, 0, 1]), False, 1)
    assert jobs.min_member[:40].tolist() == list(range(40))
    assert jobs.allocated[0, :40].tolist() == list(range(40))
    assert jobs.queue[:4].tolist() == [0, 1, 2, 0]
