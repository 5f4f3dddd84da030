"""Victims in the order in which they give way: batch after batch, each of which goes as a whole.

An elastic job gives one surplus task at a time and stands in the pool again with what is left of it; at last what it needs goes
at once. Batches that a search has settled on already (`recorded`) do not come again.

A search walks along the line many times from its beginning. `VictimLine` keeps what was popped and hands it out again: the line
with some batches recorded is the line without them, as long as each recorded batch is all that its job holds. Such a job is
popped once in either case and weighs the same on its queue, so every later pop compares the same figures; only that batch is
passed over. An elastic job of which a part is recorded is popped less often than before, so there the line is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from navarch.actions.kai.queue_forest import JobForest
from navarch.actions.kai.sorted_jobs import JobShelf
from navarch.engine.gangs.chunks import next_to_evict
from navarch.engine.gangs.partial_job import JobCopy, whole_job
from navarch.engine.job import Job
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
    _jobs: list[Job] | None = None

    def accepts(self, job: Job) -> bool:
        """Found out once, before anything is evicted."""
        known = self._known.get(job.row)
        if known is None:
            known = self._known[job.row] = self.allows(job)
        return known

    def jobs(self) -> list[Job]:
        """All who may give something, found out once."""
        if self._jobs is None:
            self._jobs = [job for entries in self.shelf.queues.values() for _, _, job in entries if self.accepts(job)]
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


class VictimLine:
    """The line of victims as of when it was made, popped as far as somebody asked for it."""

    def __init__(self, session: Session, pool: VictimPool) -> None:
        self.session, self.pool = session, pool
        self._known: Victims = []
        self._rest = batches(session, pool, unlimited=True)

    def without(self, recorded: Sequence[Batch]) -> Iterator[Batch]:
        """Batch after batch, those that are recorded already left out. The same as popping anew."""
        settled = frozenset(task for batch in recorded for task in batch.tasks)
        if any(len(next_to_evict(self.session, batch.job.tree)) < len(batch.job.tree.active) for batch in recorded):
            return batches(self.session, self.pool, settled)
        return self._passing_over(settled, self.pool.limit)

    def _passing_over(self, settled: Collection[int], limit: int | None) -> Iterator[Batch]:
        known, seen, place = self._known, set[int](), 0
        while True:
            if place == len(known):
                batch = next(self._rest, None)
                if batch is None:
                    return
                known.append(batch)
            batch = known[place]
            place += 1
            if batch.tasks[0] in settled:
                continue
            if limit is not None:
                row = batch.job.row
                if row not in seen:
                    if len(seen) == limit:
                        continue
                    seen.add(row)
            yield batch


def batches(session: Session, pool: VictimPool, recorded: Collection[int] = (), *, unlimited: bool = False) -> Iterator[Batch]:
    """The line popped afresh, without `recorded`, as of now. `unlimited`: however many jobs take part."""
    found = _popped(session, pool, recorded)
    return found if unlimited else _limited(found, pool.limit)


def _popped(session: Session, pool: VictimPool, recorded: Collection[int]) -> Iterator[Batch]:
    forest = JobForest(session, (), _held, victims=True, shelf=pool.shelf, accepts=pool.accepts)
    while (job := forest.pop()) is not None:
        chunk = next_to_evict(session, job.tree)
        if not chunk:
            continue
        again = bool(recorded) and any(task in recorded for task in chunk)
        active = job.tree.active
        gone = [task for task in active if task in recorded] if again else chunk
        if len(gone) < len(active):
            forest.push(JobCopy(job, job.tree.without(gone)))
        if not again:
            yield Batch(whole_job(job), tuple(chunk))


def _limited(line: Iterator[Batch], limit: int | None) -> Iterator[Batch]:
    """Batches of the first `limit` jobs; what others would give is passed over."""
    if limit is None:
        yield from line
        return
    seen: set[int] = set()
    for batch in line:
        if batch.job.row not in seen:
            if len(seen) == limit:
                continue
            seen.add(batch.job.row)
        yield batch


def _held(job: Job) -> list[int]:
    return job.tree.active
