"""Jobs on which a rule failed and that hold nodes: they are set aside with back-off.

A job that waits as a whole is inactive in the scheduling queue until its back-off ends. A job with pods on nodes takes part in every
cycle, because others may have to know whose pods those are. It would fail, or hang, in each of them.
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
            count = self._until.get(failure.job, (0, 0.0))[0] + 1
            self._until[failure.job] = count, now + min(INITIAL_BACKOFF * 2 ** min(count - 1, 10), MAX_BACKOFF)

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
