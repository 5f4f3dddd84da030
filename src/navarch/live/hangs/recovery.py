"""What a process does about the end of the one before it, and tells other replicas.

At its start it reads the crash folder. It writes the jobs that ended processes to the Lease, and gives the Lease back if the process
before it still holds it: that process is gone, and had stood still for seconds, so that nothing it sent is under way. The replica that
leads next reads the Lease first and sets those jobs aside.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from navarch.kube.errors import KubeError
from navarch.live.hangs.crash_folder import CrashFolder
from navarch.live.hangs.hung_jobs import ANNOTATION, HungJobs
from navarch.live.ops.lease import ApiLeaseLock
from navarch.live.queue.failed_jobs import FailedJobs

log = logging.getLogger(__name__)


class CrashRecovery:
    """`identity`: under which name this process holds the lease. `clock`: seconds since the epoch."""

    def __init__(self, folder: CrashFolder | None, identity: str, failed_jobs: FailedJobs, clock: Callable[[], float]) -> None:
        self._failed_jobs = failed_jobs
        self._clock = clock
        self._jobs = HungJobs(folder, clock())
        crash = folder.crash if folder is not None else None
        self._gone = crash.identity if crash is not None and not crash.at_once else ""
        """The process that was ended, which may still hold the Lease."""
        self._lock: ApiLeaseLock | None = None
        if folder is not None:
            folder.write("identity", identity.encode())
        if crash is not None:
            job = f"on job {crash.job}, which is set aside" if crash.job else "on no job that is known"
            log.error("the last process was ended at %s, %s\n%s", crash.where, job, crash.traceback)
        failed_jobs.set_ended(self._jobs.in_force(clock()))

    async def announce(self, lock: ApiLeaseLock) -> None:
        """Write to the Lease what other replicas have to know. A failure costs them at most a process each."""
        self._lock = lock
        if self._jobs.lease_is_outdated or self._gone:
            await self.tell_lease()

    async def tell_lease(self) -> None:
        if self._lock is None:
            return
        try:
            await self._lock.annotate(ANNOTATION, self._jobs.annotation(), gone=self._gone)
            self._jobs.lease_is_outdated, self._gone = False, ""
        except KubeError as error:
            log.warning("the Lease could not be told of jobs that ended a process: %s", error)

    def start_leading(self) -> None:
        """Set aside what other replicas have met, too."""
        if self._lock is not None:
            self._jobs.read_annotation(self._lock.annotations.get(ANNOTATION, ""), self._clock())
        self._failed_jobs.set_ended(self._jobs.in_force(self._clock()))

    def rules_changed(self) -> bool:
        """Another policy or other plugins are in force: every job may be tried again. True: the Lease has to be told."""
        self._failed_jobs.set_ended({})
        return self._jobs.forget()
