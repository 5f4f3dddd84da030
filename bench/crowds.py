"""One tenant's ordinary objects, in great number or variety: how long a healthy pod of another tenant waits because of them.

    python -m bench.crowds [CROWD ...] [--policy navarch] [--share 1.0]

The live core in one process, without an API server. Each crowd is put into the cluster; beside it another tenant creates a pod that
fits at once, before the crowd, when no job of the crowd was tried yet (amid), and when all of them wait (after). Figures are CPU time
from the creation of that pod to its binding, CPU of one more cycle in which nothing changed (idle), and the growth of peak memory.
Each crowd runs in a process of its own, so that its peak is its own. `--share 0.1` takes a tenth of each number.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
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

MOST_CYCLES = 2000
ALLOCATABLE = requests_from({"cpu": 8, "memory": "64Gi", "pods": 110})
OWN = requests_from({"cpu": 8, "memory": "64Gi", "pods": 110, "example.com/own": 8})
"""Nodes of the healthy tenant's kind: a pod that asks for `example.com/own` fits there at once."""


class World:
    def __init__(self, policy: str) -> None:
        self._registry = installed()
        self._policy = load(dict(PRESETS[policy]), self._registry.catalogue(), policy)
        self.core = LiveCore(settings_for(self._policy, ("navarch",), False), self._carry_out)
        self._bound: set[str] = set()
        self._now = 0.0
        for name in ("crowd", "healthy"):
            self.core.cache.put(QueueSpec(name, state="Open", dialect="volcano", weight=1))
        self.node("own-0", own=True)
        self.core.start_leading(0.0)

    def _carry_out(self, instruction: Instruction) -> None:
        if isinstance(instruction, BindPod):
            self._bound.add(instruction.bind.uid)

    def node(self, name: str, *, own: bool = False) -> None:
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{hash_of(name) % 3}"}
        self.core.cache.put(NodeSpec(name, allocatable=OWN if own else ALLOCATABLE, labels=labels))

    def nodes(self, count: int) -> None:
        for number in range(count):
            self.node(f"node-{number:05d}")

    def group(self, name: str, members: int, queue: str = "crowd", priority: int = 0, namespace: str = "crowd") -> None:
        key = f"{namespace}/{name}"
        self.core.cache.put(
            JobSpec(key, queue, members, namespace, name, f"group-{key}", "volcano", priority=priority, phase="Inqueue")
        )

    def pod(
        self,
        name: str,
        requests: dict[str, Any],
        *,
        queue: str = "crowd",
        namespace: str = "crowd",
        group: str = "",
        node: str = "",
        **spec: Any,
    ) -> str:
        uid = f"{namespace}-{name}"
        annotations = {"scheduling.k8s.io/group-name": group} if group else {"scheduling.volcano.sh/queue-name": queue}
        labels = spec.pop("labels", {})
        metadata = {"name": name, "namespace": namespace, "uid": uid, "annotations": annotations, "labels": labels}
        body = {"schedulerName": "navarch", "containers": [{"name": "c", "resources": {"requests": requests}}], **spec}
        status = {}
        if node:
            body["nodeName"] = node
            status = {"phase": "Running"}
        self.core.cache.put_pod(from_manifest({"metadata": metadata, "spec": body, "status": status}, Pod))
        return uid

    def cycle(self) -> bool:
        """Whether jobs were left to the next cycle."""
        self._now += 0.001
        self.core.queue.flush_backoff(self._now)
        cycle = self.core.decide(self._policy, self._registry, self._now, in_parts=True)
        self.core.commit(cycle.record, self._now)
        return cycle.more

    def healthy(self, name: str) -> float:
        """CPU seconds until a pod of the other tenant is bound."""
        uid = self.pod(name, {"example.com/own": 1}, queue="healthy", namespace="healthy")
        started = process_time()
        for _ in range(MOST_CYCLES):
            self.cycle()
            if uid in self._bound:
                return process_time() - started
        return float("inf")

    def settle(self) -> None:
        for _ in range(MOST_CYCLES):
            if not self.cycle():
                return


def hash_of(name: str) -> int:
    return sum(map(ord, name))


@dataclass(frozen=True)
class Crowd:
    what: str
    fill: Callable[[World, float], None]
    target: float = 0.1
    """CPU seconds that a healthy pod may wait."""


def _full(world: World, nodes: int) -> None:
    world.nodes(nodes)
    for number in range(nodes):
        world.pod(f"running-{number}", {"cpu": 8}, node=f"node-{number:05d}", priority=0)


