"""One leader among replicas, by a Lease.

    elector = Elector(ApiLeaseLock(client, "kube-system", "navarch"), identity="host-a_3f2c")
    await elector.run(lead)      # waits for its turn, runs `lead()`, returns when leadership ends

The rules are client-go's:

- A candidate may take the lease if the lease is free. It may also take it if the record has not changed for a whole lease duration,
  by the candidate's own monotonic clock. Clocks of two machines are never compared, so clocks that disagree do no harm.
- Between two looks at the record at most `LOOK_COUNTS` retry periods are counted. A clock that jumps ahead does not let a candidate
  take over from a live leader.
- The leader renews every `retry_period`. It stops leading when `renew_deadline` has passed without success. The deadline is shorter
  than the lease duration, so the old leader has stopped before a new one starts. Its time is counted from before each renewal was
  sent.

When leadership is lost, `lead()` is cancelled and its end is awaited. When `run` itself is cancelled, or `lead()` returns, the
lease is released after `lead()` has ended, and the next replica need not wait for it to run out. It is not released after `keep()`:
something that `lead()` sent may still take effect.

A process can be stopped for longer than a lease (a suspended machine, SIGSTOP), and believes that it leads when it wakes up. So
`leading` reads the clock each time. It is asked before each write that only the leader may make (`may_write` of `transport` and
`write/pool`).

An API server knows nothing of leases, so three writes can still come late: one whose bytes had left before the process was stopped,
one for which the process was stopped between the question and the bytes, and one that the network holds back for longer than the
lease duration exceeds the renew deadline. A late binding is refused if its pod is bound, gone or replaced by then. It takes effect
only on a pod that still waits.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import random
import socket
import time
from collections.abc import Awaitable, Callable

import msgspec

from navarch.kube.errors import AlreadyExists, Conflict, KubeError
from navarch.live.ops.lease import LeaseLock, LeaseRecord, micro_time

log = logging.getLogger(__name__)

LOOKS = 4
"""Candidates look this many times in a retry period. They see a renewal soon after it was written, and take over soon after the
lease has run out. They see a released lease sooner, too."""
JITTER = 1.2
"""The time between two looks is multiplied by 1 to this, so that candidates do not all write at the same moment."""
LOOK_COUNTS = 2.5
"""However long a candidate's clock says it was since its last look, it counts as no more than this many retry periods."""
SHORTEST_WAIT = 0.01
"""Seconds before a candidate looks again at a lease that is about to run out, and before a leader tries again to release one."""


def default_clock() -> float:
    """Seconds that never jump. Where the system supports it, they also advance while it is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def make_identity() -> str:
    """Unique to this process, with the pod's or machine's name in it for people."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{os.urandom(16).hex()}"


def check_times(lease_duration: float, renew_deadline: float, retry_period: float) -> None:
    """Raise ValueError unless a leader that cannot renew stops before another may start."""
    if not lease_duration > renew_deadline > retry_period * JITTER > 0:
        raise ValueError(
            f"expected lease duration > renew deadline > {JITTER} x retry period > 0, "
            f"found {lease_duration:g}, {renew_deadline:g}, {retry_period:g}"
        )


