"""Sub-groups: the pods of each, and when enough of them are there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import job_in, open_session, row_in, shape, task, with_nodes

from navarch.engine.gangs.sub_jobs import enough_sub_jobs, needed_first, still_needed
from navarch.engine.job import Job
from navarch.engine.session import Session
from navarch.model.spec import JobSpec, LabelSelector, Requirement, SubGroupSpec
from navarch.plugins.gang import Gang

ROLE = LabelSelector((Requirement("role", "In", ("worker",)),))
BY_RACK = SubGroupSpec("rack", min_member=2, selector=ROLE, match_label_keys=("rack",))


def world(*policies: SubGroupSpec, minimum: int = 1, **pods: dict[str, str]) -> Session:
    cluster = with_nodes(("a", {"cpu": 8}))
    cluster.put_job(JobSpec("ns/j", "default", namespace="ns", name="j", min_member=minimum, phase="Inqueue", sub_groups=policies))
    for name, labels in pods.items():
        cluster.put_task(task(name, shape(cpu=1), "ns/j", labels=labels))
    return open_session(cluster, Gang)


def parts(job: Job) -> dict[str, list[str]]:
    return {sub.name: [job.session.task(t).uid for t in sub.tasks] for sub in job.sub_jobs}


def test_without_policies_the_job_is_its_own_part() -> None:
    job = job_in(world(minimum=2, a={}, b={}), "j")
    (whole,) = job.sub_jobs
    assert parts(job) == {"": ["a", "b"]}
    assert whole.min_member == 2


def test_pods_are_split_by_the_values_of_the_keys_and_the_rest_is_the_default_part() -> None:
    session = world(
        BY_RACK,
        a={"role": "worker", "rack": "1"},
        b={"role": "worker", "rack": "2"},
        c={"role": "worker", "rack": "1"},
        driver={"role": "driver", "rack": "1"},
        lost={"role": "worker"},
    )
    job = job_in(session, "j")
    assert parts(job) == {"": ["driver", "lost"], "rack-1": ["a", "c"], "rack-2": ["b"]}
    assert [sub.match_index for sub in job.sub_jobs] == [0, 1, 2]
    assert [sub.min_member for sub in job.sub_jobs] == [1, 2, 2]


def test_the_first_policy_that_matches_wins_and_a_selector_without_keys_makes_no_part() -> None:
    session = world(
        replace(BY_RACK, name="none", match_label_keys=()), BY_RACK, replace(BY_RACK, name="second"), a={"role": "worker", "rack": "x"}
    )
    assert parts(job_in(session, "j")) == {"rack-x": ["a"]}


def test_a_pod_may_name_its_part() -> None:
    cluster = with_nodes(("a", {"cpu": 8}))
    cluster.put_job(JobSpec("ns/j", "default", sub_groups=(SubGroupSpec("left"), SubGroupSpec("right")), phase="Inqueue"))
    cluster.put_task(task("a", shape(cpu=1), "ns/j", sub_group="right"))
    cluster.put_task(task("b", shape(cpu=1), "ns/j", sub_group="unknown"))
    assert parts(job_in(open_session(cluster), "j")) == {"": ["b"], "right": ["a"]}


def test_a_part_is_ready_and_pipelined_and_valid_by_its_own_minimum() -> None:
    session = world(BY_RACK, a={"role": "worker", "rack": "1"}, b={"role": "worker", "rack": "1"}, c={"role": "worker", "rack": "2"})
    job = job_in(session, "j")
    one, two = job.sub_jobs
    assert (one.is_valid, two.is_valid) == (True, False)
    assert one.missing == 2
    rows = [row_in(session, uid) for uid in ("a", "b")]
    statement = session.statement()
    statement.allocate(job, rows[:1], [0], session.class_of(rows[0]))
    assert (one.missing, one.is_ready, one.is_pipelined) == (1, False, False)
    statement.pipeline(job, rows[1:], [0], session.class_of(rows[1]))
    assert (one.is_ready, one.is_pipelined) == (False, True)


@pytest.mark.parametrize(("wanted", "enough"), [(0, True), (1, True), (2, False)])
def test_enough_parts_of_each_policy(wanted: int, enough: bool) -> None:
    policy = replace(BY_RACK, min_groups=wanted)
    session = world(policy, a={"role": "worker", "rack": "1"}, b={"role": "worker", "rack": "1"}, c={"role": "worker", "rack": "2"})
    assert enough_sub_jobs(job_in(session, "j"), "is_valid") == enough


def test_the_parts_that_are_needed_come_first() -> None:
    policy = replace(BY_RACK, min_member=1, min_groups=1)
    session = world(policy, a={"role": "worker", "rack": "2"}, b={"role": "worker", "rack": "1"}, free={"role": "driver"})
    job = job_in(session, "j")
    assert [sub.name for sub in still_needed(session, job)] == ["rack-1"]
    assert [sub.name for sub in needed_first(session, job)] == ["rack-1", "", "rack-2"]
    row = row_in(session, "b")
    session.statement().allocate(job, [row], [0], session.class_of(row))
    assert still_needed(session, job) == []


def test_a_job_without_pods_has_one_empty_part() -> None:
    job = job_in(world(BY_RACK), "j")
    assert parts(job) == {"": []}
    assert job.sub_jobs[0].priority == 0
