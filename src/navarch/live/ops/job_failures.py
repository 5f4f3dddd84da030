"""Tells operators of jobs on which a rule failed: the traceback once in the log, a metric, and a line on /readyz.

The job itself is told by the cycle's record (`InternalError`), like every refusal: by its condition and an event.
"""

from __future__ import annotations

import logging
from collections import Counter as Counted
from collections.abc import Callable

from prometheus_client import Counter

from navarch.engine.record import CycleRecord

log = logging.getLogger(__name__)

REMEMBERED = 256
"""Failures whose traceback is not logged again; the oldest is forgotten first."""


class JobFailures:
    def __init__(self, counter: Counter, exists: Callable[[str], bool]) -> None:
        """`exists`: whether there still is such a job."""
        self._counter = counter
        self._exists = exists
        self._logged: dict[tuple[str, str], None] = {}
        self._last: dict[str, str] = {}
        """Job -> which rule failed on it when it was last tried."""

    def take(self, record: CycleRecord) -> None:
        failed = {failure.job for failure in record.failures}
        for job in (*(bind.job for bind in record.binds), *(decision.job for decision in record.jobs)):
            if self._last and job not in failed:
                self._last.pop(job, None)
        for failure in record.failures:
            self._last[failure.job] = failure.where
            self._counter.labels(failure.where).inc()
            key = failure.where, failure.error
            if key not in self._logged:
                self._logged[key] = None
                if len(self._logged) > REMEMBERED:
                    del self._logged[next(iter(self._logged))]
                log.error("%s failed on job %s, which is set aside\n%s", failure.where, failure.job, failure.traceback)

    def notes(self) -> list[str]:
        """For /readyz, which everyone may read: how many jobs, and no names of theirs."""
        self._last = {job: where for job, where in self._last.items() if self._exists(job)}
        rules = sorted(Counted(self._last.values()).items())
        return [f"{count} job{'s are' if count > 1 else ' is'} set aside: {where} failed" for where, count in rules]
