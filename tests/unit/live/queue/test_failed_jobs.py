"""Jobs on which a rule hung are set aside wherever their pods are, and a namespace with several of them as a whole."""

from __future__ import annotations

import pytest
from tests.worlds.live_parts.cluster_cache import SETTINGS, group, node, pod

from navarch.actions.allocate import Allocate
from navarch.engine.policy.values import Policy
from navarch.engine.record import CycleRecord, JobFailure
from navarch.engine.registry import Registry
from navarch.live.core import LiveCore
from navarch.live.instructions import BindPod, Instruction, WriteRefusals
from navarch.live.ops.recording import encoded
from navarch.offline import replay

pytestmark = pytest.mark.contained


class Scheduler:
    def __init__(self, *jobs: str) -> None:
        self.emitted: list[Instruction] = []
        self.core = LiveCore(SETTINGS, self.emitted.append)
        self.core.start_leading(0.0)
        self.core.cache.put(node("n1"))
        for job in jobs:
            self.core.cache.put(group(job, 1))
            self.core.cache.put_pod(pod(f"{job}-0", group=job))

    def cycle(self, now: float) -> CycleRecord:
        self.core.queue.flush_backoff(now)
        registry = Registry([], [Allocate])
        policy = Policy(("allocate",), (), document={"actions": "allocate"})
        cycle = self.core.decide(policy, registry, now)
        again = replay.again(replay.read(encoded(cycle)), registry, policy)
        assert replay.decisions(again) == replay.decisions(cycle.record)
        self.core.commit(cycle.record, now)
        return cycle.record

    def bound(self) -> list[str]:
        return sorted(each.bind.name for each in self.emitted if isinstance(each, BindPod))


def ended(*jobs: str, until: float) -> dict[str, tuple[float, JobFailure]]:
    return {f"default/{job}": (until, JobFailure(f"default/{job}", "trap.py:1", "it hung", took_too_long=True)) for job in jobs}


def test_a_job_that_ended_a_process_is_told_once_and_waits() -> None:
    scheduler = Scheduler("a", "bad")
    scheduler.core.failed_jobs.set_ended(ended("bad", until=600.0))
    first = scheduler.cycle(0.0)
    assert [failure.job for failure in first.failures] == ["default/bad"]
    told = [each.decision for each in scheduler.emitted if isinstance(each, WriteRefusals)]
    assert [(each.job, each.reasons[0].code) for each in told] == [("default/bad", "InternalError")]
    assert scheduler.bound() == ["a-0"]
    scheduler.core.cache.put_pod(pod("bad-0", group="bad"))  # a change of its own does not bring it back
    second = scheduler.cycle(599.0)
    assert (second.failures, second.set_aside) == ([], ["default/bad"])
    scheduler.cycle(600.0)
    assert scheduler.bound() == ["a-0", "bad-0"]


def test_three_of_one_namespace_cost_it_its_place() -> None:
    scheduler = Scheduler("a", "b", "c", "d")
    scheduler.core.failed_jobs.set_ended(ended("a", "b", until=600.0))
    assert scheduler.cycle(0.0).set_aside == ["default/a", "default/b"]
    assert scheduler.bound() == ["c-0", "d-0"]
    scheduler.core.cache.put(group("e", 1))
    scheduler.core.cache.put_pod(pod("e-0", group="e"))
    scheduler.core.failed_jobs.set_ended(ended("a", "b", "gone", until=600.0))
    told = {failure.job: failure.error for failure in scheduler.cycle(1.0).failures}
    assert told["default/e"] == "other jobs of the namespace ended the process"
    assert scheduler.bound() == ["c-0", "d-0"]
    scheduler.core.failed_jobs.set_ended({})
    scheduler.cycle(10.0)
    assert scheduler.bound() == ["a-0", "b-0", "c-0", "d-0"], "the node has four cores"
