"""The cluster at a glance: what is used, free and useless, which queues starve, and the gang that waits longest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from navarch.engine.record import QueueFigures
from navarch.explanation.queues import beyond, lacking, overlap
from navarch.model.cluster import Cluster
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import IS_ALLOCATED, TaskStatus
from navarch.views.quantities import numbers, plain
from navarch.web.cluster.assessment import Assessment
from navarch.web.tables.amounts import shown_resources
from navarch.web.tables.jobs import NUMBER, Row

MOST_QUEUES: Final = 20
"""Starved queues and loans that are told, the largest first."""
_OLDEST: Final = ("id", "namespace", "name", "queue", "created", "minMember", "pending", "place", "of", "start", "cause", "never")
_MIN_MEMBER, _CREATED, _ID = NUMBER["minMember"], NUMBER["created"], NUMBER["id"]


class ClusterTotals:
    """Sums over nodes and pods. What nodes say of themselves is read again only when a node changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._closed: tuple[int, BoolArray, BoolArray] | None = None

    def _closed_and_ready(self) -> tuple[BoolArray, BoolArray]:
        """By row: whether the node takes no pods, and whether it is ready."""
        table = self._cluster.nodes
        if self._closed is None or self._closed[0] != table.changes:
            specs = table.specs
            closed = np.array([spec is not None and (not spec.ready or spec.unschedulable) for spec in specs] or [False])
            ready = np.array([spec is not None and spec.ready for spec in specs] or [False])
            self._closed = table.changes, closed, ready
        return self._closed[1], self._closed[2]

    def to_dict(self, used: IntArray, assessment: Assessment) -> dict[str, Any]:
        """`used`: (resources, rows of the node table)."""
        cluster, table = self._cluster, self._cluster.nodes
        closed, ready = self._closed_and_ready()
        top = min(len(closed), used.shape[1])
        alive = table.alive[:top]
        size = used.shape[0]
        total = table.allocatable[:size, :top][:, alive].sum(axis=1)
        status = cluster.tasks.status[: cluster.tasks.rows.top][cluster.tasks.alive[: cluster.tasks.rows.top]]
        by_status = np.bincount(status, minlength=len(TaskStatus))
        resources = []
        for each in shown_resources(cluster.space.names, total):
            name = cluster.space.names[each]
            has = table.allocatable[each, :top][alive]
            holds = np.minimum(used[each, :top][alive], has)
            shut = int((has - holds)[closed[:top][alive]].sum())
            free = int(has.sum() - holds.sum()) - shut
            useless = min(free, _useless(name, assessment))
            amounts = {"total": int(has.sum()), "used": int(holds.sum()), "free": free, "useless": useless, "closed": shut}
            resources.append({"resource": name, **{word: plain(name, amount) for word, amount in amounts.items()}})
        return {
            "resources": resources,
            "nodes": {
                "total": int(alive.sum()),
                "ready": int((ready[:top] & alive).sum()),
                "closed": int((closed[:top] & alive).sum()),
            },
            "pods": {"pending": int(by_status[TaskStatus.PENDING]), "running": int(by_status[IS_ALLOCATED].sum())},
        }


def _useless(name: str, assessment: Assessment) -> int:
    if name not in assessment.resources or not assessment.useless.size:
        return 0
    return int(assessment.useless[assessment.resources.index(name)].sum())


def starved_and_loans(cluster: Cluster, queues: Iterable[QueueFigures]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Of queues that have none below them: what each lacks, and what others hold of it beyond their due."""
    parents = {spec.parent for spec in cluster.queues.values()}
    leaves = [each for each in queues if each.queue not in parents]
    lacks = {each.queue: found for each in leaves if (found := lacking(each))}
    over = {each.queue: found for each in leaves if (found := beyond(each))} if lacks else {}
    starved = [{"queue": name, "lacks": numbers(found)} for name, found in sorted(lacks.items(), key=_largest)]
    pairs = [
        ((borrower, lender), found)
        for borrower, held in sorted(over.items())
        for lender, wanted in sorted(lacks.items())
        if lender != borrower and (found := overlap(held, wanted))
    ]
    loans = [{"borrower": pair[0], "lender": pair[1], "amounts": numbers(found)} for pair, found in sorted(pairs, key=_largest)]
    return starved[:MOST_QUEUES], loans[:MOST_QUEUES]


def _largest(entry: tuple[Any, dict[str, float]]) -> tuple[float, float, Any]:
    """By devices, then by anything else, then by name."""
    name, amounts = entry
    devices = sum(amount for resource, amount in amounts.items() if "/" in resource or resource == "gpu")
    return -devices, -sum(amounts.values()), name


def oldest_gang(rows: Iterable[Row], sees: Callable[[Row], bool] = lambda row: True) -> dict[str, Any] | None:
    """Of jobs that wait the oldest gang; where no gang waits, the oldest job."""
    found = min(
        (row for row in rows if sees(row)), key=lambda row: (row[_MIN_MEMBER] < 2, row[_CREATED] or 0.0, row[_ID]), default=None
    )
    return None if found is None else {name: found[NUMBER[name]] for name in _OLDEST}
