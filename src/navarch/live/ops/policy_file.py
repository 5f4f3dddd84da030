"""The policy in force: a preset, or a file that is read again when its content changes. So are plugins in directories of their own.
The text of a policy may also come from the API server (`offer`).

A file with mistakes is refused with all of them, and the last good policy stays with its plugins. The content is compared, not the
time stamp: a ConfigMap is swapped by a symbolic link and an editor may write a file in two steps.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from navarch.engine.policy import PRESETS, Policy, PolicyError, load
from navarch.engine.registry import RegistrationError, Registry
from navarch.installed import installed, plugin_files_digest
from navarch.offline.policies import read_policy

log = logging.getLogger(__name__)


class PolicyFile:
    """Raises PolicyError if the first policy has errors: it is better not to start than to run another policy."""

    def __init__(
        self, name: str, registry: Registry, plugin_dirs: tuple[Path, ...] = (), text: str | None = None, shard: str = ""
    ) -> None:
        """`registry` is that of the directories. `text`: the policy itself; `name` is then only shown. `shard`: which SchedulingShard
        of KAI is meant."""
        self.name = name
        self.registry = registry
        self._plugin_dirs = plugin_dirs
        self._plugins = plugin_files_digest(plugin_dirs)
        self.refused: str = ""
        """The mistakes of the file as it is now; empty while it is the policy in force."""
        self._text = text
        self._shard = shard
        self._path = None if name in PRESETS or text is not None else Path(name)
        self._digest = self._read_digest()
        self.policy: Policy = self._read(registry)
        self._warn()

    def offer(self, text: str) -> None:
        """The text of the policy as it is now; `look` reads it if it changed."""
        self._text = text

    def _read(self, registry: Registry) -> Policy:
        if self._text is None:
            return read_policy(self.name, registry, self._shard)
        return load(self._text, registry.catalogue(), self.name, shard=self._shard)

    def look(self) -> bool:
        """Read the file and the plugins again if their content changed. True: a new policy is in force."""
        digest, plugins = self._read_digest(), self._read_plugins_digest()
        changed = digest is not None and digest != self._digest
        if not changed and plugins == self._plugins:
            return False
        what = "the plugins" if plugins != self._plugins else "the policy"
        if changed:
            self._digest = digest
        self._plugins = plugins
        try:
            registry = installed(self._plugin_dirs) if self._plugin_dirs else self.registry
            policy = self._read(registry)
        except (PolicyError, RegistrationError) as error:
            self.refused = str(error)
            log.error("%s cannot be used, the last good policy stays:\n%s", what, error)
            if changed and self._read_digest() != digest:
                self._digest = None  # it changed between the two looks at it: what was refused may be neither
            return False
        self.refused = ""
        self.policy, self.registry = policy, registry
        log.info("read again and in force: %s", self.name if what == "the policy" else "plugins in " + self._shown_dirs())
        self._warn()
        return True

    def _shown_dirs(self) -> str:
        return ", ".join(map(str, self._plugin_dirs))

    def _read_plugins_digest(self) -> bytes:
        """The last one while a file is just being swapped."""
        try:
            return plugin_files_digest(self._plugin_dirs)
        except OSError as error:
            log.warning("plugins in %s cannot be read now: %s", self._shown_dirs(), error.strerror)
            return self._plugins

    def _warn(self) -> None:
        """Log the settings of the file that have no effect: most operators never run `policy check` on a file that loads."""
        for warning in self.policy.warnings:
            log.warning("policy: %s", warning)

    def _read_digest(self) -> bytes | None:
        """None while it cannot be read: a file that is just being swapped comes back."""
        if self._text is not None:
            return hashlib.sha256(self._text.encode()).digest()
        if self._path is None:
            return None
        try:
            return hashlib.sha256(self._path.read_bytes()).digest()
        except OSError as error:
            log.warning("%s cannot be read now: %s", self._path, error.strerror)
            return None
