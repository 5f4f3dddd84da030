"""One namespace with very many jobs: what they cost in memory, and how long they delay the job of another namespace.

    python -m bench.tenants [--jobs 100000] [--groups] [--policy navarch]

The live core in one process, without an API server. A tenant creates many one-pod jobs at once, far more than the cluster holds; with
`--groups` each has a PodGroup of its own. Another tenant creates one job that fits at once, in the same queue or in its own queue. It
does so amid the flood (no job was tried yet) or after it (all were tried and wait). Each figure is CPU time from the creation of that
job to its binding; beside it the same without the flood.
"""

from __future__ import annotations

import argparse
import gc
import resource
from pathlib import Path
from time import process_time
from typing import Any

from bench.report import Figure, show
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.engine.policy import PRESETS, load
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.live.core import LiveCore
from navarch.live.instructions import BindPod, Instruction
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec

NODES, PLACES = 100, 4
MOST_CYCLES = 1000


class World:
    def __init__(self, policy: str, turns: bool) -> None:
        registry = self._registry = installed()
        document: dict[str, Any] = dict(PRESETS[policy])
        if turns:
            document["tiers"] = [{"plugins": [{"name": "namespace-turns"}]}, *document["tiers"]]
        self._policy = load(document, registry.catalogue(), policy)
        self._core = LiveCore(settings_for(self._policy, ("navarch",), False), self._carry_out)
        self._bound: set[str] = set()
        self._now = 0.0
        for name in ("shared", "own"):
            self._core.cache.put(QueueSpec(name, state="Open", dialect="volcano", weight=1))
        for number in range(NODES):
            allocatable = requests_from({"cpu": PLACES, "example.com/gpu": 1, "memory": "64Gi", "pods": 110})
            self._core.cache.put(NodeSpec(f"node-{number:05d}", allocatable=allocatable))
        self._core.start_leading(0.0)

    def _carry_out(self, instruction: Instruction) -> None:
        if isinstance(instruction, BindPod):
            self._bound.add(instruction.bind.uid)

    def put(self, namespace: str, name: str, queue: str, requests: dict[str, str], *, grouped: bool) -> str:
        uid = f"{namespace}-{name}"
        key = "scheduling.k8s.io/group-name" if grouped else "scheduling.volcano.sh/queue-name"
        metadata = {"name": name, "namespace": namespace, "uid": uid, "annotations": {key: name if grouped else queue}}
        if grouped:
            group = JobSpec(f"{namespace}/{name}", queue, 1, namespace, name, f"group-{uid}", "volcano")
            self._core.cache.put(group)
        spec = {"schedulerName": "navarch", "containers": [{"name": "c", "resources": {"requests": requests}}]}
        self._core.cache.put_pod(from_manifest({"metadata": metadata, "spec": spec}, Pod))
        return uid

    def cycle(self) -> None:
        self._now += 0.001
        self._core.queue.flush_backoff(self._now)
        cycle = self._core.decide(self._policy, self._registry, self._now, in_parts=True)
        self._core.commit(cycle.record, self._now)
        self.more = cycle.more

    def until_bound(self, uid: str) -> tuple[float, int]:
        """CPU seconds and cycles until the pod is bound."""
        started = process_time()
        for cycles in range(1, MOST_CYCLES):
            self.cycle()
            if uid in self._bound:
                return process_time() - started, cycles
        raise AssertionError("it is never bound")


def measure(policy: str, jobs: int, *, grouped: bool, turns: bool) -> tuple[list[tuple[str, float, int]], float, float]:
    """(which job, CPU seconds, cycles) for each job of the other tenant; CPU of the flood's arrival; KiB a job."""
    world = World(policy, turns)
    gc.collect()
    before, started = _resident(), process_time()
    for number in range(jobs):
        world.put("flood", f"j{number:07d}", "shared", {"cpu": "1"}, grouped=grouped)
    arrival = process_time() - started
    memory = (_resident() - before) / max(jobs, 1)
    found = []
    for when in ("amid", "after"):
        for queue in ("own", "shared"):
            uid = world.put("other", f"{when}-{queue}", queue, {"example.com/gpu": "1"}, grouped=grouped)
            seconds, cycles = world.until_bound(uid)
            found.append((f"{when} the flood, {queue} queue", seconds, cycles))
        while jobs and world.more:
            world.cycle()
    return found, arrival, memory


def _resident() -> float:
    """KiB of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1024


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--groups", action="store_true")
    parser.add_argument("--turns", action="store_true", help="with the plugin namespace-turns")
    parser.add_argument("--policy", default="navarch", choices=sorted(PRESETS))
    given = parser.parse_args(arguments)
    alone, _, _ = measure(given.policy, 0, grouped=given.groups, turns=given.turns)
    flooded, arrival, memory = measure(given.policy, given.jobs, grouped=given.groups, turns=given.turns)
    figures = [
        Figure("arrival of the flood", arrival / given.jobs * 1e6, "us a job"),
        Figure("memory of the flood", memory, "KiB a job"),
    ]
    for (what, seconds, cycles), (_, beside, _) in zip(flooded, alone):
        figures.append(Figure(what, seconds * 1e3, "ms", None, beside * 1e3, "without the flood", f"{cycles} cycles"))
    show(f"{given.jobs} jobs of one namespace", figures)


if __name__ == "__main__":
    main()
