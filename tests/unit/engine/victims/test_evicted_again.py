"""A job that is evicted again and again is protected for a growing time, and whoever waits for it is told."""

from __future__ import annotations

from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, apply, evicted, shape, waits, with_nodes

from navarch.engine.cycle import decide
from navarch.engine.record import CycleRecord
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.offline.policies import read_policy


class Struggle:
    """A gang that runs on the only node, and one urgent job after the other for which it has to go."""

    def __init__(self, **policy: str) -> None:
        self.cluster: Cluster = with_nodes(("n", {"cpu": 2}))
        self.registry = installed(())
        tiers = [{"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "predicates"}, {"name": "proportion"}]}]
        self.policy = read_policy({"actions": "allocate, gangpreempt", "tiers": tiers, **policy}, self.registry)
        self.number = 0
        add_job(self.cluster, "gang", [shape(cpu=1)] * 2)

    def cycle(self, now: float) -> CycleRecord:
        record = decide(self.cluster.snapshot(), self.policy, self.registry, now)
        apply(self.cluster, record)
        for bind in record.binds:
            task = self.cluster.task(bind.uid)
            assert task is not None
            self.cluster.put_task(replace(task, started=now))
        for decision in record.jobs:
            spec = self.cluster.jobs.specs[self.cluster.jobs.rows.of[decision.job]]
            assert spec is not None
            self.cluster.put_job(replace(spec, phase=decision.phase, conditions=decision.conditions))
        return record

    def evicts(self, now: float) -> bool:
        """An urgent job comes, runs for a second if it gets its place, and ends; then the gang starts again."""
        self.number += 1
        name = f"urgent-{self.number}"
        add_job(self.cluster, name, [shape(cpu=2)], priority=9)
        self.last = self.cycle(now)
        gone = bool(evicted(self.last))
        if gone:
            self.cycle(now)
        self.cluster.remove_task(f"{name}-0")
        self.cluster.remove_job(f"ns/{name}")
        self.cycle(now + 1)
        return gone


def test_each_eviction_in_a_row_protects_for_longer() -> None:
    struggle = Struggle()
    struggle.cycle(0)
    assert struggle.evicts(10) and struggle.evicts(20), "the second eviction is the first in a row"
    assert not struggle.evicts(60), "it started at 21"
    assert [text for text in waits(struggle.last, f"urgent-{struggle.number}") if "in a row" in text] == [
        "ns/gang was evicted 2 times in a row, so it is protected until 1970-01-01T00:01:21Z"
    ]
    assert struggle.evicts(82)
    assert not struggle.evicts(82 + 119)
    assert struggle.evicts(82 + 122)


def test_a_job_that_had_its_run_time_is_evicted_as_if_for_the_first_time() -> None:
    struggle = Struggle()
    struggle.cycle(0)
    assert struggle.evicts(601) and struggle.evicts(602 + 601) and struggle.evicts(1204 + 601)


def test_a_policy_may_turn_the_protection_off() -> None:
    struggle = Struggle(repeatedEvictions="allow")
    struggle.cycle(0)
    assert all(struggle.evicts(now) for now in (10, 20, 30, 40))
