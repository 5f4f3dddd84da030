"""Victims in bundles: what a gang can lose and live, and the rest."""

from __future__ import annotations

import math

import pytest
from tests.small_world import add_job, job_in, open_session, row_in, shape, task, with_nodes

from navarch.actions.bundles import Bundle, allowed_parts, split
from navarch.engine.session import Session
from navarch.engine.victims import total_request
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, SubGroupSpec
from navarch.model.status import TaskStatus


def pictured(session: Session, bundles: list[Bundle]) -> list[tuple[list[str], bool]]:
    return [([session.task(t).uid for t in b.tasks], b.whole) for b in bundles]


def split_all(cluster: Cluster, name: str = "j") -> list[tuple[list[str], bool]]:
    session = open_session(cluster)
    job = job_in(session, name)
    return pictured(session, split(session, job, job.tasks_in(TaskStatus.RUNNING)))


@pytest.mark.parametrize(
    ("minimum", "bundles"),
    [
        (0, [(["j-0", "j-1", "j-2"], False)]),
        (1, [(["j-0", "j-1"], False), (["j-2"], True)]),
        (3, [(["j-0", "j-1", "j-2"], True)]),
        (4, [(["j-0", "j-1", "j-2"], False)]),
    ],
)
def test_what_is_above_the_minimum_is_safe_and_a_gang_below_it_has_nothing_to_lose(
    minimum: int, bundles: list[tuple[list[str], bool]]
) -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    add_job(cluster, "j", [shape(cpu=1)] * 3, node="n", minimum=minimum)
    assert split_all(cluster) == bundles


def test_the_lowest_tasks_are_given_first() -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    cluster.put_job(JobSpec("ns/j", "default", min_member=1))
    for name, priority in (("a", 5), ("b", 1), ("c", 3)):
        cluster.put_task(task(name, shape(cpu=1), "ns/j", "n", priority=priority))
    assert split_all(cluster) == [(["b", "c"], False), (["a"], True)]


def test_roles_keep_their_minimum() -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    cluster.put_job(JobSpec("ns/j", "default", min_member=2, roles=(("master", 1), ("worker", 1))))
    for name, role in (("m", "master"), ("w1", "worker"), ("w2", "worker"), ("x", "")):
        cluster.put_task(task(name, shape(cpu=1), "ns/j", "n", role=role))
    assert split_all(cluster) == [(["w1", "x"], False), (["m", "w2"], True)]


def test_as_many_parts_as_are_needed_stay_unbroken() -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    policy = SubGroupSpec("rack", min_member=2, match_label_keys=("rack",), min_groups=1)
    cluster.put_job(JobSpec("ns/j", "default", min_member=1, sub_groups=(policy,)))
    for name, rack in (("a0", "a"), ("b0", "b"), ("a1", "a"), ("b1", "b")):
        cluster.put_task(task(name, shape(cpu=1), "ns/j", "n", labels={"rack": rack}))
    assert split_all(cluster) == [(["a0", "a1"], False), (["b0", "b1"], True)]


def test_a_whole_bundle_stays_whole_or_falls_away_and_a_safe_one_shrinks() -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    add_job(cluster, "j", [shape(cpu=1)] * 4, node="n", minimum=2)
    session = open_session(cluster)
    job = job_in(session, "j")
    bundles = split(session, job, job.tasks)
    row = row_in(session, "j-0")
    assert pictured(session, allowed_parts(bundles, {row, *bundles[1].tasks[:1]})) == [(["j-0"], False)]
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
