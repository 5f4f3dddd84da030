"""Demand that no node could ever meet: what counts as such, and that it moves no share in strict mode."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.kai_cluster import CLUSTER, TEAMS, group, worker, workers

import navarch
from navarch.engine.policy.presets import KAI_BUILT_IN
from navarch.testing.builders import node, pod, pod_group

KAI: dict[str, Any] = dict(KAI_BUILT_IN)
STRICT = {**KAI, "compat": "strict"}


def fair_share(policy: Any, *objects: Any) -> dict[str, float]:
    record = navarch.plan([*CLUSTER, *TEAMS, *objects], policy=policy).records[0]
    return {figures.queue: (figures.fair_share or {})["nvidia.com/gpu"] for figures in record.queues if figures.fair_share}


def test_kai_divides_what_can_be_used() -> None:
    wants = [group("never", 1), worker("never-0", "never", 100).select("zone", "none")]
    works = [group("works", 16, "speech"), *workers("works", 16, 1)]
    assert fair_share(STRICT, *wants, *works)["vision"] == 0
    assert fair_share(STRICT, *wants, *works)["speech"] == 16_000
    assert fair_share(KAI, *wants, *works)["vision"] == 8_000


def requested(*objects: Any) -> dict[str, float]:
    record = navarch.plan(objects, policy="navarch").records[0]
    return {figures.queue: figures.deserved.get("cpu", 0.0) for figures in record.queues}


@pytest.mark.parametrize(
    ("pods", "cpu", "least", "due"),
    [
        (1, "4", 1, 4000.0),
        (1, "5", 1, 0.0),
        (2, "4", 2, 8000.0),
        (3, "4", 3, 0.0),
        (3, "4", 2, 8000.0),
        (8, "1", 8, 8000.0),
        (9, "1", 9, 0.0),
    ],
)
def test_gangs_that_the_empty_cluster_could_not_hold_count_for_nothing(pods: int, cpu: str, least: int, due: float) -> None:
    members = [pod(f"g-{number}").cpu(cpu).in_group("g") for number in range(pods)]
    found = requested(node("n1").cpu("4"), node("n2").cpu("4"), pod_group("g", least), *members)
    assert found["default"] == due
