"""Victims in order of eviction, batch after batch. A batch is evicted as a whole.

An elastic job gives one surplus task at a time and returns to the pool with the rest; at last its minimum is one batch. Batches
that a search has already chosen (`recorded`) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from navarch.actions.kai.queue_forest import QueueForest
from navarch.actions.kai.sorted_jobs import SortedJobs
from navarch.engine.gangs.chunks import next_to_evict
from navarch.engine.gangs.partial_job import PartialJob, whole_job
from navarch.engine.job import Job
from navarch.engine.session import Session


class Batch(Struct, frozen=True):
    job: Job
    tasks: tuple[int, ...]
    """The last task of a gang first."""


@dataclass(slots=True)
class VictimPool:
    """The jobs that may be victims: running jobs in order, of the queues that the action allows."""

    sorted_jobs: SortedJobs
    allows: Callable[[Job], bool]
    limit: int | None = None
    """The maximum number of victim jobs."""
    _known: dict[int, bool] = field(default_factory=dict)
    _jobs: list[Job] | None = None

    def accepts(self, job: Job) -> bool:
        """Whether the job may be a victim. Evaluated once, before any eviction."""
        known = self._known.get(job.row)
        if known is None:
            known = self._known[job.row] = self.allows(job)
        return known

    def jobs(self) -> list[Job]:
        """All jobs that may be victims. Evaluated once."""
        if self._jobs is None:
            self._jobs = [job for entries in self.sorted_jobs.queues.values() for _, _, job in entries if self.accepts(job)]
        return self._jobs


Victims = list[Batch]


def without_repeats(victims: Sequence[Batch]) -> Victims:
    """Every task once, in the batch that names it first."""
    seen: set[int] = set()
    out: Victims = []
    for batch in victims:
        if seen.isdisjoint(batch.tasks) and len(set(batch.tasks)) == len(batch.tasks):
            out.append(batch)
        elif fresh := tuple(dict.fromkeys(task for task in batch.tasks if task not in seen)):
            out.append(Batch(batch.job, fresh))
        seen.update(batch.tasks)
    return out


def batches(session: Session, pool: VictimPool, recorded: Collection[int] = (), *, unlimited: bool = False) -> Iterator[Batch]:
    """The batches in order as of now, without `recorded`. `unlimited`: ignore the pool's limit."""
    found = _popped(session, pool, recorded)
    return found if unlimited else _limited(found, pool.limit)


def _popped(session: Session, pool: VictimPool, recorded: Collection[int]) -> Iterator[Batch]:
    forest = QueueForest(session, (), _held, victims=True, sorted_jobs=pool.sorted_jobs, accepts=pool.accepts)
    while (job := forest.pop()) is not None:
        chunk = next_to_evict(session, job.tree)
        if not chunk:
            continue
        again = bool(recorded) and any(task in recorded for task in chunk)
        active = job.tree.active
        gone = [task for task in active if task in recorded] if again else chunk
        if len(gone) < (len(active) if again else counted_active(session, job)):
            forest.push(PartialJob(job, job.tree.without(gone)))
        if not again:
            yield Batch(whole_job(job), tuple(reversed(chunk)))


def counted_active(session: Session, job: Job) -> int:
    """How many tasks of the job hold or are promised a node, by a count that repeated evictions of one task lower each time. Parts of
    a job are counted afresh."""
    active = len(job.tree.active)
    if not session.repeated_evictions or isinstance(job, PartialJob):
        return active
    return active - session.repeated_evictions.get(job.row, 0)


def counts_active(session: Session, job: Job) -> bool:
    """Whether that count of a job with such tasks is not zero."""
    return job.row not in session.repeated_evictions or counted_active(session, job) != 0


def _limited(ordered: Iterator[Batch], limit: int | None) -> Iterator[Batch]:
    """The batches of the first `limit` jobs; batches of other jobs are skipped."""
    if limit is None:
        yield from ordered
        return
    seen: set[int] = set()
    for batch in ordered:
        if batch.job.row not in seen:
            if len(seen) == limit:
                continue
            seen.add(batch.job.row)
        yield batch


def _held(job: Job) -> list[int]:
    return job.tree.active
