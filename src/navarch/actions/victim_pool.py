"""Victims in the order in which they give way: batch after batch, each of which goes as a whole.

An elastic job gives one surplus task at a time and stands in the pool again with what is left of it; at last what it needs goes
at once. Batches that a search has settled on already (`recorded`) do not come again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from navarch.engine.chunks import next_to_evict
from navarch.engine.forest import JobForest
from navarch.engine.job import Job
from navarch.engine.job_copy import JobCopy, whole_job
from navarch.engine.session import Session


@dataclass(frozen=True, slots=True)
class Batch:
    job: Job
    tasks: tuple[int, ...]


def batches(
    session: Session, jobs: Sequence[Job], recorded: Collection[int] = (), limit: int | None = None
) -> Iterator[Batch]:
    """`limit`: how many jobs at most take part."""
    forest = JobForest(session, jobs, _held, victims=True)
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
