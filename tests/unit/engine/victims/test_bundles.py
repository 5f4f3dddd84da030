"""Victims in bundles: what a gang can lose and live, and the rest."""

from __future__ import annotations

import math

import pytest
from tests.worlds.small_cluster import add_job, job_in, open_session, row_in, shape, task, with_nodes

from navarch.engine.semantics import STRICT, Semantics
from navarch.engine.session import Session
from navarch.engine.victims.bundles import Bundle, allowed_parts, split
from navarch.engine.victims.search import total_request
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, SubGroupSpec, TaskSpec
from navarch.model.status import TaskStatus


def pictured(session: Session, bundles: list[Bundle]) -> list[tuple[list[str], bool]]:
    return [([session.task(t).uid for t in b.tasks], b.whole) for b in bundles]


def split_all(cluster: Cluster, name: str = "j", semantics: Semantics = STRICT) -> list[tuple[list[str], bool]]:
    session = open_session(cluster, semantics=semantics)
    job = job_in(session, name)
    return pictured(session, split(session, job, job.tasks_in(TaskStatus.RUNNING)))


@pytest.mark.parametrize(
    ("minimum", "bundles"),
    [
        (0, [(["j-2", "j-1", "j-0"], False)]),
        (1, [(["j-2", "j-1"], False), (["j-0"], True)]),
        (3, [(["j-2", "j-1", "j-0"], True)]),
        (4, [(["j-2", "j-1", "j-0"], False)]),
    ],
)
def test_safe_bundles_hold_the_pods_above_the_minimum(minimum: int, bundles: list[tuple[list[str], bool]]) -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    add_job(cluster, "j", [shape(cpu=1)] * 3, node="n", minimum=minimum)
    assert split_all(cluster) == bundles


def test_the_lowest_tasks_are_given_first() -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    cluster.put_job(JobSpec("ns/j", "default", min_member=1))
    for name, priority in (("a", 5), ("b", 1), ("c", 3)):
        cluster.put_task(task(name, shape(cpu=1), "ns/j", "n", priority=priority))
    assert split_all(cluster) == [(["b", "c"], False), (["a"], True)]


def elastic(*pods: tuple[str, float | None]) -> Cluster:
    """A job that needs one pod, and its pods: name and start. UIDs run against the names."""
    cluster = with_nodes(("n", {"cpu": 64}))
    cluster.put_job(JobSpec("ns/j", "default", min_member=1))
    for number, (name, started) in enumerate(pods):
        spec = TaskSpec(f"uid-{number}", "ns", name, shape(cpu=1), job="ns/j", node="n", status=TaskStatus.RUNNING, started=started)
        cluster.put_task(spec)
    return cluster


def names(cluster: Cluster, semantics: Semantics = STRICT) -> list[str]:
    uids = [uid for tasks, _ in split_all(cluster, semantics=semantics) for uid in tasks]
    return [spec.name for uid in uids if (spec := cluster.task(uid)) is not None]


@pytest.mark.parametrize(
    ("pods", "lost"),
    [
        ([(f"j-worker-{i}", 100.0) for i in (0, 2, 9, 10)], "10 9 2 0"),
        ([(f"web-{i}", 100.0) for i in (0, 2, 9, 10)], "10 9 2 0"),
        ([("w-0", 130.0), ("w-1", 100.0), ("w-2", 115.0)], "2 1 0"),
        ([("w-0", 100.0), ("w-1", 300.0), ("w-2", 160.0)], "1 2 0"),
        ([("w-0", 100.0), ("w-1", None), ("w-2", 160.0), ("w-3", None)], "3 1 2 0"),
        ([("a-launcher", 100.0), ("w-1", 100.0), ("w-0", 100.0)], "1 0 launcher"),
        ([("m-0", 100.0), ("w-0", 100.0)], "0 0"),
    ],
)
def test_a_gang_loses_what_it_got_last(pods: list[tuple[str, float | None]], lost: str) -> None:
    found = names(elastic(*pods))
    assert [name.rpartition("-")[2] for name in found] == lost.split()
    assert found[-1] == pods[0][0], "the first of them stays longest"


def test_a_peer_takes_them_by_uid() -> None:
    cluster = elastic(("w-1", 300.0), ("w-0", 100.0), ("w-2", 200.0))
    assert names(cluster, Semantics(gangs_lose_newest_first=False)) == ["w-1", "w-0", "w-2"]
    assert names(cluster) == ["w-1", "w-2", "w-0"]


def test_roles_keep_their_minimum() -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    cluster.put_job(JobSpec("ns/j", "default", min_member=2, roles=(("master", 1), ("worker", 1))))
    for name, role in (("m", "master"), ("w1", "worker"), ("w2", "worker"), ("x", "")):
        cluster.put_task(task(name, shape(cpu=1), "ns/j", "n", role=role))
    assert split_all(cluster) == [(["x", "w2"], False), (["w1", "m"], True)]


def test_as_many_parts_as_are_needed_stay_unbroken() -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    policy = SubGroupSpec("rack", min_member=2, match_label_keys=("rack",), min_groups=1)
    cluster.put_job(JobSpec("ns/j", "default", min_member=1, sub_groups=(policy,)))
    for name, rack in (("a0", "a"), ("b0", "b"), ("a1", "a"), ("b1", "b")):
        cluster.put_task(task(name, shape(cpu=1), "ns/j", "n", labels={"rack": rack}))
    assert split_all(cluster) == [(["b1", "b0"], False), (["a1", "a0"], True)]


def test_a_part_gives_what_it_has_above_its_minimum_and_stays_unbroken() -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    parts = (SubGroupSpec("head", min_member=1, min_groups=1), SubGroupSpec("workers", min_member=1, min_groups=1))
    cluster.put_job(JobSpec("ns/j", "default", min_member=2, sub_groups=parts))
    for name, part in (("h", "head"), ("w0", "workers"), ("w1", "workers"), ("w2", "workers")):
        cluster.put_task(task(name, shape(cpu=1), "ns/j", "n", sub_group=part))
    assert split_all(cluster) == [(["w2", "w1"], False), (["w0", "h"], True)]


def test_a_whole_bundle_stays_whole_or_falls_away_and_a_safe_one_shrinks() -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    add_job(cluster, "j", [shape(cpu=1)] * 4, node="n", minimum=2)
    session = open_session(cluster)
    job = job_in(session, "j")
    bundles = split(session, job, job.tasks)
    row = row_in(session, "j-3")
    assert pictured(session, allowed_parts(bundles, {row, *bundles[1].tasks[:1]})) == [(["j-3"], False)]
    assert pictured(session, allowed_parts(bundles, set(job.tasks))) == pictured(session, bundles)
    assert allowed_parts(bundles, set()) == []


def test_the_return_of_ending_a_gang() -> None:
    cluster = with_nodes(("n", {"cpu": 64}), ("m", {"cpu": 64}))
    add_job(cluster, "small", [shape(cpu=2)] * 2, node="n")
    add_job(cluster, "large", [shape(cpu=2)] * 8, node="n")
    add_job(cluster, "spare", [shape(cpu=2)], node="n", minimum=0)
    add_job(cluster, "want", [shape(cpu=4)])
    session = open_session(cluster)
    need = total_request(session, [row_in(session, "want-0")])
    returns = {}
    for name in ("small", "large", "spare"):
        (bundle,) = split(session, job_in(session, name), job_in(session, name).tasks)
        returns[name] = bundle.return_on(session, need)
    assert returns["spare"] == math.inf
    assert returns["small"] > returns["large"] > 0
