"""What a waiting job is said to need does not change while the cause stays, however many jobs come and go around it."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from navarch.engine.record import CycleRecord
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.simulation import Simulation
from navarch.testing.builders import node, queue
from navarch.views.prospects import prospects

CYCLES = 200
SETTLED = 60
"""Cycles until the cluster is full and the gang waits."""


class Watcher:
    """Writes down what the waiting gang is told after each cycle."""

    def __init__(self) -> None:
        self.simulation: Simulation | None = None
        self.said: list[str] = []

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None:
        assert self.simulation is not None
        one = self.simulation
        found = prospects(one.cluster, one.policy, one.registry, now).get("default/bert")
        self.said.append(found.why if found is not None else "")

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: None


@pytest.mark.parametrize(
    ("policy_name", "limit"), [("navarch", None), ("navarch", "16"), ("volcano", None), ("volcano", "16"), ("packing", None)]
)
def test_the_sentence_stays_through_churn(policy_name: str, limit: str | None) -> None:
    registry, random = installed(()), Random(7)
    policy = read_policy(policy_name, registry)
    production = queue("production", 1)
    if limit:
        production.child("spec")["capability"] = {"nvidia.com/gpu": limit}
    objects = [production, queue("other", 3), *(node(f"n{number}").gpu(8).cpu(64) for number in range(4))]
    cluster = Inventory([Document(each) for each in objects], settings_for(policy)).cluster
    jobs = [
        TraceJob(
            name=f"j{number}",
            submit=float(number),
            duration=random.uniform(20, 60),
            pods=(PodSet(1, gpus=random.choice((1, 2, 4))),),
            queue="other",
        )
        for number in range(3 * CYCLES)
    ]
    bert = TraceJob(name="bert", submit=40.5, duration=60.0, pods=(PodSet(12, gpus=2),), queue="production")
    watcher = Watcher()
    simulation = watcher.simulation = Simulation(cluster, policy, registry, watcher)
    for _ in simulation.steps(sorted([*jobs, bert], key=lambda job: job.submit)):
        if len(watcher.said) >= SETTLED + CYCLES:
            break
    said = watcher.said[SETTLED : SETTLED + CYCLES]
    forms = {re.sub(r"[\d.]+( is)?", "N", each).replace("N are", "N") for each in said}
    expected = f"needs 24 GPUs: queue production may have {limit} and holds 0" if limit else "needs 24 GPUs: "
    assert len(said) == CYCLES and len(forms) == 1 and all(each.startswith(expected) for each in said), forms
