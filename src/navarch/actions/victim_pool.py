"""Victims in the order in which they give way: batch after batch, each of which goes as a whole.

An elastic job gives one surplus task at a time and stands in the pool again with what is left of it; at last what it needs goes
at once. Batches that a search has settled on already (`recorded`) do not come again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from navarch.engine.chunks import next_to_evict
from navarch.engine.forest import JobForest
from navarch.engine.job import Job
from navarch.engine.job_copy import JobCopy, whole_job
from navarch.engine.job_shelf import JobShelf
from navarch.engine.session import Session


@dataclass(frozen=True, slots=True)
class Batch:
    job: Job
    tasks: tuple[int, ...]


@dataclass(slots=True)
class VictimPool:
    """Who may be a victim: running jobs in order, of the queues and of the kind that the action allows."""

    shelf: JobShelf
    allows: Callable[[Job], bool]
    limit: int | None = None
    """How many jobs at most take part."""
    _known: dict[int, bool] = field(default_factory=dict)

    def accepts(self, job: Job) -> bool:
        """Found out once, before anything is evicted."""
        known = self._known.get(job.row)
        if known is None:
            known = self._known[job.row] = self.allows(job)
        return known


def batches(session: Session, pool: VictimPool, recorded: Collection[int] = ()) -> Iterator[Batch]:
    forest = JobForest(session, (), _held, victims=True, shelf=pool.shelf, accepts=pool.accepts)
    limit = pool.limit
    seen: set[int] = set()
    while (job := forest.pop()) is not None:
        chunk = next_to_evict(session, job.tree)
        if not chunk:
            continue
        again = bool(recorded) and any(task in recorded for task in chunk)
        active = job.tree.active
        gone = [task for task in active if task in recorded] if again else chunk
        if len(gone) < len(active):
            forest.push(JobCopy(job, job.tree.without(gone)))
        if again:
            continue
        if limit is not None and job.row not in seen:
            if len(seen) == limit:
                continue
            seen.add(job.row)
        yield Batch(whole_job(job), tuple(chunk))


def _held(job: Job) -> list[int]:
    return job.tree.active
