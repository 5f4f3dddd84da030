"""Random histories of small clusters, a change at a time: pods and gangs come, end and are deleted, nodes and queues change.

Each has up to three themes besides (`themes`, `object_themes`); one of them steps now and then.
"""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from tests.worlds.live_core import object_themes, themes
from tests.worlds.live_core.cluster import CoreCluster
from tests.worlds.live_core.themes import Theme

from navarch.model.resources import requests_from
from navarch.model.spec import QueueShare

ASKED: list[dict[str, str]] = [
    {"cpu": "1"},
    {"cpu": "2"},
    {"cpu": "4"},
    {"cpu": "500m"},
    {"cpu": "1", "nvidia.com/gpu": "1"},
    {"nvidia.com/gpu": "2"},
]
QUEUES = ("a", "b")
THEMES: list[type[Theme]] = [
    *(themes.Nodes, themes.Quotas, themes.Queues, themes.Budgets, themes.Classes),
    *(themes.Groups, themes.Pods, themes.Ports, themes.Namespaces),
    *(object_themes.Volumes, object_themes.Devices, object_themes.Topologies),
]
THEMED = 0.4
"""How often it is a theme's turn."""


class Kind(Struct, frozen=True):
    """Jobs that are alike. `minimum` 0: single pods."""

    queue: str
    asks: dict[str, str]
    priority: str
    more: dict[str, Any]
    minimum: int = 0
    extra: int = 0
    says_least: bool = False
    group: dict[str, Any] = {}
    """More of the group."""
    own: tuple[str, ...] = ()
    """Names of themes by which each pod has something of its own."""


