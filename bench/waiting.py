"""A full cluster with a long backlog, the usual state of a batch cluster: what does the end of one pod cost?

    python -m bench.waiting [--nodes 1000] [--waiting 10000] [--policy navarch]

The live core (`navarch.live.core`) in one process, without an API server. Every node is full. The pending pods are equal and have been
refused once. Then pods end, one at a time, and each leaves room for exactly one pending pod. The figure is the time from the pod's end
to the decision about its place, with all bookkeeping. Beside it: activating every job that waits for resources, as if nothing were
known of what the pod occupied; and the same on a cluster without pending pods.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from time import perf_counter
from typing import NamedTuple

import msgspec

from bench.report import Figure, show
from navarch.apis.core.pod_objects import Pod
from navarch.engine.policy import PRESETS, preset
from navarch.engine.reasons import Event
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.core import LiveCore
from navarch.live.instructions import BindPod, Instruction
from navarch.live.queue.scheduling_queue import SchedulingQueue
from navarch.model.resources import requests_from
from navarch.model.spec import NodeSpec, QueueShare, QueueSpec, Requests

PODS_A_NODE = 4
UNLIMITED = {resource: QueueShare(-1, -1, 1) for resource in ("gpu", "cpu", "memory")}
ENDS, ENDS_OF_ALL = 200, 5


class Size(NamedTuple):
    nodes: int
    policy: str


class EverythingActivated(SchedulingQueue):
    """A queue that does not know how many jobs fit into what a pod occupied."""

    def activate_on(self, event: Event, freed: Requests | None = None) -> int:
        return super().activate_on(event)


class World:
    def __init__(self, size: Size, waiting: int, *, activate_all: bool = False) -> None:
        nodes = size.nodes
        self._registry = installed()
        self._policy = preset(size.policy, self._registry.catalogue())
        queue = EverythingActivated() if activate_all else SchedulingQueue()
        self._core = LiveCore(settings_for(self._policy, ("navarch",), False), self._carry_out, queue=queue)
        self.cache = self._core.cache
        self.bound: list[AssumedBind] = []
        self._now = 0.0
        for queue in (
            QueueSpec("all", state="Open", shares=UNLIMITED),
            QueueSpec("load", state="Open", parent="all", shares=UNLIMITED),
        ):
            self.cache.put(queue)
        for number in range(nodes):
            allocatable = requests_from({"cpu": PODS_A_NODE, "memory": "64Gi", "pods": 110})
            self.cache.put(NodeSpec(f"node-{number:05d}", allocatable=allocatable))
        self._serial = nodes * PODS_A_NODE + waiting
        for number in range(self._serial):
            self.cache.put_pod(pod(number))
        self.cycle()
        assert len(self.bound) == nodes * PODS_A_NODE
        for bind in self.bound:
            self._runs(bind)
        self.cycle()

    def _carry_out(self, instruction: Instruction) -> None:
        if isinstance(instruction, BindPod):
            self.bound.append(instruction.bind)

    def cycle(self) -> None:
        self._now += 1
        self._core.commit(self._core.decide(self._policy, self._registry, 1e9).record, self._now)

    def _runs(self, bind: AssumedBind) -> None:
        """What the watch shows after a binding."""
        self.cache.put_pod(pod(int(bind.name[-6:]), bind.node), pod(int(bind.name[-6:])))

    def end_one(self, *, filled: bool) -> float:
        """Seconds from the end of the pod that was bound first to the decision about its place."""
        ended = self.bound.pop(0)
        before = len(self.bound)
        started = perf_counter()
        self.cache.remove_pod(ended.uid)
        self.cycle()
        spent = perf_counter() - started
        assert len(self.bound) - before == filled
        for bind in self.bound[before:]:
            self._runs(bind)
        return spent

    def come_one(self) -> float:
        """Seconds from the arrival of a pod for which there is room to the decision about it."""
        self._serial += 1
        before = len(self.bound)
        started = perf_counter()
        self.cache.put_pod(pod(self._serial))
        self.cycle()
        spent = perf_counter() - started
        (bind,) = self.bound[before:]
        self._runs(bind)
        return spent


def pod(number: int, node: str = "") -> Pod:
    labels = {"app": str(number), "kai.scheduler/queue": "load"}
    return msgspec.convert(
        {
            "metadata": {"namespace": "load", "name": f"pod-{number:06d}", "uid": f"uid-{number}", "labels": labels},
            "spec": {
                "schedulerName": "navarch",
                "nodeName": node,
                "containers": [{"name": "main", "image": "busy", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            },
            "status": {"phase": "Running" if node else "Pending"},
        },
        Pod,
    )


def end_many(size: Size, waiting: int, count: int, *, activate_all: bool = False) -> float:
    """Milliseconds, the median."""
    world = World(size, waiting, activate_all=activate_all)
    gc.collect()
    gc.freeze()
    world.end_one(filled=waiting > 0)
    return statistics.median(world.end_one(filled=waiting > 0) for _ in range(count)) * 1e3


def come_many(size: Size, count: int) -> float:
    """Milliseconds, the median; each finds the place of one that ended before it."""
    world = World(size, 0)
    times = []
    for _ in range(count):
        world.end_one(filled=False)
        times.append(world.come_one())
    return statistics.median(times) * 1e3


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--policy", choices=PRESETS, default="navarch")
    given = parser.parse_args(arguments)
    size = Size(given.nodes, given.policy)
    ours = end_many(size, given.waiting, ENDS)
    everyone = end_many(size, given.waiting, ENDS_OF_ALL, activate_all=True)
    nobody = end_many(size, 0, ENDS)
    comes = come_many(size, ENDS)
    running = given.nodes * PODS_A_NODE
    about = f"{given.nodes:,} nodes, {given.waiting:,} waiting"
    show(
        f"The end of one pod in a full cluster, policy {given.policy}",
        [
            Figure(f"to the decision about its place, {about}", ours, "ms", None, everyone, "activating every job"),
            Figure(f"the same without pending pods, {given.nodes:,} nodes", nobody, "ms"),
            Figure(f"from a pod's arrival to its place, {given.nodes:,} nodes, {running:,} running", comes, "ms"),
        ],
    )


if __name__ == "__main__":
    main()
