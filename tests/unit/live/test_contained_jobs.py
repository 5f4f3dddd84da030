"""The live core with a rule that raises on one job: the others are bound, the job is told and waits for its back-off."""

from __future__ import annotations

import pytest
from tests.worlds.live_parts.cluster_cache import SETTINGS, group, node, pod

from navarch.actions.allocate import Allocate
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.policy import load
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.registry import Registry
from navarch.live.core import LiveCore
from navarch.live.instructions import BindPod, Instruction, WriteRefusals
from navarch.live.ops.recording import encoded
from navarch.offline import replay

pytestmark = pytest.mark.contained


class Picky(Plugin):
    """Raises on a pod named bad"""

    name = "picky"

    def job_valid(self, job: Job) -> None:
        if job.key.endswith("/bad"):
            raise LookupError("no such thing")


def test_the_next_cycle_goes_on_without_the_job() -> None:
    emitted: list[Instruction] = []
    core = LiveCore(SETTINGS, emitted.append)
    core.start_leading(0.0)
    core.cache.put(node("n1"))
    for name in ("a", "bad", "c"):
        core.cache.put_pod(pod(name))
    policy, registry = Policy(("allocate",), ((PluginOption("picky"),),)), Registry([Picky], [Allocate])
    first = core.decide(policy, registry, 0.0)
    core.commit(first.record, 0.0)
    assert sorted(each.bind.name for each in emitted if isinstance(each, BindPod)) == ["a", "c"]
    told = [refusal for each in emitted if isinstance(each, WriteRefusals) for refusal in each.decision.refusals]
    assert [(each.pod, each.message.startswith("plugin picky (test_contained_jobs.py:")) for each in told] == [("default/bad", True)]
    assert not first.more, "nothing is left over that would start a cycle at once"
    (bad,) = core.queue.inactive()
    assert bad.endswith("/bad")
    core.cache.put_pod(pod("d"))
    second = core.decide(policy, registry, 1.0)
    assert (len(second.record.binds), second.record.failures) == (1, [])


def test_a_job_that_holds_nodes_is_set_aside_for_its_back_off_and_the_cycle_replays() -> None:
    core = LiveCore(SETTINGS, lambda instruction: None)
    core.start_leading(0.0)
    core.cache.put(node("n1"))
    core.cache.put(group("bad", 1))
    core.cache.put_pod(pod("bad-0", "n1", "Running", "bad"))
    core.cache.put_pod(pod("bad-1", group="bad"))
    registry = Registry([Picky], [Allocate])
    policy = load({"actions": "allocate", "tiers": [{"plugins": [{"name": "picky"}]}]}, registry.catalogue(), "test")
    outcomes = []
    for moment in (0.0, 1.0, 11.0, 12.0, 31.5):
        core.cache.put_pod(pod(f"good-{moment}"))
        cycle = core.decide(policy, registry, moment)
        outcomes.append((len(cycle.record.failures), cycle.record.set_aside, len(cycle.record.binds)))
        again = replay.again(replay.read(encoded(cycle)), registry, policy)
        assert replay.decisions(again) == replay.decisions(cycle.record)
        core.commit(cycle.record, moment)
    aside = ["default/bad"]
    assert outcomes == [(1, [], 1), (0, aside, 1), (1, [], 1), (0, aside, 0), (1, [], 0)], "the node has four cores"
