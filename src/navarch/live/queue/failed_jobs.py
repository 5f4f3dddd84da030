"""Jobs and nodes on which a rule failed: they take no part in cycles until a back-off ends.

A job that waits as a whole is inactive in the scheduling queue until its back-off ends. A job with pods on nodes takes part in every
cycle, because others may have to know whose pods those are. It would fail in each of them. So would a node.

A rule that hung costs all jobs seconds, or the process. Such a job is set aside wherever its pods are, and no change of its own brings
it back sooner. A namespace with several jobs that ended a process is set aside as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from msgspec import Struct

from navarch.engine.record import CycleRecord, JobFailure
from navarch.model.cluster import Cluster
from navarch.model.status import ON_NODE

INITIAL_BACKOFF, MAX_BACKOFF = 10.0, 600.0
MOST_HUNG = 2
"""Jobs of one namespace that may end a process each; with one more all its jobs are set aside."""
_PLACED = [int(status) for status, there in enumerate(ON_NODE) if there]


class BackOff(Struct, frozen=True):
    """`count`: failures in a row. `until`: the time until which the job is set aside. `hung`: wherever its pods are."""

    count: int
    until: float
    hung: bool = False


class FailedJobs:
    def __init__(self) -> None:
        self._until: dict[str, BackOff] = {}
        self._ended: dict[str, tuple[float, JobFailure]] = {}
        """Job that ended a process -> until when it is set aside, and what happened."""
        self._told: set[str] = set()
        """Those of them, and jobs of their namespaces, that a record has told."""

    def take(self, record: CycleRecord, now: float) -> None:
        before = {failure.job for failure in record.failed_before}
        self._told |= before
        for failure in record.failures:
            if failure.job not in before:
                self._until[failure.job] = _next(self._until.get(failure.job), now, hung=failure.took_too_long)

    def set_ended(self, jobs: Mapping[str, tuple[float, JobFailure]]) -> None:
        """The jobs that ended a process, each with the time until which it is set aside."""
        self._ended = dict(jobs)
        self._told.clear()

    def set_aside(self, cluster: Cluster, now: float) -> list[str]:
        """Jobs that take no part in a cycle at this time. A job that is tried again and does not fail is forgotten later."""
        out = set()
        for job, back_off in list(self._until.items()):
            row = cluster.jobs.rows.of.get(job)
            if row is None or now > back_off.until + MAX_BACKOFF:
                del self._until[job]
            elif now < back_off.until and (back_off.hung or cluster.jobs.counts[row, _PLACED].any()):
                out.add(job)
        if self._ended:
            out |= self._held_back(cluster, now)
        return sorted(out)

    def _held_back(self, cluster: Cluster, now: float) -> set[str]:
        self._ended = {job: entry for job, entry in self._ended.items() if now < entry[0]}
        counts = Counter(_namespace(job) for job in self._ended)
        whole = {namespace for namespace, count in counts.items() if count > MOST_HUNG}
        jobs = cluster.jobs.rows.of
        return {job for job in (jobs if whole else self._ended) if job in jobs and (job in self._ended or _namespace(job) in whole)}

    def unreported(self, set_aside: Collection[str]) -> list[JobFailure]:
        """What the next record has to tell of jobs that are set aside because they, or others of their namespace, ended a process."""
        found = []
        for job in set_aside if self._ended else ():
            if job in self._told or job in self._until:
                continue
            _, failure = self._ended.get(job, (0.0, None))
            if failure is None:
                where = min(entry[1].where for each, entry in self._ended.items() if _namespace(each) == _namespace(job))
                failure = JobFailure(job, where, "other jobs of the namespace ended the process", took_too_long=True)
            found.append(failure)
        return found


class FailedNodes:
    def __init__(self) -> None:
        self._until: dict[str, BackOff] = {}

    def take(self, record: CycleRecord, now: float) -> None:
        for failure in record.node_failures:
            self._until[failure.node] = _next(self._until.get(failure.node), now)

    def left_out(self, now: float) -> list[str]:
        """Nodes that take no part in a cycle at this time. A node that is read again and does not fail is forgotten later."""
        self._until = {node: back_off for node, back_off in self._until.items() if now <= back_off.until + MAX_BACKOFF}
        return sorted(node for node, back_off in self._until.items() if now < back_off.until)


def _next(before: BackOff | None, now: float, *, hung: bool = False) -> BackOff:
    count = before.count + 1 if before is not None else 1
    return BackOff(count, now + min(INITIAL_BACKOFF * 2 ** min(count - 1, 10), MAX_BACKOFF), hung)


def _namespace(job: str) -> str:
    return job.partition("/")[0]
