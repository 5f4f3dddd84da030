"""What else may change while jobs wait, a theme each: nodes that go and come back, quotas, queues, budgets, classes, groups, pods.

A history takes a few themes (`history`), so that what they change meets in many ways and each history stays short. A theme
may add demands to a kind of jobs, and takes one step when it is its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from tests.worlds.live_core.cluster import CLASSES

from navarch.model.resources import requests_from
from navarch.model.spec import (
    DisruptionBudgetSpec,
    LabelSelector,
    NamespaceSpec,
    NodeSpec,
    PriorityClassSpec,
    QueueShare,
    QuotaSpec,
    Requirement,
    Taint,
)

if TYPE_CHECKING:
    from tests.worlds.live_core.history import History, Kind


class Theme:
    """Something that may change. Without a step of its own nothing does."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.rng = history.rng
        self.world = history.world

    def start(self) -> None:
        """What is there before the first pod."""

    def kind(self, kind: Kind) -> Kind:
        """What such jobs ask for besides."""
        return kind

    def pod(self, name: str, more: dict[str, Any]) -> None:
        """A pod is about to come; `more` is of its spec."""

    def step(self) -> None: ...

    def after(self) -> None:
        """Pods came or went: what controllers would do about it."""


class Nodes(Theme):
    """Nodes are deleted with their pods and come back, are cordoned, get other labels and taints, shrink and grow."""

    def start(self) -> None:
        self.gone: dict[str, NodeSpec] = {}

    def step(self) -> None:
        rng, world = self.rng, self.world
        there = [spec for spec in world.cache.cluster.nodes.specs if spec is not None]
        if self.gone and (not there or rng.random() < 0.4):
            world.cache.put(self.gone.pop(rng.choice(sorted(self.gone))))
            return
        if not there:
            return
        spec = rng.choice(sorted(there, key=lambda each: each.name))
        match rng.randrange(5):
            case 0:
                self.gone[spec.name] = spec
                world.lose_node(spec, first=rng.random() < 0.5)
            case 1:
                world.cache.put(replace(spec, unschedulable=not spec.unschedulable))
            case 2:
                world.cache.put(replace(spec, labels={**spec.labels, "zone": rng.choice("abc")}))
            case 3:
                effect = rng.choice(("NoSchedule", "NoExecute"))
                world.cache.put(replace(spec, taints=() if spec.taints else (Taint("kept", "", effect),)))
            case _:
                now = requests_from({"cpu": rng.choice((1, 3, 8)), "pods": rng.choice((2, 20))})
                world.cache.put(replace(spec, allocatable=tuple({**dict(spec.allocatable), **dict(now)}.items())))


class Quotas(Theme):
    """The namespace has a quota, whose use follows its pods as the controller would have it."""

    def start(self) -> None:
        self.hard = 4
        self.shown: QuotaSpec | None = None
        self.after()

    def kind(self, kind: Kind) -> Kind:
        return replace(kind, says_least=True) if kind.minimum else kind

    def step(self) -> None:
        if self.shown is not None and self.rng.random() < 0.2:
            self.world.cache.remove(self.shown)
            self.shown = None
            self.hard = 0
            return
        self.hard = self.rng.choice((2, 4, 6, 10))
        self.after()

    def after(self) -> None:
        if not self.hard:
            return
        asked = [each["spec"]["containers"][0]["resources"]["requests"] for each in self.world.manifests.values()]
        used = sum(dict(requests_from(each)).get("cpu", 0) for each in asked)
        quota = QuotaSpec("ns", "quota", requests_from({"cpu": self.hard}), (("cpu", used),))
        if quota != self.shown:
            self.shown = quota
            self.world.cache.put(quota)