def gangs(world: World, share: float, *, step: int = 1) -> None:
    _full(world, int(2000 * share))
    for number in range(int(1000 * share)):
        world.group(f"gang-{number}", 2 * int(2000 * share), priority=10)
        for member in range(2):
            world.pod(f"gang-{number}-{member}", {"cpu": f"{4000 + step * number}m"}, group=f"gang-{number}", priority=10)


def small_gangs(world: World, share: float, *, step: int = 1) -> None:
    """Gangs larger than what evictions could free: victims of equal priority are not theirs to take."""
    nodes = int(2000 * share)
    world.nodes(nodes)
    for number in range(nodes):
        world.group(f"holder-{number}", 1, priority=0 if number % 100 == 0 else 100)
        world.pod(f"running-{number}", {"cpu": 8}, node=f"node-{number:05d}", group=f"holder-{number}")
    for number in range(int(1000 * share)):
        world.group(f"gang-{number}", 32, priority=10)
        for member in range(32):
            world.pod(f"gang-{number}-{member}", {"cpu": f"{7000 + step * number % 1000}m"}, group=f"gang-{number}")


def torn_gangs(world: World, share: float, *, step: int = 1) -> None:
    """Each gang needs a node of zone 0, whose pods it may not evict, beside one that it may empty."""
    count = int(2000 * share)
    world.nodes(count)
    for number in range(count):
        node = f"node-{number:05d}"
        world.group(f"holder-{number}", 1, priority=0 if hash_of(node) % 3 else 100)
        world.pod(f"running-{number}", {"cpu": 8}, node=node, group=f"holder-{number}")
    for number in range(int(1000 * share)):
        world.group(f"gang-{number}", 2, priority=10)
        for member in range(2):
            where = {"nodeSelector": {"topology.kubernetes.io/zone": "zone-0"}} if member else {}
            world.pod(f"gang-{number}-{member}", {"cpu": f"{7000 + step * (number % 1000)}m"}, group=f"gang-{number}", **where)


def shapes(world: World, share: float) -> None:
    _full(world, int(2000 * share))
    for number in range(int(50_000 * share)):
        world.pod(f"p-{number}", {"cpu": f"{1000 + number}m", "memory": f"{1000 + number}Mi"})


def queues(world: World, share: float) -> None:
    world.nodes(int(500 * share))
    for number in range(int(10_000 * share)):
        world.core.cache.put(QueueSpec(f"q-{number:05d}", state="Open", dialect="volcano", weight=1))
        world.pod(f"p-{number}", {"cpu": 9}, queue=f"q-{number:05d}")


def deep_tree(world: World, share: float) -> None:
    world.nodes(int(500 * share))
    parent = ""
    for depth in range(50):
        name = f"level-{depth:02d}"
        world.core.cache.put(QueueSpec(name, state="Open", dialect="volcano", weight=1, parent=parent))
        for side in range(4):
            leaf = f"{name}-leaf-{side}"
            world.core.cache.put(QueueSpec(leaf, state="Open", dialect="volcano", weight=1, parent=name))
            world.pod(f"p-{leaf}", {"cpu": 9}, queue=leaf)
        parent = name


def groups(world: World, share: float) -> None:
    world.nodes(int(500 * share))
    for number in range(int(100_000 * share)):
        world.group(f"g-{number}", 1)
        if number % 5 == 0:
            world.pod(f"p-{number}", {"cpu": 9}, group=f"g-{number}")


def _anti(key: str, value: str, *, preferred: bool) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": value}}}
    if preferred:
        return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def keys(world: World, share: float, *, pods: int = 2000) -> None:
    world.nodes(int(500 * share))
    for number in range(int(pods * share)):
        affinity = {"podAntiAffinity": _anti(f"example.com/key-{number}", f"a-{number}", preferred=True)}
        world.pod(f"p-{number}", {"cpu": "100m"}, affinity=affinity, labels={"app": f"a-{number}"})


def terms(world: World, share: float, *, pods: int = 20) -> None:
    world.nodes(int(500 * share))
    for number in range(pods):
        every = [_anti("kubernetes.io/hostname", f"x-{number}-{term}", preferred=False) for term in range(int(5000 * share))]
        required = [each["requiredDuringSchedulingIgnoredDuringExecution"][0] for each in every]
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        world.pod(f"p-{number}", {"cpu": "100m"}, affinity=affinity)


def gated(world: World, share: float) -> None:
    world.nodes(int(500 * share))
    for number in range(int(50_000 * share)):
        world.pod(f"p-{number}", {"cpu": f"{1000 + number % 5000}m"}, schedulingGates=[{"name": "example.com/wait"}])