class History:
    def __init__(self, policy: str, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.world = world = CoreCluster(policy)
        self.kai = policy == "kai"
        self._serial = 0
        self.themes = [theme(self) for theme in rng.sample(THEMES, rng.randint(0, 3))]
        self.kinds = [self._themed(self._kind()) for _ in range(rng.randint(2, 4))]
        self.single: dict[int, list[str]] = {}
        """Number of the kind -> its single pods, oldest first; of kinds that do not look at other pods, for of those one may fit
        where another did not when a third was placed between them."""
        top = "dep" if self.kai else "root"
        world.queue(top)
        for name in QUEUES:
            world.queue(name, parent=top if self.kai or rng.random() < 0.5 else "", **self.due())
        for number in range(rng.randint(1, 3)):
            self._node(number)
        for theme in self.themes:
            theme.start()
        world.settle()

    def due(self) -> dict[str, Any]:
        rng = self.rng
        if self.kai:
            cpu = QueueShare(rng.choice((-1.0, 2000.0, 4000.0)), rng.choice((-1.0, -1.0, 6000.0)), 1.0)
            return {"shares": {"cpu": cpu, "gpu": QueueShare(rng.choice((0.0, 1.0, 2.0)), -1.0, 1.0)}}
        capability = rng.choice((None, None, requests_from({"cpu": rng.randint(1, 8)})))
        return {"weight": rng.choice((1, 2, 3)), "capability": capability}

    def _node(self, number: int) -> None:
        rng = self.rng
        taint = rng.choice(("", "", "", "kept"))
        cpu, gpu = rng.choice((2, 4, 6)), rng.choice((0, 2, 4))
        self.world.node(f"n{number}", zone="ab"[number % 2], taint=taint, cpu=cpu, gpu=gpu, memory="64Gi")

    def _kind(self) -> Kind:
        rng = self.rng
        asks, app = rng.choice(ASKED), rng.choice("xy")
        more: dict[str, Any] = {"labels": {"app": app}}
        rule = rng.random()
        if rule < 0.1:
            more["affinity"] = {"podAntiAffinity": _required("kubernetes.io/hostname", rng.choice("xy"))}
        elif rule < 0.2:
            more["affinity"] = {"podAffinity": _required("zone", rng.choice("xy"))}
        elif rule < 0.3:
            spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            more["topologySpreadConstraints"] = [spread | {"labelSelector": {"matchLabels": {"app": app}}}]
        elif rule < 0.35:
            more["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        if rng.random() < 0.2:
            more["tolerations"] = [{"key": "kept", "operator": "Exists"}]
        if rng.random() < 0.1:
            more["schedulingGates"] = [{"name": "gate"}]
        if self.kai and rng.random() < 0.3:
            more["annotations"], asks = {"gpu-fraction": "0.5"}, {"cpu": "500m"}
        kind = Kind(rng.choice(QUEUES), asks, rng.choice(("", "", "low", "high")), more)
        if "annotations" not in more and rng.random() < 0.6:
            return kind
        return replace(kind, minimum=rng.randint(1, 3), extra=rng.choice((0, 0, 1)), says_least=rng.random() < 0.5)

    def _themed(self, kind: Kind) -> Kind:
        for theme in self.themes:
            kind = theme.kind(kind)
        return kind

    # what happens

    def step(self) -> None:
        if self.themes and self.rng.random() < THEMED:
            self.rng.choice(self.themes).step()
        else:
            self._step()
        for theme in self.themes:
            theme.after()

    def _step(self) -> None:
        rng, world = self.rng, self.world
        match rng.randrange(16):
            case 0 | 1 | 2 | 3 | 4:
                for _ in range(rng.choice((1, 1, 4))):
                    self._come(rng.randrange(len(self.kinds)))
            case 5 | 6 | 7:
                for name in rng.sample(world.running, min(len(world.running), rng.choice((1, 1, 2)))):
                    world.end(name)
            case 8 if world.pending:
                world.end(rng.choice(world.pending))
            case 9:
                self._node(rng.randrange(4))
            case 10:
                world.go()
            case 11:
                name = rng.choice(QUEUES)
                if name in world.cache.cluster.queues:
                    world.cache.put(replace(world.cache.cluster.queues[name], **self.due()))
            case 12 if world.running:
                world.terminate(rng.choice(world.running))
            case 13:
                for name in [name for name in world.pending if world.manifests[name]["spec"].get("schedulingGates")]:
                    world.change(name, schedulingGates=[])
            case 14:
                groups = world.cache.groups()
                group = world.cache.group(rng.choice(groups)) if groups else None
                if group is not None and rng.random() < 0.3:
                    world.cache.remove(group)
            case _:
                self._volume() if rng.random() < 0.3 else self._time()

    def _come(self, number: int) -> None:
        world, kind = self.world, self.kinds[number]
        self._serial += 1
        name = f"p{self._serial:03d}"
        if not kind.minimum:
            if not {"affinity", "topologySpreadConstraints"} & kind.more.keys() and not kind.own:
                self.single.setdefault(number, []).append(name)
            self._pod(name, kind)
            return
        least = requests_from(kind.asks) if kind.says_least else None
        world.gang(name, kind.queue, kind.minimum, priority_class=kind.priority, min_resources=least, **kind.group)
        for member in range(kind.minimum + kind.extra):
            self._pod(f"{name}-{member}", kind, group=name)

    def _pod(self, name: str, kind: Kind, group: str = "") -> None:
        more = copy.deepcopy(kind.more)
        for theme in self.themes:
            if type(theme).__name__ in kind.own:
                theme.pod(name, more)
        self.world.pod(name, kind.asks, group=group, queue=kind.queue, priority=kind.priority, **more)

    def _volume(self) -> None:
        """The claim that some pods name comes, bound to a volume that is reached from everywhere."""
        modes, claim = ["ReadWriteMany"], {"namespace": "ns", "name": "data", "uid": "claim"}
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        spec = {"accessModes": modes, "volumeName": "disk", "resources": {"requests": {"storage": "1"}}}
        self.world.put("PersistentVolumeClaim", {"metadata": claim | bound, "spec": spec, "status": {"phase": "Bound"}})
        spec = {"accessModes": modes, "capacity": {"storage": "1"}, "claimRef": claim, "hostPath": {"path": "/data"}}
        self.world.put("PersistentVolume", {"metadata": {"name": "disk"}, "spec": spec, "status": {"phase": "Bound"}})

    def _time(self) -> None:
        self.world.now += self.rng.choice((0.3, 1.0, 5.0))
        self.world.scheduling_queue.flush_backoff(self.world.now)

    def overtaken(self) -> list[tuple[str, str]]:
        """(older, younger) among equal single pods, where the younger runs and the older waits, and not for a node it was promised."""
        task = self.world.cache.cluster.task
        running = set(self.world.running)
        pending = {name for name in self.world.pending if (spec := task(name)) is not None and not spec.nominated_node}
        found = []
        for names in self.single.values():
            waiting = next((name for name in names if name in pending), None)
            if waiting is not None:
                found += [(waiting, name) for name in names[names.index(waiting) :] if name in running]
        return found


def _required(key: str, app: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
