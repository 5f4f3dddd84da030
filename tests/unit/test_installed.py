"""What comes with Navarch stands in the tables of its rooms, whole, and is imported only when it is named."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import navarch.actions
import navarch.plugins
from navarch.engine.action import Action
from navarch.engine.plugin import Plugin
from navarch.engine.registry import RegistrationError, Registry
from navarch.installed import classes_in
from navarch.places import place_of
from navarch.plugins.gang import Gang


def named_classes(room: ModuleType, base: type[Plugin] | type[Action]) -> Iterator[tuple[str, str]]:
    for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        module = importlib.import_module(found.name)
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__ and hasattr(kind, "name"):
                yield f"{kind.dialect}:{kind.name}" if kind.dialect else kind.name, place_of(kind)


@pytest.mark.parametrize(("room", "base"), [(navarch.plugins, Plugin), (navarch.actions, Action)])
def test_the_table_of_a_room_names_every_class_in_it(room: ModuleType, base: type[Plugin] | type[Action]) -> None:
    assert dict(named_classes(room, base)) == room.PLACES


def test_the_contract_of_import_linter_names_every_plugin() -> None:
    """The contract holds plugins apart; one that it does not name could import another."""
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    contracts = pyproject["tool"]["importlinter"]["contracts"]
    (modules,) = (each["modules"] for each in contracts if each["type"] == "independence")
    named = [re.compile(re.escape(module).replace(r"\*", r"[^.]+") + r"(\..*)?") for module in modules]
    places = {place.partition(":")[0] for place in navarch.plugins.PLACES.values()}
    assert [place for place in sorted(places) if not any(each.fullmatch(place) for each in named)] == []


def test_a_class_is_known_before_it_is_imported_and_cannot_be_replaced() -> None:
    class Rival(Plugin):
        name = "gang"

    registry = Registry(plugin_places={"gang": "navarch.plugins.gang:Gang", "nowhere": "navarch.plugins.nowhere:Nowhere"})
    assert list(registry.catalogue().plugins) == ["gang", "nowhere"]
    with pytest.raises(RegistrationError, match=r"two plugins are called 'gang': 'navarch.plugins.gang:Gang' and .*Rival"):
        registry.add_plugin(Rival)
    registry.add_plugin(Gang)
    assert registry.plugin("gang") is Gang
    with pytest.raises(ModuleNotFoundError):
        registry.plugin("nowhere")


def test_a_policy_imports_the_plugins_that_it_names_and_no_others() -> None:
    script = """
import sys
import tomllib
from navarch.installed import installed
from navarch.offline.policies import read_policy
read_policy({"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}]}]}, installed())
print(*sorted(m for m in sys.modules if m.startswith(("navarch.plugins.", "navarch.actions."))))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "navarch.plugins.gang" in done.stdout.split()
    assert "navarch.actions.allocate" in done.stdout.split()
    assert not {"navarch.plugins.drf.plugin", "navarch.plugins.predicates.plugin", "navarch.actions.preempt"} & set(
        done.stdout.split()
    )


def test_a_package_adds_plugins_by_entry_point(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text("from navarch.engine.plugin import Plugin\nclass Theirs(Plugin):\n    name = 'theirs'\n")
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[navarch.plugins]\nany = theirs:Theirs\n")
    script = "from navarch.installed import installed; print(installed().plugin('theirs'))"
    for path, found in ((str(tmp_path), "<class 'theirs.Theirs'>"), ("", "None")):
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.strip() == found


def test_an_edit_of_the_same_second_and_length_is_in_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "mine.py"
    versions = []
    for version in (1, 2):
        file.write_text(f"from navarch.engine.plugin import Plugin\nclass Mine(Plugin):\n    name = 'mine'\n    version = {version}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        (kind,) = classes_in(file)
        versions.append(vars(kind)["version"])
    assert versions == [1, 2]
