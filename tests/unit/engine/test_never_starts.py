"""Jobs that never start are found by a bound on room; what the bound finds does not start on the empty cluster."""

from __future__ import annotations

import pytest
from tests.worlds.explained_clusters import POLICIES, World

import navarch
from navarch.engine.never_starts import never_starts
from navarch.explanation.explain import reading
from navarch.explanation.nodes import opened
from navarch.testing.builders import Builder, PodBuilder, node, pod, pod_group


def gang(size: int, cpu: int) -> list[Builder]:
    return [pod_group("g", size), *(pod(f"g-{i}").in_group("g").cpu(cpu) for i in range(size))]


def why(objects: list[Builder]) -> str:
    session = opened(reading(objects).run)
    reason = never_starts(session, next(job for job in session.jobs_with_pending() if job.key == "default/g"))
    return reason.message if reason else ""


def test_a_gang_that_is_larger_than_the_cluster() -> None:
    nodes = [node("n").cpu(4), node("m").cpu(4)]
    assert why([*nodes, *gang(4, 2)]) == ""
    assert why([*nodes, *gang(5, 2)]) == "cannot start: needs 10 CPUs, the cluster has 8"


def test_resources_held_by_others_do_not_make_a_job_impossible() -> None:
    assert why([node("n").cpu(4), pod("holds").cpu(4).on("n"), *gang(2, 2)]) == ""


def test_a_selector_that_no_node_has() -> None:
    objects: list[Builder] = [node("n").cpu(4), pod_group("g", 1), pod("g-0").in_group("g").cpu(1).select("a", "b")]
    assert why(objects) == "cannot start: no node has the label a"


def single(wanted: PodBuilder) -> list[Builder]:
    return [pod_group("g", 1), wanted.in_group("g")]


def test_each_cause_is_one_sentence_with_the_nearest_name() -> None:
    nodes = [node("n").cpu(4).gpu(8).label("gpu-type", "a100"), node("m").cpu(8).label("gpu-type", "h100")]
    assert why([*nodes, *single(pod("g-0").cpu(9))]) == "cannot start: one pod needs 9 CPUs, the largest node has 8"
    found = why([*nodes, *single(pod("g-0").request("nvidia.com/gpus", 1))])
    assert found == "cannot start: no node offers nvidia.com/gpus; did you mean nvidia.com/gpu?"
    found = why([*nodes, *single(pod("g-0").cpu(1).select("gpu-tpye", "a100"))])
    assert found == "cannot start: no node has the label gpu-tpye; did you mean gpu-type?"
    found = why([*nodes, *single(pod("g-0").cpu(1).select("gpu-type", "a10"))])
    assert found == "cannot start: no node has the label gpu-type=a10; did you mean gpu-type=a100?"
    found = why([*nodes, *single(pod("g-0").cpu(5).select("gpu-type", "a100"))])
    assert found == "cannot start: one pod needs 5 CPUs, the largest node that it may use has 4"
    found = why([node("n").cpu(3), node("m").cpu(3), *gang(3, 2)])
    assert found == "cannot start: the empty cluster has room for 2 of the 3 pods that it needs"


def test_a_gang_that_lacks_pods_is_not_impossible() -> None:
    assert why([node("n").cpu(4), pod_group("g", 3), pod("g-0").in_group("g").cpu(1)]) == ""


def test_a_node_that_is_cordoned_may_come_back() -> None:
    assert why([node("n").cpu(4).cordoned(), *gang(2, 2)]) == ""
    assert why([node("n").cpu(4).cordoned(), *gang(3, 2)]) == "cannot start: needs 6 CPUs, the cluster has 4"


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_that_never_start_are_proved_impossible_by_explain(policy: str) -> None:
    for seed in range(40, 46):
        world = World(seed, policy)
        session = opened(reading(world.objects, POLICIES[policy]).run)
        found = [job.key for job in session.jobs_with_pending() if job.key.startswith("default/j") and never_starts(session, job)]
        for key in found[:1]:
            answer = navarch.explain(world.objects, key, POLICIES[policy], trials=6, seconds=600)
            assert answer.state == "impossible", (seed, key)
