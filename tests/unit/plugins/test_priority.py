"""priority: the order of jobs, and which may evict which."""

from __future__ import annotations

import pytest
from tests.worlds.small_cluster import add_job, job_in, open_session, row_in, shape, task, with_nodes

from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, SubGroupSpec
from navarch.plugins.priority import KubeBatchPriority, Priority


def world() -> Cluster:
    cluster = with_nodes(("n", {"cpu": 64}))
    for name, priority in (("low", 1), ("same", 5), ("high", 9)):
        add_job(cluster, name, [shape(cpu=1)], node="n", priority=priority)
    cluster.put_job(JobSpec("ns/mine", "default", priority=5, phase="Inqueue"))
    cluster.put_task(task("want", shape(cpu=1), "ns/mine", priority=5))
    cluster.put_task(task("worse", shape(cpu=1), "ns/mine", "n", priority=4))
    cluster.put_task(task("equal", shape(cpu=1), "ns/mine", "n", priority=5))
    cluster.put_task(task("foreign", shape(cpu=1), node="n", priority=-9))
    return cluster


ALL = ("low-0", "same-0", "high-0", "worse", "equal", "foreign")


def may_go(session: Session, preemptor: str, *candidates: str) -> list[str]:
    found = session.preemptable(row_in(session, preemptor), [row_in(session, uid) for uid in candidates])
    return [session.task(t).uid for t in found]


def test_jobs_and_tasks_go_by_priority() -> None:
    session = open_session(world(), Priority)
    assert [j.key for j in sorted(session.all_jobs(), key=session.job_order)] == ["ns/high", "ns/mine", "ns/same", "ns/low"]
    rows = [row_in(session, uid) for uid in ("worse", "equal", "want")]
    assert [session.task(t).uid for t in session.sorted_tasks(rows)] == ["equal", "want", "worse"]


def test_tasks_of_lower_jobs_may_go_and_worse_tasks_of_the_own_job() -> None:
    assert may_go(open_session(world(), Priority), "want", *ALL) == ["low-0", "worse"]


def test_for_kube_batch_tasks_of_the_own_job_never_go() -> None:
    assert may_go(open_session(world(), KubeBatchPriority), "want", *ALL) == ["low-0"]


@pytest.mark.parametrize(("reclaim", "names"), [(False, ["low-0"]), (True, ["low-0", "same-0", "high-0"])])
def test_whole_gangs_go_by_priority_inside_a_queue_only(reclaim: bool, names: list[str]) -> None:
    session = open_session(world(), Priority)
    rows = [row_in(session, uid) for uid in ("low-0", "same-0", "high-0")]
    found = session.unified_evictable(job_in(session, "mine"), rows, reclaim=reclaim)
    assert [session.task(t).uid for t in found] == names


def test_a_job_starves_while_any_of_its_pods_waits() -> None:
    session = open_session(world(), Priority)
    assert session.job_starving(job_in(session, "mine"))
    assert not session.job_starving(job_in(session, "low"))
    row = row_in(session, "want")
    session.statement().pipeline(job_in(session, "mine"), [row], [0], session.class_of(row))
    assert not session.job_starving(job_in(session, "mine"))


def test_sub_groups_go_by_their_highest_task() -> None:
    cluster = with_nodes(("n", {"cpu": 64}))
    policy = SubGroupSpec("g", match_label_keys=("part",))
    cluster.put_job(JobSpec("ns/j", "default", sub_groups=(policy,)))
    for name, part, priority in (("a", "1", 1), ("b", "2", 9), ("c", "2", 1)):
        cluster.put_task(task(name, shape(cpu=1), "ns/j", labels={"part": part}, priority=priority))
    session = open_session(cluster, Priority)
    parts = sorted(job_in(session, "j").sub_jobs, key=session.sub_job_order)
    assert [part.name for part in parts] == ["g-2", "g-1"]
