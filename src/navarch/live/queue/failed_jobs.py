"""Jobs that hold nodes, and nodes, on which a rule failed: they take no part in cycles until a back-off ends.

A job that waits as a whole is inactive in the scheduling queue until its back-off ends. A job with pods on nodes takes part in every
cycle, because others may have to know whose pods those are. It would fail, or hang, in each of them. So would a node.
"""

from __future__ import annotations

from navarch.engine.record import CycleRecord
from navarch.model.cluster import Cluster
from navarch.model.status import ON_NODE

INITIAL_BACKOFF, MAX_BACKOFF = 10.0, 600.0
_PLACED = [int(status) for status, there in enumerate(ON_NODE) if there]


class FailedJobs:
    def __init__(self) -> None:
        self._until: dict[str, tuple[int, float]] = {}
        """Job -> failures in a row, and the time until which it is set aside."""

    def take(self, record: CycleRecord, now: float) -> None:
        for failure in record.failures:
            self._until[failure.job] = _next(self._until.get(failure.job), now)

    def set_aside(self, cluster: Cluster, now: float) -> list[str]:
        """Jobs that take no part in a cycle at this time. A job that is tried again and does not fail is forgotten later."""
        out = []
        for job, (_, until) in sorted(self._until.items()):
            row = cluster.jobs.rows.of.get(job)
            if row is None or now > until + MAX_BACKOFF:
                del self._until[job]
            elif now < until and cluster.jobs.counts[row, _PLACED].any():
                out.append(job)
        return out


class FailedNodes:
    def __init__(self) -> None:
        self._until: dict[str, tuple[int, float]] = {}
        """Node -> failures in a row, and the time until which it is left out."""

    def take(self, record: CycleRecord, now: float) -> None:
        for failure in record.node_failures:
            self._until[failure.node] = _next(self._until.get(failure.node), now)

    def left_out(self, now: float) -> list[str]:
        """Nodes that take no part in a cycle at this time. A node that is read again and does not fail is forgotten later."""
        self._until = {node: entry for node, entry in self._until.items() if now <= entry[1] + MAX_BACKOFF}
        return sorted(node for node, (_, until) in self._until.items() if now < until)


def _next(before: tuple[int, float] | None, now: float) -> tuple[int, float]:
    count = before[0] + 1 if before is not None else 1
    return count, now + min(INITIAL_BACKOFF * 2 ** min(count - 1, 10), MAX_BACKOFF)
