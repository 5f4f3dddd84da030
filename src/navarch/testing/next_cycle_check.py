"""Whether a plugin that goes on in a further cycle decides as one that was newly opened.

Two equal clusters change in the same way from cycle to cycle. In the first the plugin goes on with the session of the last cycle
(`Plugin.next_cycle`), in the second it is opened anew. Both must decide the same.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from msgspec.structs import replace

from navarch.actions import PLACES
from navarch.engine.cycle import decide
from navarch.engine.kept_session import goes_on
from navarch.engine.plugin import Plugin
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus

DIFFERS = (
    "it decides differently after next_cycle than newly opened: next_cycle must forget what belongs to the last cycle, and filters "
    "and scores must not read the time"
)
_NODES = 96
"""So many that the few rows which change from cycle to cycle are copied, and the session may go on."""
_CYCLES = 6
_ARRIVALS = 4
"""Jobs that come before each cycle."""
_HOURS_APART = 7


def check_next_cycle(plugin: type[Plugin], arguments: Mapping[str, object], seed: int) -> list[str]:
    """What is wrong with `next_cycle`, as sentences; an empty list if nothing is."""
    if not goes_on(plugin):
        return []
    policy = Policy(("allocate",), ((PluginOption(plugin.name, arguments=arguments),),), dialect=plugin.dialect or "navarch")
    registry = Registry([plugin], action_places=PLACES)
    rng, clusters = random.Random(seed), (_world(seed), _world(seed))
    last: Snapshot | None = None
    for number in range(_CYCLES):
        coming, leaving = _arrivals(rng, number), rng.randrange(_NODES)
        for cluster in clusters:
            _change(cluster, coming, leaving)
        now = number * _HOURS_APART * 3600.0
        last = clusters[0].snapshot(instead_of=last)
        record = decide(last, policy, registry, now)
        expected = decide(clusters[1].snapshot(), policy, registry, now)
        if told := [each for each in record.warnings if each not in expected.warnings]:
            return told
        if _decisions(record) != _decisions(expected):
            return [DIFFERS]
        for cluster in clusters:
            _apply(cluster, record)
    return []


def _world(seed: int) -> Cluster:
    rng, cluster = random.Random(seed), Cluster()
    for name in ("default", "other"):
        cluster.put_queue(QueueSpec(name, state="Open"))
    for i in range(_NODES):
        amounts = {"cpu": rng.choice((2, 4)), "memory": "8Gi", "pods": rng.choice((3, 110)), "nvidia.com/gpu": 1}
        cluster.put_node(NodeSpec(f"n{i:02}", allocatable=requests_from(amounts), labels={"kubernetes.io/hostname": f"n{i:02}"}))
    for i, shape in enumerate(_SHAPES):  # the shapes stay the same
        cluster.put_task(TaskSpec(f"stays-{i}", "ns", f"stays-{i}", shape, node="n00", status=TaskStatus.RUNNING))
    for i in range(_NODES // 2):
        _put_job(cluster, f"old{i}", _SHAPES[i % 2], priority=0, node=f"n{2 * i:02}")
    return cluster


_SHAPES = [Shape(requests=requests_from({"cpu": cpu, "memory": "1Gi"})) for cpu in ("500m", "1", "2")]


def _arrivals(rng: random.Random, number: int) -> list[tuple[str, Shape, int]]:
    return [(f"new{number}{i}", rng.choice(_SHAPES), rng.choice((0, 5))) for i in range(_ARRIVALS)]


def _change(cluster: Cluster, coming: list[tuple[str, Shape, int]], leaving: int) -> None:
    for name, shape, priority in coming:
        _put_job(cluster, name, shape, priority)
    cluster.remove_task(f"old{leaving // 2}")
    cluster.remove_job(f"ns/old{leaving // 2}")


def _put_job(cluster: Cluster, name: str, shape: Shape, priority: int, node: str = "") -> None:
    status, phase = (TaskStatus.RUNNING, "Running") if node else (TaskStatus.PENDING, "Inqueue")
    queue = "other" if name.endswith("1") else "default"
    cluster.put_job(JobSpec(f"ns/{name}", queue, 1, "ns", name, phase=phase, priority=priority))
    cluster.put_task(TaskSpec(name, "ns", f"{name}-worker-0", shape, job=f"ns/{name}", node=node, status=status, priority=priority))


def _apply(cluster: Cluster, record: CycleRecord) -> None:
    for bind in record.binds:
        task = cluster.task(bind.uid)
        assert task is not None
        cluster.put_task(replace(task, node=bind.node, status=TaskStatus.RUNNING))


def _decisions(record: CycleRecord) -> tuple[object, ...]:
    return record.binds, record.nominations, record.evictions, record.tried, record.jobs
