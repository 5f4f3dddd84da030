"""Jobs that never start are found by a bound on room; what the bound finds does not start on the empty cluster."""

from __future__ import annotations

import pytest
from tests.worlds.explained_clusters import POLICIES, World

import navarch
from navarch.engine.never import never_starts
from navarch.explanation.explain import reading
from navarch.explanation.nodes import opened
from navarch.testing.builders import Builder, node, pod, pod_group


def gang(size: int, cpu: int) -> list[Builder]:
    return [pod_group("g", size), *(pod(f"g-{i}").in_group("g").cpu(cpu) for i in range(size))]


def why(objects: list[Builder]) -> str:
    session = opened(reading(objects).run)
    reason = never_starts(session, next(job for job in session.jobs_with_pending() if job.key == "default/g"))
    return reason.message if reason else ""


def test_a_gang_that_is_larger_than_the_cluster() -> None:
    nodes = [node("n").cpu(4), node("m").cpu(4)]
    assert why([*nodes, *gang(4, 2)]) == ""
    assert why([*nodes, *gang(5, 2)]) == "never: the empty cluster has room for 4 of the 5 pods that it needs"


def test_what_others_hold_does_not_count() -> None:
    assert why([node("n").cpu(4), pod("holds").cpu(4).on("n"), *gang(2, 2)]) == ""


def test_a_selector_that_no_node_has() -> None:
    objects: list[Builder] = [node("n").cpu(4), pod_group("g", 1), pod("g-0").in_group("g").cpu(1).select("a", "b")]
    assert why(objects).startswith("never: the empty cluster has room for 0 of the 1")


@pytest.mark.parametrize("policy", POLICIES)
def test_what_the_bound_finds_is_proved_impossible(policy: str) -> None:
    for seed in range(40, 46):
        world = World(seed, policy)
        session = opened(reading(world.objects, POLICIES[policy]).run)
        found = [job.key for job in session.jobs_with_pending() if job.key.startswith("default/j") and never_starts(session, job)]
        for key in found[:1]:
            answer = navarch.explain(world.objects, key, POLICIES[policy], trials=6, seconds=600)
            assert answer.state == "impossible", (seed, key)
