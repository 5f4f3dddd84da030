"""Everything that a policy may name on this machine: what Navarch brings, what packages add, what a directory holds.

Built-in plugins and actions are found by walking their rooms, so a new file is enough to add one. Packages add theirs by the
entry points `navarch.plugins` and `navarch.actions`; `--plugin-dir` adds the classes of every Python file of a directory.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import navarch.actions
import navarch.plugins
from navarch.engine.action import Action
from navarch.engine.plugin import Plugin
from navarch.engine.registry import RegistrationError, Registry


@cache
def installed(plugin_dirs: tuple[Path, ...] = ()) -> Registry:
    """The registry of this process; read once for each set of directories. Do not add to it."""
    registry = Registry()
    for module in (*_walk(navarch.plugins), *_walk(navarch.actions)):
        _add_module(registry, module)
    for group, add in (("navarch.plugins", registry.add_plugin), ("navarch.actions", registry.add_action)):
        for entry in sorted(entry_points(group=group), key=lambda e: (e.name, e.value)):
            add(entry.load())
    for directory in plugin_dirs:
        for path in sorted(directory.glob("*.py")):
            _add_module(registry, _load(path))
    return registry


def _walk(package: ModuleType) -> Iterator[ModuleType]:
    for found in sorted(pkgutil.walk_packages(package.__path__, f"{package.__name__}."), key=lambda f: f.name):
        yield importlib.import_module(found.name)


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"navarch_plugin_dir.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise RegistrationError(f"{path} cannot be read as a Python module")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise RegistrationError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _add_module(registry: Registry, module: ModuleType) -> None:
    """The named classes that are defined in the module itself; bases without a name are nobody's plugin."""
    for kind in vars(module).values():
        if not (isinstance(kind, type) and kind.__module__ == module.__name__ and hasattr(kind, "name")):
            continue
        if issubclass(kind, Plugin):
            registry.add_plugin(kind)
        elif issubclass(kind, Action):
            registry.add_action(kind)
