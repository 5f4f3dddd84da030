"""The scheduling queue: which jobs the next cycle tries, and what brings the others back.

A pending job is in one of three states:

- active: the next cycle tries it;
- unschedulable: a cycle refused it. It becomes active when an event happens that one of its reasons names, when its own pods or group
  change, or when its back-off ends;
- backing off: it was placed, but its binding failed. It becomes active when its own pods or group change or when its back-off ends.

Back-off starts at one second and doubles up to ten. For gangs the upper limit grows with the square root of their size, because a
large gang is expensive to try. Unschedulable jobs are kept in equivalence classes (`equivalence_classes`). An event activates only as
many jobs of a class as may fit, and back-off a batch at a time.

Order is preserved: when a job is retried, the same number of older jobs of its class is retried with it, whether its back-off ended
or it has just arrived. So free capacity that no event announced goes to the oldest job.

The queue is the only owner of these states. The job table of the cluster gets a copy at the start of each cycle (`pop_changes`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterable

import numpy as np
from msgspec import Struct

from navarch.engine.reasons import Event
from navarch.live.queue.equivalence_classes import PROBE, EquivalenceClass, signature
from navarch.model.cluster import Cluster
from navarch.model.spec import Requests
from navarch.model.status import TaskStatus

INITIAL_BACKOFF = 1.0
MAX_BACKOFF = 10.0
ATTEMPTS_KEPT = 300.0
"""Seconds for which the attempts of an active job are remembered after its last back-off."""
BATCH = PROBE
"""At most this many jobs of a class become active at once when their back-off ends, or when a pod that they select by affinity was
placed. The next batch follows after `BATCH_INTERVAL`, or at once if all of them are placed (`SchedulingQueue.pop_more`)."""
BATCH_INTERVAL = 1.0

ClassKey = tuple[Hashable, frozenset[Event]]
"""What the jobs of a class have in common, and the events that activate them."""


class Attempts(Struct):
    """The scheduling attempts of a job that failed at least once."""

    count: int
    retry_at: float
    last_class: ClassKey
    """The class in which it waited last."""


class SchedulingQueue:
    """Times are on the caller's monotonic clock."""

    def __init__(self) -> None:
        self._initial_backoff, self._max_backoff = INITIAL_BACKOFF, MAX_BACKOFF
        self._attempts: dict[str, Attempts] = {}
        self._next_cleanup = 0.0
        self._inactive: dict[str, EquivalenceClass] = {}
        """Job that is unschedulable or backing off -> its class."""
        self._changed: dict[str, None] = {}
        """Jobs whose state changed since the last `pop_changes`."""
        self._reader: object = None
        """The cluster that read the changes last."""
        self._classes: dict[ClassKey, EquivalenceClass] = {}
        self._timers: list[tuple[float, int, EquivalenceClass]] = []
        """(time, serial number, class). An entry is stale if its time differs from the class's `next_flush`."""
        self._serial = 0
        self._by_event: dict[Event, dict[ClassKey, EquivalenceClass]] = {event: {} for event in Event}
        self._by_signature: dict[Hashable, dict[ClassKey, EquivalenceClass]] = {}
        self._refused: set[Hashable] = set()
        """First parts of the keys of classes in which a job failed since the last `pop_more`."""
        self._placed: dict[ClassKey, int] = {}
        """Class -> how many jobs that had waited in it were placed since the last `pop_more`."""
        self._arrived: dict[str, None] = {}
        """Jobs that never failed and were updated since the last cycle."""
        self._probed: set[ClassKey] = set()
        """Classes whose oldest job was activated since the last cycle by an event that freed no resources."""

    def is_held(self, job: str) -> bool:
        """Whether it is unschedulable or backing off, so that the next cycle does not try it."""
        return job in self._inactive

    def failed_attempts(self, job: str) -> int:
        """How often it failed since it was last bound."""
        attempts = self._attempts.get(job)
        return 0 if attempts is None else attempts.count

    def set_backoff(self, initial: float, longest: float) -> None:
        """Seconds of the first and of the longest back-off, from the next failure on."""
        self._initial_backoff, self._max_backoff = initial, longest

    def add_unschedulable(
        self,
        job: str,
        events: Iterable[Event],
        size: int,
        now: float,
        *,
        equivalence: Hashable | None = None,
        requests: Requests = (),
        created: float = 0.0,
        signature: Hashable | None = None,
    ) -> None:
        """The job was tried and not placed. Without `events` it is backing off. `size`: its number of pods. `equivalence`: the key of
        its class (`equivalence_key`); None: it is a class of its own. `requests`: see `EquivalenceClass.requests`."""
        before = self._attempts.get(job)
        count = before.count + 1 if before else 1
        longest = self._max_backoff * math.sqrt(max(size, 1))
        retry_at = now + min(self._initial_backoff * 2 ** min(count - 1, 30), longest)
        self.activate(job)
        key = (job if equivalence is None else equivalence, frozenset(events))
        found = self._class(key, requests, signature)
        found.add(job, retry_at, created)
        self._attempts[job] = Attempts(count, retry_at, key)
        self._refused.add(key[0])
        self._inactive[job] = found
        self._changed[job] = None
        if len(found) == 1 or retry_at < found.next_flush:
            self._set_timer(found, retry_at)

    def _class(self, key: ClassKey, requests: Requests, signature: Hashable | None) -> EquivalenceClass:
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = EquivalenceClass(key, key[1], requests, signature)
            for event in found.events:
                self._by_event[event][key] = found
            if signature is not None:
                self._by_signature.setdefault(signature, {})[key] = found
        return found

    def _remove_class(self, key: ClassKey, gone: EquivalenceClass) -> None:
        del self._classes[key]
        for event in gone.events:
            del self._by_event[event][key]
        if gone.signature is not None:
            of_signature = self._by_signature[gone.signature]
            del of_signature[key]
            if not of_signature:
                del self._by_signature[gone.signature]

    def _set_timer(self, of: EquivalenceClass, at: float) -> None:
        of.next_flush = at
        self._serial += 1
        heapq.heappush(self._timers, (at, self._serial, of))

    def forget(self, job: str) -> None:
        """The job was bound or is gone: its next failure counts as its first."""
        self.activate(job)
        self._attempts.pop(job, None)
        self._arrived.pop(job, None)  # a replica that does not lead runs no cycles that would empty this

    def activate(self, job: str) -> bool:
        """Let the next cycle try the job. Returns whether it was inactive."""
        waited_in = self._inactive.pop(job, None)
        if waited_in is None:
            return False
        self._changed[job] = None
        waited_in.remove(job)
        if not waited_in.retry_at:
            self._remove_class(self._attempts[job].last_class, waited_in)
        return True

    def update(self, job: str) -> bool:
        """The job arrived, or its own pods or group changed: let the next cycle try it. Returns whether it was inactive."""
        if self._inactive and job not in self._attempts:
            self._arrived[job] = None
        return self.activate(job)

    def placed(self, job: str) -> None:
        """The job was given nodes, or the promise of nodes. Its attempts are forgotten only when it is bound (`forget`): a job whose
        bindings fail each time has to back off longer each time."""
        self.activate(job)
        attempts = self._attempts.get(job)
        if attempts is not None:
            self._placed[attempts.last_class] = self._placed.get(attempts.last_class, 0) + 1

    def pop_more(self) -> int:
        """Activate more jobs of each class that had jobs placed and none refused since the last call: twice as many as were placed.
        As long as all succeed there may be more capacity than events announced. Returns how many became active."""
        placed, self._placed = self._placed, {}
        refused, self._refused = self._refused, set()
        count = 0
        for key, succeeded in placed.items():
            found = self._classes.get(key)
            if found is not None and key[0] not in refused:
                for job in found.pop_oldest(2 * succeeded):
                    count += self.activate(job)
        return count

    def activate_on(self, event: Event, freed: Requests | None = None) -> int:
        """An event happened in the cluster. Returns how many jobs became active.

        `freed`: what a pod occupied that ended. Empty: nothing was freed, but fair shares may have changed, so the oldest job of
        each class is tried. None: it is unknown how many jobs may fit, so all are tried."""
        count = 0
        for key, found in list(self._by_event[event].items()):
            if freed is not None and not freed:
                if key in self._probed:
                    continue
                self._probed.add(key)
            if event is Event.POD_CHANGED:
                most = BATCH
            else:
                most = len(found) if freed is None else found.max_fitting(freed)
            for job in list(found.retry_at) if most >= len(found) else found.pop_oldest(most):
                count += self.activate(job)
        return count

    def activate_all(self) -> None:
        for job in list(self._inactive):
            self.activate(job)

    def flush_backoff(self, now: float) -> int:
        """Activate jobs whose back-off has ended, at most a batch of each class. Returns how many became active."""
        count = 0
        while self._timers and self._timers[0][0] <= now:
            at, _, found = heapq.heappop(self._timers)
            if at != found.next_flush or not found.retry_at:
                continue
            interval = BATCH_INTERVAL if len(found) > BATCH else 0.0  # measured before jobs leave, or the rest would follow at once
            expired = found.pop_expired(now, BATCH)
            for job in dict.fromkeys((*expired, *found.pop_oldest(len(expired)))):
                count += self.activate(job)
            if found.retry_at:
                self._set_timer(found, max(found.next_retry(), now + interval))
        if now >= self._next_cleanup:
            self._next_cleanup = now + ATTEMPTS_KEPT
            self._attempts = {
                job: each for job, each in self._attempts.items() if job in self._inactive or now - each.retry_at < ATTEMPTS_KEPT
            }
        return count

    @property
    def next_retry(self) -> float | None:
        """When `flush_backoff` next has something to do; None: no job waits."""
        while self._timers:
            at, _, found = self._timers[0]
            if at == found.next_flush and found.retry_at:
                return at
            heapq.heappop(self._timers)
        return None

    def activate_queues(self, cluster: Cluster, *, all_of_them: bool = False) -> int:
        """For policies that keep the order of a queue: an active job of a queue activates all of its queue. Otherwise it would start
        before an inactive job that comes first. `all_of_them`: it activates all queues, for policies that promise room to jobs.
        Otherwise it would take what an inactive job was promised. Returns how many became active."""
        jobs = cluster.jobs
        waiting = np.flatnonzero(jobs.counts[: jobs.rows.top, TaskStatus.PENDING]).tolist()
        queues = {int(jobs.queue[row]) for row in waiting if jobs.keys[row] not in self._inactive}
        if all_of_them and queues:
            found = list(self._inactive)
        else:
            found = [job for job in self._inactive if (row := jobs.rows.of.get(job)) is not None and int(jobs.queue[row]) in queues]
        return sum(self.activate(job) for job in found)

    def activate_composites(self, cluster: Cluster) -> int:
        """Groups of one group of groups are tried together: an active one activates the others of its namespace. Returns how many
        became active."""
        jobs = cluster.jobs
        specs = ((job, jobs.specs[row]) for job in self._inactive if (row := jobs.rows.of.get(job)) is not None)
        held = [(job, spec.namespace) for job, spec in specs if spec is not None and spec.composite]
        if not held:
            return 0
        waiting = (jobs.specs[row] for row in np.flatnonzero(jobs.counts[: jobs.rows.top, TaskStatus.PENDING]).tolist())
        spaces = {spec.namespace for spec in waiting if spec is not None and spec.composite and spec.key not in self._inactive}
        return sum(self.activate(job) for job, namespace in held if namespace in spaces)

    def pop_changes(self, cluster: Cluster) -> list[tuple[str, bool]]:
        """A cycle starts: (job, whether it is inactive) for each job whose state changed since `cluster` last asked; for every
        inactive job if another cluster asked last. Jobs that have just arrived activate the oldest jobs with their signature."""
        arrived, self._arrived = self._arrived, {}
        self._probed = set()
        counts: dict[Hashable, int] = {}
        for job in arrived if self._by_signature else ():
            found = signature(cluster, job)
            if found in self._by_signature:
                counts[found] = counts.get(found, 0) + 1
        for found, count in counts.items():
            for equivalent in list(self._by_signature[found].values()):
                for job in equivalent.pop_oldest(min(count, BATCH)):
                    self.activate(job)
        jobs = self._changed if cluster is self._reader else self._inactive
        changes = [(job, job in self._inactive) for job in jobs]
        self._changed = {}
        self._reader = cluster
        return changes

    def inactive(self) -> list[str]:
        """Jobs that are unschedulable or backing off."""
        return list(self._inactive)

    def attempts(self, job: str) -> int:
        """How many failed attempts of the job are remembered."""
        found = self._attempts.get(job)
        return found.count if found is not None else 0

    @property
    def classes(self) -> tuple[EquivalenceClass, ...]:
        """The equivalence classes of inactive jobs, in the order in which they came up."""
        return tuple(self._classes.values())

    @property
    def arrivals(self) -> tuple[str, ...]:
        """Jobs that never failed and were updated since the last cycle."""
        return tuple(self._arrived)

    def backing_off(self) -> list[str]:
        """Jobs that only the end of their back-off brings back."""
        return [job for each in self._classes.values() if not each.events for job in each.retry_at]

    def __len__(self) -> int:
        """How many jobs are inactive."""
        return len(self._inactive)
