"""Everything that a policy may name on this machine: what Navarch brings, what packages add, what a directory holds.

Built-in plugins and actions stand in the tables of their rooms and are imported when a policy names them. Packages add theirs
by the entry points `navarch.plugins` and `navarch.actions`; `--plugin-dir` adds the classes of every Python file of a directory.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from traceback import extract_tb
from types import CodeType, ModuleType

from navarch.actions import PLACES as ACTIONS
from navarch.engine.action import Action
from navarch.engine.plugin import Plugin
from navarch.engine.registry import RegistrationError, Registry
from navarch.plugins import PLACES as PLUGINS

_NO_PLUGINS = ("_", "test_", "conftest.")
"""Beginnings of names of files in a directory of plugins that are something else."""


_registries: dict[tuple[Path, ...], tuple[bytes, Registry]] = {}
"""Directories -> the digest of their files, and the registry that was made of them."""


def installed(plugin_dirs: tuple[Path, ...] = ()) -> Registry:
    """The registry of this process. Do not add to it. The same registry is returned until a file of the directories changes: then
    the directories are read again, so that an edited plugin is in effect at once."""
    digest = plugin_files_digest(plugin_dirs)
    known = _registries.get(plugin_dirs)
    if known is None or known[0] != digest:
        known = _registries[plugin_dirs] = digest, _read(plugin_dirs)
    return known[1]


def plugin_files_digest(plugin_dirs: Iterable[Path]) -> bytes:
    """Changes with the content of any plugin file in these directories."""
    found = hashlib.sha256()
    for path in plugin_files(plugin_dirs):
        found.update(str(path).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.digest()


def plugin_files(plugin_dirs: Iterable[Path]) -> list[Path]:
    """The files of these directories that may define plugins. Tests and names with a leading underscore do not."""
    return [path for directory in plugin_dirs for path in sorted(directory.glob("*.py")) if not path.name.startswith(_NO_PLUGINS)]


def _read(plugin_dirs: tuple[Path, ...]) -> Registry:
    registry = Registry(plugin_places=PLUGINS, action_places=ACTIONS)
    if _packages_add():
        from importlib.metadata import entry_points

        for group, add in (("navarch.plugins", registry.add_plugin), ("navarch.actions", registry.add_action)):
            for entry in sorted(entry_points(group=group), key=lambda e: (e.name, e.value)):
                add(entry.load())
    for path in plugin_files(plugin_dirs):
        for kind in classes_in(path):
            registry.add_plugin(kind) if issubclass(kind, Plugin) else registry.add_action(kind)
    return registry


def classes_in(path: Path) -> list[type[Plugin] | type[Action]]:
    """The plugins and actions that a file defines. Raises RegistrationError if it cannot be imported."""
    return [kind for kind in _defined(_load(path)) if issubclass(kind, Plugin | Action)]


def _packages_add() -> bool:
    """Whether it is worth asking for entry points, which takes 25 ms of CPU: some package's own list names ours, or there are
    packages in a form (a zip file, say) that only `importlib.metadata` can read."""
    for place in map(Path, sys.path):
        if place.is_file():
            return True
        for kind in ("dist-info", "egg-info"):
            for listed in place.glob(f"*.{kind}/entry_points.txt"):
                if b"[navarch." in listed.read_bytes():
                    return True
    return False


class _SourceLoader(SourceFileLoader):
    """Compiles the file as it is. Python's own loader takes a compiled file for a newer source of the same second and length."""

    def get_code(self, fullname: str) -> CodeType | None:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def _load(path: Path) -> ModuleType:
    name = re.sub(r"\W", "_", f"navarch_plugin_dir{path.resolve().with_suffix('')}")
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise RegistrationError(f"{path} cannot be read as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up by name
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the file is its author's: whatever it raises is said, with its line
        del sys.modules[name]
        line = next((f":{at.lineno}" for at in reversed(extract_tb(error.__traceback__)) if at.filename == str(path)), "")
        raise RegistrationError(f"{path}{line} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _defined(module: ModuleType) -> Iterator[type]:
    """The named classes that are defined in the module itself. A base class without a name is no plugin."""
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == module.__name__ and hasattr(kind, "name"):
            yield kind
