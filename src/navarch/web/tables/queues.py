"""Queues as rows: those of `navarch queues -o json`, with depth and with the amounts as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from navarch.engine.record import QueueFigures
from navarch.explanation.queues import beyond
from navarch.model.cluster import Cluster
from navarch.model.spec import QueueSpec
from navarch.model.status import IS_ALLOCATED, TaskStatus
from navarch.views.quantities import numbers
from navarch.views.queues import QueueRow, queue_rows
from navarch.web.cluster.assessment import Assessment
from navarch.web.tables.amounts import numbers_of

QueueRowDict = dict[str, Any]


class QueueTable:
    """`rows` by name, each below its parent."""

    def __init__(self, cluster: Cluster) -> None:
        self.rows: dict[str, QueueRowDict] = {}
        self._cluster = cluster

    def update(self, assessment: Assessment) -> tuple[list[str], list[str]]:
        """Make all rows again. Returns the names of those that differ now, and of those that are gone."""
        cluster = self._cluster
        waiting, running = _jobs_by_queue(cluster)
        figures = {each.queue: each for each in assessment.queues}
        rows = {
            row.name: _as_dict(row, cluster.queues[row.name], figures.get(row.name))
            for row in queue_rows(cluster, assessment.queues, waiting, running)
        }
        changed = [name for name, row in rows.items() if self.rows.get(name) != row]
        removed = [name for name in self.rows if name not in rows]
        self.rows = rows
        return changed, removed


def _jobs_by_queue(cluster: Cluster) -> tuple[dict[str, int], dict[str, int]]:
    """Queue -> jobs with a pod that waits, and jobs with a pod that has a node."""
    jobs = cluster.jobs
    top = jobs.rows.top
    queue, counts = jobs.queue[:top], jobs.counts[:top]
    waits = (counts[:, TaskStatus.PENDING] + counts[:, TaskStatus.PIPELINED] > 0) & (queue >= 0)
    runs = (counts[:, IS_ALLOCATED].sum(axis=1) > 0) & (queue >= 0)
    size = len(jobs.queue_names) or 1
    waiting, running = (np.bincount(queue[flags], minlength=size).tolist() for flags in (waits, runs))
    return (
        {name: waiting[number] for name, number in jobs.queue_names.items()},
        {name: running[number] for name, number in jobs.queue_names.items()},
    )


def _as_dict(row: QueueRow, spec: QueueSpec, figures: QueueFigures | None) -> QueueRowDict:
    found = row.to_dict()
    found["depth"] = row.depth
    found["numbers"] = {
        "quota": _quota(spec),
        "limit": _limit(spec),
        "guarantee": numbers_of(spec.guarantee),
        "deserved": numbers(row.deserved),
        "fairShare": numbers(row.fair_share),
        "allocated": numbers(row.allocated),
        "request": numbers(row.request),
        "borrowed": numbers(beyond(figures) if figures is not None else {}),
    }
    return found


def _quota(spec: QueueSpec) -> Mapping[str, float]:
    found = numbers({name: _of_share(name, share.quota) for name, share in spec.shares.items() if share.quota >= 0})
    return {**numbers_of(spec.guarantee), **numbers_of(spec.deserved), **found}


def _limit(spec: QueueSpec) -> Mapping[str, float]:
    found = numbers({name: _of_share(name, share.limit) for name, share in spec.shares.items() if share.limit >= 0})
    return {**numbers_of(spec.capability), **found}


def _of_share(name: str, amount: float) -> float:
    """Shares count whole devices of `gpu`, and the model thousandths."""
    return amount * 1000 if name == "gpu" else amount
