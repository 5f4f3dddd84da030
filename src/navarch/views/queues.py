"""Queues as people see them: the tree, with what each queue is owed, has and asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from navarch.engine.record import QueueFigures
from navarch.model.cluster import Cluster
from navarch.model.objects.queue_usage import QUEUE_USAGE
from navarch.model.resources import format_amount, parse_amount
from navarch.model.spec import QueueSpec, Requests
from navarch.views.published_state import PublishedState
from navarch.views.quantities import Amounts, quantities


@dataclass(frozen=True)
class QueueRow:
    name: str
    depth: int
    parent: str
    state: str
    weight: int
    priority: int
    quota: Mapping[str, str]
    limit: Mapping[str, str]
    deserved: Amounts
    fair_share: Amounts | None
    """None: the policy does not divide the cluster over a tree of queues."""
    usage: Mapping[str, float]
    """Resource -> what it held over time, as a fraction of the cluster; empty where no history is kept."""
    allocated: Amounts
    request: Amounts
    share: float
    waiting: int
    """Jobs that wait with at least one pod."""
    running: int
    labels: Mapping[str, str] = field(default_factory=dict)
    resource: str = "queue"
    """Its kind as kubectl takes it: `queue.scheduling.volcano.sh`."""

    @property
    def identity(self) -> tuple[str, str, str]:
        return "", self.resource, self.name

    @property
    def titles(self) -> frozenset[str]:
        """All that a user may type for it."""
        return frozenset((self.name, f"queue/{self.name}"))

    @property
    def label_sets(self) -> Sequence[Mapping[str, str]]:
        return (self.labels,)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "parent": self.parent,
            "state": self.state,
            "weight": self.weight,
            "priority": self.priority,
            "quota": dict(self.quota),
            "limit": dict(self.limit),
            "deserved": quantities(self.deserved),
            **({} if self.fair_share is None else {"fairShare": quantities(self.fair_share)}),
            **({"usage": {name: round(part, 4) for name, part in sorted(self.usage.items())}} if self.usage else {}),
            "allocated": quantities(self.allocated),
            "request": quantities(self.request),
            "share": round(self.share, 4),
            "jobs": {"waiting": self.waiting, "running": self.running},
        }


def published_rows(state: PublishedState) -> list[QueueRow]:
    """The rows of queues as the scheduler publishes them, for users who may not list the cluster. The tree is not known then."""
    return [
        QueueRow(
            name=each.queue,
            depth=0,
            parent="",
            state="Open",
            weight=1,
            priority=0,
            quota={},
            limit={},
            deserved=_amounts(each.deserved),
            fair_share=None if each.fair_share is None else _amounts(each.fair_share),
            usage={},
            allocated=_amounts(each.allocated),
            request=_amounts(each.request),
            share=each.share,
            waiting=each.waiting,
            running=each.running,
        )
        for each in state.queues
    ]


def with_published_shares(rows: Sequence[QueueRow], state: PublishedState) -> list[QueueRow]:
    """The rows with what the scheduler says that queues are owed. What they hold and request is counted here, from the objects."""
    known = {each.queue: each for each in state.queues}
    found = []
    for row in rows:
        told = known.get(row.name)
        if told is None:
            found.append(replace(row, deserved={}, fair_share=None if row.fair_share is None else {}, share=0.0))
            continue
        fair = None if told.fair_share is None else _amounts(told.fair_share)
        found.append(replace(row, deserved=_amounts(told.deserved), fair_share=fair, share=told.share))
    return found


def _amounts(quantities: Mapping[str, str]) -> Amounts:
    return {name: parse_amount(name, quantity) for name, quantity in quantities.items()}


def queue_rows(
    cluster: Cluster, queues: Iterable[QueueFigures], jobs_waiting: Mapping[str, int], jobs_running: Mapping[str, int]
) -> list[QueueRow]:
    """One row a queue, each below its parent. `jobs_waiting`, `jobs_running`: by the queue that the jobs name."""
    figures = {each.queue: each for each in queues}
    allocated = with_below(cluster.queues, figures, "allocated")
    request = with_below(cluster.queues, figures, "request")
    usage = cluster.objects.get(QUEUE_USAGE, {})
    waiting, running = _counts_with_below(cluster.queues, jobs_waiting), _counts_with_below(cluster.queues, jobs_running)
    rows = []
    for name, depth in _tree(cluster.queues):
        spec = cluster.queues[name]
        own = figures.get(name) or QueueFigures(name, {}, {}, {}, 0.0)
        rows.append(
            QueueRow(
                name=name,
                depth=depth,
                parent=spec.parent if spec.parent in cluster.queues else "",
                state=spec.state or "Open",
                weight=spec.weight,
                priority=spec.priority,
                quota=_quota(spec),
                limit=_limit(spec),
                deserved=own.deserved,
                fair_share=own.fair_share,
                usage=usage.get(("", name), {}),
                allocated=allocated[name],
                request=request[name],
                share=own.share,
                waiting=waiting.get(name, 0),
                running=running.get(name, 0),
                labels=spec.labels,
                resource=f"queue.{spec.api_version.rpartition('/')[0]}".rstrip("."),
            )
        )
    return rows


def _tree(queues: Mapping[str, QueueSpec]) -> list[tuple[str, int]]:
    """Names with their depth, each below its parent, by name. A cycle of parents is cut at its first name."""
    below: dict[str, list[str]] = {}
    for name, spec in sorted(queues.items()):
        below.setdefault(spec.parent if spec.parent in queues and spec.parent != name else "", []).append(name)
    found: list[tuple[str, int]] = []
    seen: set[str] = set()

    def add_below(parent: str, depth: int) -> None:
        for name in below.get(parent, ()):
            if name not in seen:
                seen.add(name)
                found.append((name, depth))
                add_below(name, depth + 1)

    add_below("", 0)
    found += [(name, 0) for name in sorted(queues) if name not in seen]
    return found


def with_below(queues: Mapping[str, QueueSpec], figures: Mapping[str, QueueFigures], part: str) -> dict[str, dict[str, float]]:
    """Queue -> its own figures and those of all queues below it."""
    totals: dict[str, dict[str, float]] = {name: {} for name in queues}
    for name in queues:
        own = figures.get(name)
        if own is None:
            continue
        # A policy that divides the cluster over the tree gives sums already.
        for above in (name,) if own.with_below else ancestors(queues, name):
            for resource, amount in getattr(own, part).items():
                totals[above][resource] = totals[above].get(resource, 0) + amount
    return totals


def _counts_with_below(queues: Mapping[str, QueueSpec], own: Mapping[str, int]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for queue, count in own.items():
        for name in ancestors(queues, queue):
            totals[name] = totals.get(name, 0) + count
    return totals


def ancestors(queues: Mapping[str, QueueSpec], name: str) -> list[str]:
    """The queue and all above it, each once even in a cycle of parents."""
    found: list[str] = []
    while name in queues and name not in found:
        found.append(name)
        name = queues[name].parent
    return found


def _limit(spec: QueueSpec) -> dict[str, str]:
    """The queue never exceeds this."""
    found = {
        name: f"{share.limit:g}" if name == "gpu" else format_amount(name, share.limit)
        for name, share in sorted(spec.shares.items())
        if share.limit >= 0
    }
    return found | _named(spec.capability, found)


def _quota(spec: QueueSpec) -> dict[str, str]:
    """What the queue's object grants it."""
    found: dict[str, str] = {}
    for name, share in sorted(spec.shares.items()):
        if share.quota >= 0:
            found[name] = f"{share.quota:g}" if name == "gpu" else format_amount(name, share.quota)
    for requests in (spec.deserved, spec.guarantee):
        found.update(_named(requests, found))
    return found


def _named(requests: Requests | None, known: Mapping[str, str]) -> dict[str, str]:
    return {name: format_amount(name, amount) for name, amount in requests or () if name not in known}
