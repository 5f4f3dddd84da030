"""Jobs that ended a process: how often, and until when they take no part in cycles.

A process that was ended while a job was at hand leaves that job's name (`crash_folder`). The next process sets the job aside. The
back-off is long and doubles, because each further attempt may cost a process: ten minutes, up to a day. It is kept in the crash folder
and as an annotation of the Lease, which every replica reads. So a replica that takes over does not try the job. A policy or plugin
that is read anew ends all back-offs.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from navarch.engine.record import JobFailure
from navarch.live.hangs.crash_folder import CrashFolder

ANNOTATION = "navarch.io/hung-jobs"
FILE = "hung-jobs.json"
INITIAL_BACKOFF, MAX_BACKOFF = 600.0, 86_400.0
MOST_KEPT = 64
"""Entries that are kept; those whose back-off ends first are dropped."""


class HungJob(Struct, frozen=True):
    """`until`: seconds since the epoch."""

    job: str
    count: int
    until: float
    where: str

    @property
    def failure(self) -> JobFailure:
        return JobFailure(self.job, self.where, "one call did not return, and the process was ended", took_too_long=True)


class HungJobs:
    def __init__(self, folder: CrashFolder | None, now: float) -> None:
        self._folder = folder
        self._jobs: dict[str, HungJob] = {}
        crash = folder.crash if folder is not None else None
        if folder is not None:
            self._take(folder.read(FILE), now)
        self.lease_is_outdated = False
        """The Lease does not have them as they are."""
        if crash is not None and crash.job:
            before = self._jobs.get(crash.job)
            count = before.count + 1 if before is not None else 1
            until = now + min(INITIAL_BACKOFF * 2 ** min(count - 1, 10), MAX_BACKOFF)
            self._jobs[crash.job] = HungJob(crash.job, count, until, crash.where)
            self._changed()

    def read_annotation(self, text: str, now: float) -> None:
        """What other replicas have met."""
        before = dict(self._jobs)
        self._take(text.encode(), now)
        if self._jobs != before:
            self._save()

    def annotation(self) -> str:
        return self._encoded().decode()

    def forget(self) -> bool:
        """The rules are others now: every job may be tried. Returns whether there was any."""
        had = bool(self._jobs)
        self._jobs.clear()
        if had:
            self._changed()
        return had

    def in_force(self, now: float) -> dict[str, tuple[float, JobFailure]]:
        """Job -> until when it takes no part, and what happened."""
        return {each.job: (each.until, each.failure) for each in self._jobs.values() if now < each.until}

    def _take(self, encoded: bytes, now: float) -> None:
        """Entries that ended long ago are forgotten, with their count."""
        try:
            found = msgspec.json.decode(encoded, type=list[HungJob]) if encoded else []
        except msgspec.DecodeError:
            return  # a person or another version wrote it
        for each in found:
            known = self._jobs.get(each.job)
            if now < each.until + MAX_BACKOFF and each.until < now + 2 * MAX_BACKOFF and (known is None or known.until < each.until):
                self._jobs[each.job] = each

    def _encoded(self) -> bytes:
        kept = sorted(self._jobs.values(), key=lambda each: (-each.until, each.job))[:MOST_KEPT]
        return msgspec.json.encode(sorted(kept, key=lambda each: each.job))

    def _changed(self) -> None:
        self.lease_is_outdated = True
        self._save()

    def _save(self) -> None:
        if self._folder is not None:
            self._folder.write(FILE, self._encoded())