class Queues(Theme):
    """Queues are closed and opened, moved, made reclaimable or not, deleted and made again; what they are due changes."""

    def start(self) -> None:
        self.gone: dict[str, Any] = {}

    def step(self) -> None:
        rng, cache = self.rng, self.world.cache
        name = rng.choice(("a", "b"))
        if name in self.gone:
            cache.put(self.gone.pop(name))
            return
        queue = cache.cluster.queues[name]
        match rng.randrange(6):
            case 0:
                self.gone[name] = queue
                cache.remove(queue)
            case 1 | 2:
                cache.put(replace(queue, state="Closed" if queue.state == "Open" else "Open"))
            case 3:
                cache.put(replace(queue, reclaimable=not queue.reclaimable, priority=rng.choice((0, 100))))
            case 4 if not self.history.kai:
                deserved = rng.choice((None, requests_from({"cpu": rng.randint(1, 6)})))
                guarantee = rng.choice((None, None, requests_from({"cpu": 1})))
                cache.put(replace(queue, deserved=deserved, guarantee=guarantee))
            case 4 | 5 if self.history.kai:
                cpu = QueueShare(rng.choice((-1.0, 2000.0)), rng.choice((-1.0, 500.0, 2000.0)), rng.choice((0.0, 1.0, 3.0)))
                cache.put(replace(queue, shares={**queue.shares, "cpu": cpu}))
            case _:
                cache.put(replace(queue, **self.history.due()))


class Budgets(Theme):
    """Disruption budgets come, go and permit more or less."""

    def step(self) -> None:
        rng, cache = self.rng, self.world.cache
        known = cache.cluster.budgets
        name = rng.choice("xy")
        if ("ns", name) in known and rng.random() < 0.3:
            cache.remove(known["ns", name])
            return
        cache.put(DisruptionBudgetSpec("ns", name, LabelSelector((Requirement("app", "In", (name,)),)), rng.choice((0, 1, 5))))


class Classes(Theme):
    """Priority classes are deleted, and made again with another value: groups follow, pods keep what they were given."""

    def step(self) -> None:
        rng, cache = self.rng, self.world.cache
        name = rng.choice(("low", "high"))
        known = cache.cluster.priority_classes.get(name)
        if known is not None and rng.random() < 0.5:
            cache.remove(known)
        else:
            cache.put(PriorityClassSpec(name, rng.choice((CLASSES[name], 5, 500, 2000)), rng.random() < 0.2))


class Groups(Theme):
    """Groups that wait or run get another minimum, another queue, another class."""

    def step(self) -> None:
        rng, cache = self.rng, self.world.cache
        groups = cache.groups()
        group = cache.group(rng.choice(groups)) if groups else None
        if group is None:
            return
        match rng.randrange(4):
            case 0 | 1:
                cache.put(replace(group, min_member=max(1, group.min_member + rng.choice((-2, -1, 1)))))
            case 2:
                cache.put(replace(group, queue="b" if group.queue == "a" else "a"))
            case _:
                cache.put(replace(group, priority_class=rng.choice(("", "low", "high"))))


class Pods(Theme):
    """Pods that run get other labels, or ask for less or more in place; one that waits loses its gate or gets another label."""

    def step(self) -> None:
        rng, world = self.rng, self.world
        if world.running and rng.random() < 0.7:
            name = rng.choice(world.running)
            if rng.random() < 0.3:
                world.label(name, app=rng.choice("xyz"))
            else:
                world.resize(name, rng.choice(("100m", "100m", "3")))
        elif world.pending:
            world.label(rng.choice(world.pending), app=rng.choice("xyz"))


class Ports(Theme):
    """Some pods want a port of their node."""

    def kind(self, kind: Kind) -> Kind:
        if self.rng.random() < 0.5:
            return kind
        return replace(kind, more={**kind.more, "ports": [{"containerPort": 80, "hostPort": 80}]})


class Namespaces(Theme):
    """Some pods want to be near, or far from, the pods of namespaces with a label, which the namespace has now and then."""

    def kind(self, kind: Kind) -> Kind:
        chance = self.rng.random()
        if chance < 0.3 or "affinity" in kind.more:
            return kind
        select = {"matchLabels": {"app": self.rng.choice("xy")}}
        term = {"topologyKey": "zone", "labelSelector": select, "namespaceSelector": {"matchLabels": {"team": "t"}}}
        rule = "podAffinity" if chance < 0.6 else "podAntiAffinity"
        affinity = {rule: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return replace(kind, more={**kind.more, "affinity": affinity})

    def start(self) -> None:
        self.world.cache.put(NamespaceSpec("ns"))

    def step(self) -> None:
        labels = {} if self.world.cache.cluster.namespaces["ns"].labels else {"team": "t"}
        self.world.cache.put(NamespaceSpec("ns", labels=labels))
