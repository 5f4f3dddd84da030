"""Everything that a policy may name on this machine: what Navarch brings, what packages add, what a directory holds.

Built-in plugins and actions stand in the tables of their rooms and are imported when a policy names them. Packages add theirs
by the entry points `navarch.plugins` and `navarch.actions`; `--plugin-dir` adds the classes of every Python file of a directory.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from navarch.actions import PLACES as ACTIONS
from navarch.engine.action import Action
from navarch.engine.plugin import Plugin
from navarch.engine.registry import RegistrationError, Registry
from navarch.plugins import PLACES as PLUGINS

_NO_PLUGINS = ("_", "test_", "conftest.")
"""Beginnings of names of files in a directory of plugins that are something else."""


@cache
def installed(plugin_dirs: tuple[Path, ...] = ()) -> Registry:
    """The registry of this process; read once for each set of directories. Do not add to it."""
    registry = Registry(plugin_places=PLUGINS, action_places=ACTIONS)
    if _packages_add():
        from importlib.metadata import entry_points

        for group, add in (("navarch.plugins", registry.add_plugin), ("navarch.actions", registry.add_action)):
            for entry in sorted(entry_points(group=group), key=lambda e: (e.name, e.value)):
                add(entry.load())
    for directory in plugin_dirs:
        for path in sorted(directory.glob("*.py")):
            if not path.name.startswith(_NO_PLUGINS):
                _add_module(registry, _load(path))
    return registry


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


def _load(path: Path) -> ModuleType:
    name = re.sub(r"\W", "_", f"navarch_plugin_dir{path.resolve().with_suffix('')}")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RegistrationError(f"{path} cannot be read as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise RegistrationError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _defined(module: ModuleType) -> Iterator[type]:
    """The named classes that are defined in the module itself; bases without a name are nobody's plugin."""
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == module.__name__ and hasattr(kind, "name"):
            yield kind


def _add_module(registry: Registry, module: ModuleType) -> None:
    for kind in _defined(module):
        if issubclass(kind, Plugin):
            registry.add_plugin(kind)
        elif issubclass(kind, Action):
            registry.add_action(kind)
