"""Nodes in columns: one array for all nodes, or for those that changed, so that a map of 40,000 cells is small and quick to make."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from navarch.model.cluster import Cluster
from navarch.model.resources import IntArray, RowArray
from navarch.model.spec import NodeSpec
from navarch.web.cluster.assessment import Assessment
from navarch.web.tables.amounts import plain_list, shown_resources

READY, CORDONED, TAINTED = 1, 2, 4
MOST_LEVELS: Final = 6
_PLACES: Final = ("rack", "block", "spine", "superpod", "room", "row", "cell")
"""Words in the names of labels that say where a node stands."""
Sees = Callable[[str], bool]
"""Whether the viewer may see names of this namespace."""


class NodeTable:
    def __init__(self, cluster: Cluster, shared: Mapping[str, Mapping[str, int]]) -> None:
        """`shared`: node -> its devices that pods share."""
        self._cluster, self._shared = cluster, shared
        self._levels: tuple[int, list[str]] = (-1, [])
        self._names: tuple[int, list[str]] = (-1, [])

    def names(self) -> list[str]:
        """All nodes that have an object, sorted."""
        table = self._cluster.nodes
        if self._names[0] != table.version:
            self._names = table.version, sorted(name for name, row in table.rows.of.items() if table.alive[row])
        return self._names[1]

    def exists(self, name: str) -> bool:
        row = self._cluster.nodes.rows.of.get(name)
        return row is not None and bool(self._cluster.nodes.alive[row])

    def used(self) -> IntArray:
        """(resources, rows): what is used. A device that pods share is used."""
        table, names = self._cluster.nodes, self._cluster.space.names
        used = table.used[: len(names), : max(1, table.rows.top)]
        if self._shared:
            used = used.copy()
            device = np.array([name.endswith("/gpu") for name in names[: used.shape[0]]])
            for node, groups in self._shared.items():
                row = table.rows.of.get(node, -1)
                has = np.flatnonzero(device & (table.allocatable[: used.shape[0], row] > 0))
                if row >= 0 and has.size:
                    used[int(has[0]), row] += 1000 * len(groups)
        return used

    def levels(self) -> list[str]:
        """Labels that name a place in the topology, the widest first."""
        table = self._cluster.nodes
        if self._levels[0] != table.version:
            values: dict[str, set[str]] = {}
            for spec in table.specs:
                for key, value in spec.labels.items() if spec is not None else ():
                    if _is_place(key):
                        values.setdefault(key, set()).add(value)
            found = sorted(
                (key for key, seen in values.items() if len(seen) < max(2, len(self.names()))), key=lambda key: (len(values[key]), key)
            )
            self._levels = table.version, found[:MOST_LEVELS]
        return self._levels[1]

    def columns(
        self, names: Sequence[str], assessment: Assessment, sees: Sees, queues: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The columns of these nodes, which have to exist. `queues`: those whose names may be seen; None: all."""
        cluster, table = self._cluster, self._cluster.nodes
        rows = np.array([table.rows.of[name] for name in names], dtype=np.int64)
        specs = [spec for row in rows.tolist() if (spec := table.specs[row]) is not None]
        used, size = self.used(), len(cluster.space.names)
        alive = table.alive[: table.allocatable.shape[1]]
        shown = shown_resources(cluster.space.names, table.allocatable[:size, alive].sum(axis=1))
        resources = [cluster.space.names[each] for each in shown]
        job, queue = self._holders(rows, resources, shown, sees, queues)
        return {
            "levels": self.levels(),
            "resources": resources,
            "names": list(names),
            "status": [_status(spec) for spec in specs],
            "pods": plain_list("pods", used[2, rows]),
            "allocatable": [plain_list(name, table.allocatable[each, rows]) for each, name in zip(shown, resources)],
            "used": [plain_list(name, used[each, rows]) for each, name in zip(shown, resources)],
            "useless": _useless(names, resources, assessment),
            "domains": [_coded(spec.labels.get(key) for spec in specs) for key in self.levels()],
            "queue": queue,
            "job": job,
        }

    def _holders(
        self, rows: IntArray, resources: list[str], shown: list[int], sees: Sees, queues: Collection[str] | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The job and the queue that hold most of each node: of its devices, or of its CPU where it has none."""
        cluster, table, tasks = self._cluster, self._cluster.nodes, self._cluster.tasks
        place = np.full(max(1, table.rows.top) + 1, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        top = tasks.rows.top
        at = place[tasks.node[:top]]
        held = np.flatnonzero((tasks.node[:top] >= 0) & (at >= 0) & (tasks.job[:top] >= 0))
        device = next((each for each, name in zip(shown, resources) if "/" in name), 0)
        dims = np.where(table.allocatable[device, rows] > 0, device, 0)
        at, job, shape = at[held], tasks.job[held].astype(np.int64), tasks.shape[held]
        asked = cluster.shapes.request
        amount = np.where(dims[at] < asked.shape[0], asked[np.minimum(dims[at], asked.shape[0] - 1), shape], 0)
        keys, jobs = cluster.jobs.keys, cluster.jobs
        of_job = _most(at, job, amount, len(rows))
        of_queue = _most(at, jobs.queue[job].astype(np.int64), amount, len(rows))
        names = {number: name for name, number in jobs.queue_names.items()}
        found = [None if number < 0 else keys[number] for number in of_job.tolist()]
        return (
            _coded(found, lambda key: sees(key.partition("/")[0])),
            _coded(
                (None if number < 0 else names[number] for number in of_queue.tolist()), lambda name: queues is None or name in queues
            ),
        )


def _most(at: IntArray, holder: IntArray, amount: IntArray, size: int) -> RowArray:
    """For each place the holder with the largest sum of amounts; -1: none holds anything. The smallest number wins a tie."""
    found: RowArray = np.full(size, -1, dtype=np.int32)
    keep = (amount > 0) & (holder >= 0)
    at, holder, amount = at[keep], holder[keep], amount[keep]
    if not len(at):
        return found
    order = np.lexsort((holder, at))
    at, holder, amount = at[order], holder[order], amount[order]
    first = np.flatnonzero(np.r_[True, (at[1:] != at[:-1]) | (holder[1:] != holder[:-1])])
    sums = np.add.reduceat(amount, first)
    at, holder = at[first], holder[first]
    best = np.lexsort((-holder, sums, at))
    found[at[best]] = holder[best]
    return found


def _useless(names: Sequence[str], resources: list[str], assessment: Assessment) -> list[list[Any]]:
    column = np.array([assessment.nodes.get(name, -1) for name in names], dtype=np.int64)
    number = {name: i for i, name in enumerate(assessment.resources)}
    found = []
    for name in resources:
        if name in number and assessment.useless.size:
            amounts = np.where(column >= 0, assessment.useless[number[name]][column], 0)
        else:
            amounts = np.zeros(len(names), dtype=np.int64)
        found.append(plain_list(name, amounts))
    return found


def _coded(values: Iterable[str | None], visible: Callable[[str], bool] = lambda value: True) -> dict[str, Any]:
    """Each value once, and its number in place of it. A value that the viewer may not see is null; -1: there is none."""
    known: dict[str | None, int] = {}
    index = [-1 if value is None else known.setdefault(value if visible(value) else None, len(known)) for value in values]
    return {"values": list(known), "index": index}


def _status(spec: NodeSpec) -> int:
    tainted = any(taint.effect in ("NoSchedule", "NoExecute") for taint in spec.taints)
    return READY * spec.ready + CORDONED * spec.unschedulable + TAINTED * tainted


def _is_place(key: str) -> bool:
    """
    >>> _is_place("topology.kubernetes.io/zone"), _is_place("example.com/rack"), _is_place("kubernetes.io/hostname")
    (True, True, False)
    """
    prefix, _, name = key.rpartition("/")
    return prefix.startswith("topology.") or any(word in name.lower() for word in _PLACES)
