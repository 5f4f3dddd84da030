"""The pages of the leader's endpoint under /state, made when they are read (docs/running.md has the JSON).

The order of waiting jobs takes a session over a snapshot, on the event loop. So it is made at most once in `REST` times the time that
it took: however often the page is read, cycles lose a twentieth of the time to it at most.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from navarch.engine.job_sentence import why_it_waits
from navarch.engine.never_starts import never_starts
from navarch.engine.points.waiting_order import waiting_order
from navarch.engine.reasons import next_step, takes_no_part
from navarch.engine.record import Eviction, Nomination
from navarch.engine.session import Session
from navarch.ingest.groups import shown_key
from navarch.live.ops.state.cycle_log import LoggedDecision
from navarch.live.ops.state.publisher import current_state
from navarch.model.timestamps import rfc3339
from navarch.views.published_state import (
    Cause,
    CyclesPage,
    CycleSummary,
    Decided,
    DecisionsPage,
    LastTried,
    UsagePage,
    WaitingJob,
    WaitingPage,
)

if TYPE_CHECKING:
    from navarch.live.scheduler import Scheduler

REST: Final = 20
"""Times as long as making the page took, it is not made again."""
Page = Callable[[], msgspec.Struct | None]


class StatePages:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._waiting: WaitingPage | None = None
        self._next = 0.0
        self.pages: dict[str, Page] = {
            "/state": self.state,
            "/state/waiting": self.waiting,
            "/state/cycles": self.cycles,
            "/state/decisions": self.decisions,
            "/state/usage": self.usage,
        }
        """Each answers None while this process does not lead."""

    def state(self) -> msgspec.Struct | None:
        return current_state(self._scheduler) if self._scheduler.leading else None

    def waiting(self) -> WaitingPage | None:
        if not self._scheduler.leading:
            return None
        started = time.perf_counter()
        if self._waiting is None or (started >= self._next and self._waiting.cycle != self._scheduler.core.cycles):
            self._waiting = self._make_waiting()
            spent = time.perf_counter() - started
            self._next = started + REST * spent
        return self._waiting

    def _make_waiting(self) -> WaitingPage:
        scheduler = self._scheduler
        policy, refused = scheduler.policy_file.policy, scheduler.cycle_log.refused
        snapshot = scheduler.cache.cluster.snapshot_with_held(policy.semantics.node_order)
        registry = scheduler.policy_file.registry
        session = Session(snapshot, policy, registry, scheduler.clock())
        registry.make_actions(session)
        jobs = waiting_order(session, session.jobs_with_pending())
        counts = Counter(job.queue.name for job in jobs)
        places: Counter[str] = Counter()
        found = []
        for overall, job in enumerate(jobs, start=1):
            queue = job.queue.name
            places[queue] += 1
            last = refused.get(job.key)
            reason = None if last is None else last.reason
            if not takes_no_part(reason):
                reason = never_starts(session, job) or why_it_waits(session, job) or reason
            found.append(
                WaitingJob(
                    job=shown_key(job.key),
                    key=job.key,
                    queue=queue,
                    place=places[queue],
                    of=counts[queue],
                    overall=overall,
                    pods=sum(job.counts),
                    min_member=job.min_member,
                    priority=job.priority,
                    state="held" if scheduler.queue.is_held(job.key) else "active",
                    reason=None if reason is None else Cause(reason.code, one_line(reason.message), next_step(reason)),
                    since=None if last is None else rfc3339(last.since),
                    last_tried=LastTried(last.cycle, last.place, rfc3339(last.now)) if last is not None and last.place else None,
                )
            )
        scheduler.cycle_log.keep([job.key for job in jobs])
        session.dissolve()
        return WaitingPage(rfc3339(scheduler.clock()), scheduler.core.cycles, found)

    def cycles(self) -> CyclesPage | None:
        if not self._scheduler.leading:
            return None
        return CyclesPage(
            [
                CycleSummary(
                    cycle=each.number,
                    id=each.uid,
                    time=rfc3339(each.now),
                    seconds=round(each.seconds, 6),
                    parts={name: round(seconds, 6) for name, seconds in each.parts.items()},
                    tried=each.tried,
                    bound=each.bound,
                    evicted=each.evicted,
                    nominated=each.nominated,
                    waiting=each.waiting,
                    failures=each.failures,
                )
                for each in reversed(self._scheduler.cycle_log.cycles)
            ]
        )

    def decisions(self) -> DecisionsPage | None:
        if not self._scheduler.leading:
            return None
        return DecisionsPage([_decided(each) for each in reversed(self._scheduler.cycle_log.decisions)])

    def usage(self) -> UsagePage | None:
        return self._scheduler.queue_usage.page(self._scheduler.clock()) if self._scheduler.leading else None


def one_line(text: str) -> str:
    return " ".join(text.split())


def _decided(logged: LoggedDecision) -> Decided:
    each, when = logged.decision, rfc3339(logged.now)
    kind = "eviction" if isinstance(each, Eviction) else "nomination" if isinstance(each, Nomination) else "bind"
    found = Decided(kind, logged.cycle, when, each.pod, each.node, shown_key(each.job))
    if not isinstance(each, Eviction):
        return found
    return msgspec.structs.replace(found, for_=shown_key(each.for_), action=each.action, message=one_line(each.message))
