"""The policy in force: a preset, or a file that is read again when its content changes.

A file with mistakes is refused with all of them and the last good policy stays. The content is compared, not the time stamp: a
ConfigMap is swapped by a symbolic link and an editor may write a file in two steps.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from navarch.engine.policy import PRESETS, Policy, PolicyError
from navarch.engine.registry import Registry
from navarch.offline.plan import read_policy

log = logging.getLogger(__name__)


class PolicyFile:
    """Raises PolicyError if the first policy has errors: it is better not to start than to run another policy."""

    def __init__(self, name: str, registry: Registry) -> None:
        self.name = name
        self.registry = registry
        self.refused: str = ""
        """The mistakes of the file as it is now; empty while it is the policy in force."""
        self._path = None if name in PRESETS else Path(name)
        self._digest = self._read_digest()
        self.policy: Policy = read_policy(name, registry)
        self._warn()

    def look(self) -> bool:
        """Read the file if its content changed. True: a new policy is in force."""
        if self._path is None:
            return False
        digest = self._read_digest()
        if digest is None or digest == self._digest:
            return False
        self._digest = digest
        try:
            policy = read_policy(self._path, self.registry)
        except PolicyError as error:
            self.refused = str(error)
            log.error("the new policy is refused, the last good one stays:\n%s", error)
            if self._read_digest() != digest:
                self._digest = None  # it changed between the two looks at it: what was refused may be neither
            return False
        self.refused = ""
        self.policy = policy
        log.info("a new policy is in force: %s", self._path)
        self._warn()
        return True

    def _warn(self) -> None:
        """Log the settings of the file that have no effect: most operators never run `policy check` on a file that loads."""
        for warning in self.policy.warnings:
            log.warning("policy: %s", warning)

    def _read_digest(self) -> bytes | None:
        """None while it cannot be read: a file that is just being swapped comes back."""
        if self._path is None:
            return None
        try:
            return hashlib.sha256(self._path.read_bytes()).digest()
        except OSError as error:
            log.warning("%s cannot be read now: %s", self._path, error.strerror)
            return None
