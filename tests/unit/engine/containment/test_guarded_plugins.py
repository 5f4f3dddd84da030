"""A plugin that cannot answer refuses what needs its consent, and the cycle goes on with the rest."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pytest
from tests.worlds.plugin_session import World

from navarch.actions.allocate import Allocate
from navarch.actions.preempt import Preempt
from navarch.engine.containment.guarded_plugins import GUARDED_POINTS, NEWS, PLUGIN_FAILED, REFUSALS
from navarch.engine.cycle import decide
from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import POINTS, PREFERENCES, Change, methods
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.queue import Queue
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.model.resources import BoolArray, requests_from
from navarch.model.spec import JobSpec, Shape, TaskSpec

pytestmark = pytest.mark.contained


def world(*jobs: str) -> World:
    made = World().node("n", cpu=64).queue("q")
    made.job("runs", phase="Running").pods("runs", 1, cpu=1, node="n")
    for job in jobs:
        made.job(job).pods(job, 1, cpu=1)
    return made


def many_namespaces(count: int) -> World:
    """One job in each namespace."""
    made = World().node("n", cpu=64).queue("q")
    for number in range(count):
        key = f"ns{number:02}/x"
        made.cluster.put_job(JobSpec(key, "q", namespace=f"ns{number:02}", name="x", phase="Inqueue"))
        task = TaskSpec(uid=key, namespace=f"ns{number:02}", name="x-0", shape=Shape(requests=requests_from({"cpu": "1"})), job=key)
        made.cluster.put_task(task)
    return made


def run(made: World, *kinds: type[Plugin]) -> CycleRecord:
    policy = Policy(("allocate", "preempt"), (tuple(PluginOption(kind.name) for kind in kinds),))
    return decide(made.cluster.snapshot(), policy, Registry(kinds, [Allocate, Preempt]), 0.0)


def bound(record: CycleRecord) -> list[str]:
    return sorted(bind.job for bind in record.binds)


def refused(record: CycleRecord) -> dict[str, str]:
    """Job -> why this plugin refuses it."""
    return {job.job: reason.message for job in record.jobs for reason in job.reasons if PLUGIN_FAILED in (reason.code, *reason.nodes)}


class Licences(Plugin):
    """Cannot open"""

    name = "licences"

    def open(self) -> None:
        raise OSError("no licence server")

    def job_valid(self, job: Job) -> None:
        return None


def test_jobs_are_refused_by_its_name_and_the_cycle_goes_on() -> None:
    record = run(world("a", "b"), Licences)
    assert record.binds == [] and record.failures == []
    assert sorted(refused(record)) == ["ns/a", "ns/b"]
    text = refused(record)["ns/a"]
    assert text.startswith("plugin licences (test_guarded_plugins.py:")
    assert text.endswith(") failed: OSError: no licence server; what needs its consent is refused")
    assert [job.job for job in record.jobs] == ["ns/a", "ns/b", "ns/runs"], "statuses of the others are told"
    (failure,) = record.plugin_failures
    assert (failure.plugin, failure.error) == ("licences", "OSError: no licence server")
    assert "in open" in failure.traceback
    assert record.warnings == [text]


class Protects(Plugin):
    """Says which pods may be evicted, if it could open"""

    name = "protects"

    def open(self) -> None:
        sys.exit("bye")

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> list[int]:
        return list(candidates)


def test_what_does_not_need_its_consent_goes_on() -> None:
    record = run(world("a", "b"), Protects)
    assert bound(record) == ["ns/a", "ns/b"], "it has a say in evictions alone"
    assert [failure.error for failure in record.plugin_failures] == ["SystemExit: bye"]


class Limit(Plugin):
    """A limit of queues that cannot be read"""

    name = "limit"

    def __init__(self, session: object, option: PluginOption) -> None:
        raise KeyError("limit")

    def allocatable(self, queue: Queue, task: TaskClass, count: int) -> int:
        return count


class NoFilters(Plugin):
    """Filters that cannot be made"""

    name = "no-filters"

    def node_filters(self) -> list[NodeFilter]:
        raise ValueError("no table")


@pytest.mark.parametrize("kind", [Limit, NoFilters])
def test_limits_and_filters_that_cannot_be_made_refuse(kind: type[Plugin]) -> None:
    record = run(world("a"), kind)
    assert record.binds == []
    (told,) = (job for job in record.jobs if job.job == "ns/a")
    texts = [reason.message for reason in told.reasons] + [refusal.message for refusal in told.refusals]
    assert any("what needs its consent is refused" in text for text in texts)


class Odd(Plugin):
    """Fails on the jobs of odd namespaces"""

    name = "odd"

    def job_valid(self, job: Job) -> None:
        if int(job.spec.namespace.removeprefix("ns")) % 2:
            raise LookupError(job.spec.namespace)


def test_a_plugin_that_fails_on_many_jobs_costs_only_these_their_place() -> None:
    """Before, each cycle ended after sixteen failures, and nothing was placed for many cycles."""
    record = run(many_namespaces(60), Odd)
    assert bound(record) == [f"ns{number:02}/x" for number in range(0, 60, 2)]
    told = {*refused(record), *(failure.job for failure in record.failures)}
    assert told == {f"ns{number:02}/x" for number in range(1, 60, 2)}


class OddNodes(NodeFilter):
    name, scope = "odd-nodes", Scope.STATIC

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        if OddFilter.broken:
            raise RuntimeError("broken")
        return np.ones(at.used.shape[1], dtype=bool)


class OddFilter(Plugin):
    """A filter that fails on every pod while it is broken, and loses count"""

    name = "odd-filter"
    broken = True

    def open(self) -> None:
        if OddFilter.broken:
            raise RuntimeError("broken")

    def node_filters(self) -> list[NodeFilter]:
        return [OddNodes()]


def test_a_refusal_is_not_kept_for_the_next_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world("a")
    assert run(made, OddFilter).binds == []
    monkeypatch.setattr(OddFilter, "broken", False)
    assert bound(run(made, OddFilter)) == ["ns/a"]


class LosesCount(Plugin):
    """Counts what is placed, and fails at it"""

    name = "loses-count"

    def job_valid(self, job: Job) -> None:
        return None

    def on_allocate(self, change: Change) -> None:
        raise RuntimeError("lost count")

    def on_deallocate(self, change: Change) -> None:
        pass


def test_a_plugin_that_loses_count_refuses_from_then_on() -> None:
    record = run(many_namespaces(40), LosesCount)
    assert record.binds == []
    assert len(refused(record)) + len(record.failures) == 40


def test_two_plugins_may_fail() -> None:
    record = run(world("a"), Licences, Limit)
    assert record.binds == []
    assert [failure.plugin for failure in record.plugin_failures] == ["licences", "limit"]


def test_every_point_that_forbids_has_an_answer_that_refuses() -> None:
    told = {"QueueReport", "queue_figures", "queues_owed"}
    preferences = {*PREFERENCES, "part_order", "queue_rank", "nominated_node", "idle_fit_score", "device_order", "device_choice"}
    assert set(POINTS) - GUARDED_POINTS - preferences - told == {"scenario_generator"}
    for point in GUARDED_POINTS - {"node_filters"}:
        for method in methods(POINTS[point]):
            assert method in REFUSALS or method in NEWS, method