def spreads(world: World, share: float) -> None:
    world.nodes(int(500 * share))
    for number in range(int(1000 * share)):
        every = [
            {"maxSkew": 1, "topologyKey": f"example.com/k-{number}-{n}", "whenUnsatisfiable": "ScheduleAnyway",
             "labelSelector": {"matchLabels": {"app": f"a-{number}"}}}
            for n in range(20)
        ]  # fmt: skip
        world.pod(f"p-{number}", {"cpu": "100m"}, topologySpreadConstraints=every, labels={"app": f"a-{number}"})


def node_affinity(world: World, share: float) -> None:
    world.nodes(int(500 * share))
    for number in range(20):
        every = [
            {"matchExpressions": [{"key": "example.com/k", "operator": "In", "values": [f"v-{number}-{n}"]}]}
            for n in range(int(5000 * share))
        ]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": every}}}
        world.pod(f"p-{number}", {"cpu": "100m"}, affinity=affinity)


CROWDS = {
    "gangs": Crowd("1,000 unlike gangs of higher priority that evictions cannot serve, 2,000 full nodes", small_gangs),
    "equal-gangs": Crowd("the same, equal gangs", lambda world, share: small_gangs(world, share, step=0)),
    "torn-gangs": Crowd("1,000 unlike gangs that find room for one pod only", torn_gangs),
    "huge-gangs": Crowd("1,000 unlike gangs that lack most of their pods", gangs),
    "shapes": Crowd("50,000 pods of unlike size, 2,000 full nodes", shapes),
    "queues": Crowd("10,000 flat queues with a waiting pod each", queues),
    "deep-tree": Crowd("a tree of queues 50 deep", deep_tree),
    "groups": Crowd("100,000 PodGroups, 20,000 with a pod", groups),
    "keys": Crowd("2,000 pods with a preferred anti-affinity term over a key of their own", keys),
    "many-keys": Crowd("20,000 such pods", lambda world, share: keys(world, share, pods=20_000)),
    "terms": Crowd("20 pods with 5,000 anti-affinity terms", terms),
    "many-terms": Crowd("60 such pods", lambda world, share: terms(world, share, pods=60)),
    "gated": Crowd("50,000 pods with scheduling gates, requests of 5,000 sizes", gated, 0.005),
    "spreads": Crowd("20,000 spread constraints over as many keys", spreads),
    "node-affinity": Crowd("20 pods with 5,000 terms of node affinity", node_affinity),
}


def measure(name: str, policy: str, share: float) -> dict[str, float]:
    world = World(policy)
    world.settle()
    before = world.healthy("before")
    peak = peak_mib()
    CROWDS[name].fill(world, share)
    amid = world.healthy("amid")
    started = process_time()
    world.settle()
    settled = process_time() - started
    after = world.healthy("after")
    world.cycle()
    started = process_time()
    world.cycle()
    idle = process_time() - started
    return {"before": before, "amid": amid, "settle": settled, "after": after, "idle": idle, "memory": peak_mib() - peak}


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crowds", nargs="*", metavar="CROWD", help=f"{', '.join(CROWDS)}; without names all of them")
    parser.add_argument("--policy", default="navarch", choices=sorted(PRESETS))
    parser.add_argument("--share", type=float, default=1.0, help="which part of each number")
    parser.add_argument("--seconds", type=float, default=300.0, help="when a crowd's process is ended")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.here:
        json.dump(measure(given.crowds[0], given.policy, given.share), sys.stdout)
        return
    for name in given.crowds or CROWDS:
        command = [sys.executable, "-m", "bench.crowds", name, "--policy", given.policy, "--share", str(given.share), "--here"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=given.seconds, check=True)
        except subprocess.TimeoutExpired:
            print(f"{name}: no result in {given.seconds:.0f} s")
            continue
        found = json.loads(done.stdout)
        target = f"target {CROWDS[name].target * 1e3:.0f} ms"
        show(
            f"{CROWDS[name].what} ({given.policy})",
            [
                Figure("a healthy pod amid the crowd", found["amid"] * 1e3, "ms", None, found["before"] * 1e3, "before it", target),
                Figure("after it", found["after"] * 1e3, "ms", None, found["before"] * 1e3, "before it", target),
                Figure("until every job of the crowd was tried", found["settle"], "s"),
                Figure("an idle cycle", found["idle"] * 1e3, "ms"),
                Figure("peak memory of the crowd", found["memory"], "MiB"),
            ],
        )


if __name__ == "__main__":
    main()
