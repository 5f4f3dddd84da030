"""A rule that raises on one job or node costs that one its place: all others are decided as without it, wherever the rule raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.worlds.random_kai_clusters import kai_world
from tests.worlds.shared_clusters import POLICIES, World, policy

import navarch
from navarch.engine.cycle import decide
from navarch.engine.gangs.sub_jobs import SubJob
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import POINTS, Change, methods
from navarch.engine.policy import PRESETS, Policy, load
from navarch.engine.session import Session
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.status import TaskStatus
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy

pytestmark = pytest.mark.contained
CHOICES: dict[str, Any] = {
    "navarch": POLICIES["navarch"],
    "volcano": "volcano",
    "kube-batch": "kube-batch",
    "everything": policy("enqueue, allocate, backfill, preempt, reclaim, shuffle", "priority", "drf", "proportion", "overcommit"),
    "gangs": policy("allocate, gangreclaim, gangpreempt", "priority", "capacity", "binpack"),
}
ASKED = frozenset(name for protocol in POINTS.values() for name in methods(protocol)) - {"node_filters", "node_scorers"}
OF_NODES = ("applies", "mask", "raw", "reject", "explain", "normalise")


class Boom(Exception):
    """Raised by the test."""


class Injection:
    """Raises from the nth call on that a plugin or a node function gets for the job."""

    def __init__(self, job: str, nth: int) -> None:
        self.job = job
        self.left = nth
        self.raised = False

    def concerns(self, owner: Any, values: tuple[Any, ...]) -> bool:
        session = getattr(owner, "session", None)
        for value in values:
            if isinstance(value, SubJob | Change):
                value = value.job
            if isinstance(value, Job):
                return value.key == self.job
            if isinstance(value, TaskClass):
                owning = session.job_of(value.task) if isinstance(session, Session) else None
                return owning is not None and owning.key == self.job
        return False

    def wrap(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def called(owner: Any, *values: Any, **named: Any) -> Any:
            if self.concerns(owner, values):
                self.left -= 1
                if self.left < 0:
                    self.raised = True
                    raise Boom("from the test")
            return method(owner, *values, **named)

        return called


def below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


@contextmanager
def raising(job: str, nth: int) -> Iterator[Injection]:
    injection = Injection(job, nth)
    with pytest.MonkeyPatch.context() as patch:
        for kind, names in ((Plugin, ASKED), (NodeFilter, OF_NODES), (NodeScorer, OF_NODES)):
            for each in below(kind):
                for name in names:
                    if name in vars(each):
                        patch.setattr(each, name, injection.wrap(vars(each)[name]))
        yield injection


def without(objects: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    def concerns(each: dict[str, Any]) -> bool:
        group = each["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name")
        return name in (group, each["metadata"]["name"] if each["kind"] == "PodGroup" else None)

    return [each for each in objects if not concerns(each)]


@pytest.mark.parametrize("name", CHOICES)
@settings(max_examples=60)
@given(seed=st.integers(0, 10**9), nth=st.integers(0, 60))
def test_others_are_decided_as_without_the_job(name: str, seed: int, nth: int) -> None:
    world = World(seed)
    key = Random(seed).choice(sorted(world.waiting))
    with raising(key, nth) as injection:
        found = navarch.plan(world.objects, policy=CHOICES[name]).records[0]
    if not injection.raised:
        assert found.failures == []
        return
    wanted = navarch.plan(without(world.objects, key.removeprefix("default/")), policy=CHOICES[name]).records[0]
    assert [failure.job for failure in found.failures] == [key]
    for part in ("binds", "evictions", "nominations", "claims", "queues"):
        assert getattr(found, part) == getattr(wanted, part), part
    assert [job for job in found.jobs if job.job != key] == wanted.jobs
    (told,) = (job for job in found.jobs if job.job == key)
    assert [reason.code for reason in told.reasons] == ["InternalError"]
    assert "Boom: from the test" in told.reasons[0].message
    assert len(told.refusals) == world.waiting[key][2]


@pytest.mark.parametrize("compat", ["strict", "kai"])
@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), nth=st.integers(0, 60))
def test_others_are_decided_as_without_the_job_in_a_tree_of_queues(compat: str, seed: int, nth: int) -> None:
    chosen, registry = load({**PRESETS["kai"], "compat": compat}, installed().catalogue(), "test"), installed()
    world, other = kai_world(seed), kai_world(seed)
    snapshot = world.cluster.snapshot()
    waiting = [key for key, counts in zip(snapshot.jobs.keys, snapshot.jobs.counts) if counts[TaskStatus.PENDING] == counts.sum() > 0]
    if not waiting:
        return
    key = Random(seed).choice(sorted(waiting))
    with raising(key, nth) as injection:
        found = decide(snapshot, chosen, registry, 1e6)
    if not injection.raised:
        return
    for spec in [spec for spec in other.cluster.snapshot().tasks.specs if spec is not None and spec.job == key]:
        other.cluster.remove_task(spec.uid)
    other.cluster.remove_job(key)
    wanted = decide(other.cluster.snapshot(), chosen, registry, 1e6)
    assert [failure.job for failure in found.failures] == [key]
    for part in ("binds", "evictions", "nominations", "queues"):
        assert getattr(found, part) == getattr(wanted, part), part
    assert [job for job in found.jobs if job.job != key] == wanted.jobs


class Labels(dict[str, str]):
    """Labels of a node that raise from the nth reading on."""

    left = 10**9

    def _read(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Boom("from the test")

    def get(self, key: str, otherwise: Any = None, /) -> Any:
        self._read()
        return super().get(key, otherwise)

    def __getitem__(self, key: str) -> str:
        self._read()
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._read()
        return super().__contains__(key)

    def items(self) -> Any:
        self._read()
        return super().items()


@pytest.mark.parametrize("name", CHOICES)
@settings(max_examples=60)
@given(seed=st.integers(0, 10**9), nth=st.integers(0, 8))
def test_others_are_decided_as_without_the_node(name: str, seed: int, nth: int) -> None:
    registry = installed()
    chosen = read_policy(CHOICES[name], registry)
    world = World(seed)
    node = Random(seed).choice(sorted(world.idle))
    found = _cluster(world.objects, chosen)
    spec = found.nodes.specs[found.nodes.rows.of[node]]
    assert spec is not None
    labels = Labels(spec.labels)
    found.put_node(replace(spec, labels=labels))
    labels.left = nth
    record = decide(found.snapshot(chosen.semantics.node_order), chosen, registry, 1e6)
    if labels.left >= 0:
        assert record.node_failures == []
        return
    assert ([each.node for each in record.node_failures], record.failures) == ([node], [])
    without = _cluster(world.objects, chosen)
    without.remove_node(node)
    wanted = decide(without.snapshot(chosen.semantics.node_order), chosen, registry, 1e6)
    for part in ("binds", "evictions", "nominations", "claims", "queues", "jobs"):
        assert getattr(record, part) == getattr(wanted, part), part
    again = decide(found.snapshot(chosen.semantics.node_order), chosen, registry, 1e6, left_out_nodes=[node])
    assert (again.node_failures, again.binds) == ([], wanted.binds), "the next cycle leaves it out from the beginning"


def _cluster(objects: list[dict[str, Any]], chosen: Policy) -> Cluster:
    return Inventory([Document(each) for each in objects], settings_for(chosen)).cluster