class Elector:
    """A candidate. `clock` is monotonic seconds, `wall_clock` only labels the record, `rng` seeds the jitter. `alive()`: whether the
    work that the lease is for still gets on; while it is False the lease is neither taken nor
    renewed.

    It may run in another thread than `lead()`: `leading` and `keep` may be asked from any thread."""

    def __init__(
        self,
        lock: LeaseLock,
        identity: str,
        *,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        on_new_leader: Callable[[str], None] | None = None,
        clock: Callable[[], float] = default_clock,
        wall_clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        alive: Callable[[], bool] = lambda: True,
    ) -> None:
        check_times(lease_duration, renew_deadline, retry_period)
        if not identity:
            raise ValueError("expected an identity")
        self.identity = identity
        self.leader = ""
        """Identity of the last leader that we have seen; empty: none."""
        self._lock = lock
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._on_new_leader = on_new_leader
        self._clock = clock
        self._wall_clock = wall_clock
        self._rng = rng or random.Random()
        self._alive = alive
        self._observed: LeaseRecord | None = None
        self._looked_at = 0.0
        self._unchanged_for = 0.0
        self._renewed_at: float | None = None
        self._kept = False

    @property
    def leading(self) -> bool:
        """Whether no other candidate can be leading now."""
        renewed_at = self._renewed_at
        return renewed_at is not None and 0 <= self._clock() - renewed_at < self._renew_deadline

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for leadership, lead, and return when it is lost or `lead()` ended. An exception of `lead()` passes on."""
        self._kept = False
        await self._acquire()
        log.info("%s leads", self.identity)
        leading = asyncio.ensure_future(_awaited(lead()))
        renewing = asyncio.ensure_future(self._renew_until_lost())
        try:
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost = renewing.done()
            cancelled = await _end(leading)
            cancelled |= await _end(renewing)
            try:
                if not lost and not self._kept:
                    await asyncio.shield(self._release())
            finally:
                self._renewed_at = None
        if cancelled:
            raise asyncio.CancelledError
        if not leading.cancelled():
            leading.result()

    def keep(self) -> None:
        """Let the lease run out when leadership ends, rather than give it back at once."""
        self._kept = True

    async def _acquire(self) -> None:
        while not (self._alive() and await self._try()):
            wait = self._retry_period / LOOKS * self._rng.uniform(1.0, JITTER)
            await asyncio.sleep(min(wait, max(self._runs_out_in(), SHORTEST_WAIT)))

    def _runs_out_in(self) -> float:
        """Seconds until the lease that was last seen may be taken, if it is not renewed."""
        record = self._observed
        if record is None or record.holder_identity in ("", self.identity):
            return math.inf
        return self._duration(record) - self._unchanged_for - (self._clock() - self._looked_at)

    async def _renew_until_lost(self) -> None:
        """Return when this elector must stop leading."""
        while True:
            assert self._renewed_at is not None
            left = self._renewed_at + self._renew_deadline - self._clock()
            if left <= 0:
                log.error("%s lost the lease: not renewed within %g s", self.identity, self._renew_deadline)
                return
            await asyncio.sleep(min(self._retry_period, left))
            left = self._renewed_at + self._renew_deadline - self._clock()
            if left <= 0 or not self._alive():
                continue
            try:
                async with asyncio.timeout(left):
                    renewed = await self._try()
            except TimeoutError:
                continue
            if not renewed and self.leader not in ("", self.identity):
                log.error("%s lost the lease to %s", self.identity, self.leader)
                self._renewed_at = None  # at once: another leader may be writing while we are still stopping
                return

    async def _try(self) -> bool:
        """Take or renew the lease; whether it is ours."""
        before = self._clock()
        try:
            record = await self._lock.read()
            if not self._may_take(record):
                return False
            await self._lock.write(self._claim(record))
        except (Conflict, AlreadyExists) as error:
            log.debug("%s: another was quicker: %s", self.identity, error)
            return False
        except KubeError as error:
            log.warning("%s: the lease could not be read or written: %s", self.identity, error)
            return False
        self._renewed_at = before
        self._see_leader(self.identity)
        return True

    def _may_take(self, record: LeaseRecord | None) -> bool:
        if record is None:
            return True
        now = self._clock()
        if record != self._observed:
            self._observed, self._unchanged_for = record, 0.0
        else:
            self._unchanged_for += max(0.0, min(now - self._looked_at, LOOK_COUNTS * self._retry_period))
        self._looked_at = now
        self._see_leader(record.holder_identity)
        if record.holder_identity in ("", self.identity):
            return True
        return self._unchanged_for >= self._duration(record)

    def _duration(self, record: LeaseRecord) -> float:
        """The holder wrote how long its lease lasts; a smaller value of ours must not shorten that."""
        return max(float(record.lease_duration_seconds), self._lease_duration)

    def _claim(self, record: LeaseRecord | None) -> LeaseRecord:
        now = micro_time(self._wall_clock())
        if record is not None and record.renew_time == now:
            # Candidates see by the change of the record that the leader is alive, even if a clock does not advance.
            now = micro_time(self._wall_clock() + 1e-6)
        ours = record is not None and record.holder_identity == self.identity
        transitions = record.lease_transitions if record else 0
        return LeaseRecord(
            holder_identity=self.identity,
            lease_duration_seconds=max(1, round(self._lease_duration)),
            acquire_time=record.acquire_time if record and ours else now,
            renew_time=now,
            lease_transitions=transitions if ours or record is None else transitions + 1,
        )

    async def _release(self) -> None:
        """Give the lease back, if it is still ours. A failure only makes the next one wait for it to run out.

        A renewal that was cut off may still reach the server, between our reading and our writing: then we read again."""
        try:
            async with asyncio.timeout(self._renew_deadline):
                while not await self._give_back():
                    await asyncio.sleep(SHORTEST_WAIT)
        except (KubeError, TimeoutError) as error:
            log.warning("%s: the lease was not released: %s", self.identity, error)

    async def _give_back(self) -> bool:
        """False: the lease was written meanwhile."""
        record = await self._lock.read()
        if record is None or record.holder_identity != self.identity:
            return True
        now = micro_time(self._wall_clock())
        try:
            await self._lock.write(msgspec.structs.replace(record, holder_identity="", lease_duration_seconds=1, renew_time=now))
        except Conflict:
            return False
        log.info("%s released the lease", self.identity)
        return True

    def _see_leader(self, identity: str) -> None:
        if identity != self.leader:
            self.leader = identity
            if identity and self._on_new_leader is not None:
                self._on_new_leader(identity)


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def _end(task: asyncio.Future[None]) -> bool:
    """Cancel and wait for the end, even if we ourselves are being cancelled meanwhile; whether we were."""
    cancelled = False
    task.cancel()
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancelled = True
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("while leadership ended: %r", error)
    return cancelled
