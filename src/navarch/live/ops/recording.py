"""`--record DIR`: saves cycles that decided something for `navarch replay`.

A thread encodes values that no longer change. While one recording is being written, further cycles are not recorded, so recording
never delays the scheduler. If there are more than `KEPT` files, the oldest are deleted.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from navarch.live.cycle import Cycle
from navarch.offline.replay import record

log = logging.getLogger(__name__)

KEPT = 200


def encoded(cycle: Cycle, more_annotations: Sequence[str] = ()) -> bytes:
    """The cycle as `navarch replay` reads it."""
    return record(cycle.snapshot, cycle.policy, cycle.now, cycle.uid, cycle.held, cycle.record, more_annotations)


class FolderError(ValueError):
    """Recordings cannot be written there; the message says where and why."""


class CycleRecorder:
    def __init__(self, folder: Path, kept: int = KEPT, more_annotations: Sequence[str] = ()) -> None:
        """Raises FolderError at once instead of failing in each cycle, for example in a pod with a read-only file system."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FolderError(f"{folder}: expected a folder that can be written: {error.strerror}") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise FolderError(f"{folder}: expected a folder that can be written: it is not writable for user {os.geteuid()}")
        self.folder = folder
        self.skipped = 0
        self._kept = kept
        self._more_annotations = more_annotations
        self._writing: asyncio.Task[None] | None = None

    def take(self, cycle: Cycle) -> bool:
        """Save the cycle if it decided anything and no other is being saved. Returns whether its snapshot is being read now."""
        decided = cycle.record
        if not (decided.binds or decided.evictions or decided.nominations):
            return False
        if self._writing is not None and not self._writing.done():
            self.skipped += 1
            return False
        self._writing = asyncio.get_running_loop().create_task(self._save(cycle))
        return True

    async def finish(self) -> None:
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)

    async def _save(self, cycle: Cycle) -> None:
        try:
            await asyncio.to_thread(self._write, cycle)
        except OSError as error:
            log.error("cycle %d was not recorded: %s", cycle.number, error)
        except Exception:
            # A value that cannot be encoded costs this recording. The scheduler goes on, and the log says why the file is missing.
            log.exception("cycle %d was not recorded", cycle.number)

    def _write(self, cycle: Cycle) -> None:
        name = f"cycle-{int(cycle.now * 1000):013d}-{cycle.number:06d}.json.gz"
        partial = self.folder / f".{name}"
        partial.write_bytes(encoded(cycle, self._more_annotations))
        partial.replace(self.folder / name)
        for old in sorted(self.folder.glob("cycle-*.json.gz"))[: -self._kept]:
            old.unlink(missing_ok=True)
