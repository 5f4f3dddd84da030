"""Every argument of Volcano's plugins for load, devices, NUMA, roles and extenders is set in a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.worlds.scenarios import FOLDER

from navarch.engine.arguments import Argument
from navarch.installed import installed

FILES = ("node_load", "cards", "numa_aware", "task_topology", "extender")
SET = [each for name in FILES for each in yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))]


def leaves(arguments: tuple[Argument, ...], way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for argument in arguments:
        if argument.fields:
            yield from leaves(argument.fields, (*way, argument.name))
        elif argument.has_effect:
            yield (*way, argument.name)


def options_of(scenario: dict[str, Any]) -> list[Any]:
    policy = scenario.get("policy")
    return policy["plugins"] if isinstance(policy, dict) else []


def given(plugin: str) -> list[dict[str, Any]]:
    options = (option for scenario in SET for option in options_of(scenario) if isinstance(option, dict))
    return [option[plugin] for option in options if plugin in option]


def has(arguments: Any, way: tuple[str, ...]) -> bool:
    for name in way:
        if not isinstance(arguments, dict) or name not in arguments:
            return False
        arguments = arguments[name]
    return True


@pytest.mark.parametrize("plugin", ["usage", "rescheduling", "deviceshare", "numa-aware", "task-topology", "extender"])
def test_every_argument_is_set_somewhere(plugin: str) -> None:
    declared = installed().catalogue().plugins[plugin].arguments
    assert [way for way in leaves(declared) if not any(has(each, way) for each in given(plugin))] == []
