"""Where plugins and actions are found by name, and what cannot be registered."""

from __future__ import annotations

from typing import Any, cast

import pytest

from navarch.engine.action import Action
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import JobOrder, implemented_points
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.registry import RegistrationError, Registry


class Oldest(Plugin):
    """Oldest jobs first

    and more about it"""

    name = "oldest"

    def job_order(self, job: Job) -> float:
        return job.spec.created


class TheirOldest(Plugin):
    """As another system has it"""

    name = "oldest"
    dialect = "kai"


class Nap(Action):
    """Does nothing"""

    name = "nap"


def test_found_by_name_and_by_whose_file_it_is() -> None:
    registry = Registry([Oldest, TheirOldest], [Nap])
    assert registry.plugin("oldest") is Oldest
    assert registry.plugin("oldest", "volcano") is Oldest
    assert registry.plugin("oldest", "kai") is TheirOldest
    assert registry.plugin("newest") is None
    assert registry.action("nap") is Nap
    assert registry.action("oldest") is None


def test_adding_the_same_class_again_is_harmless() -> None:
    registry = Registry([Oldest, Oldest])
    assert registry.plugin("oldest") is Oldest


def test_mistakes_say_what_is_wrong() -> None:
    class Rival(Plugin):
        name = "oldest"

    class Nameless(Plugin):
        pass

    class Siesta(Action):
        name = "nap"

    registry = Registry([Oldest], [Nap])
    with pytest.raises(RegistrationError, match=r"two plugins are called 'oldest'.*Oldest.*Rival"):
        registry.add_plugin(Rival)
    with pytest.raises(RegistrationError, match="two actions are called 'nap'"):
        registry.add_action(Siesta)
    with pytest.raises(RegistrationError, match=r"Nameless.*has no name"):
        registry.add_plugin(Nameless)
    with pytest.raises(RegistrationError, match=r"is not a subclass of navarch.engine.plugin.Plugin"):
        registry.add_plugin(cast(Any, Nap))
    with pytest.raises(RegistrationError, match=r"is not a subclass of navarch.engine.action.Action"):
        registry.add_action(cast(Any, Oldest))
    assert registry.plugin("oldest") is Oldest


def test_the_catalogue_tells_a_policy_file_what_it_may_name() -> None:
    catalogue = Registry([Oldest, TheirOldest], [Nap]).catalogue()
    assert list(catalogue.plugins) == ["kai:oldest", "oldest"]
    assert catalogue.plugins["oldest"].doc == "Oldest jobs first"
    assert catalogue.plugins["oldest"].points == ("job_order",)
    assert list(catalogue.actions) == ["nap"]


def test_a_plugin_answers_where_it_has_all_methods_of_a_point() -> None:
    class Half(Plugin):
        name = "half"

        def on_allocate(self, change: object) -> None: ...

    class Whole(Half):
        name = "whole"

        def on_deallocate(self, change: object) -> None: ...

    assert implemented_points(Half) == ()
    assert implemented_points(Whole) == ("events",)


def test_plugins_are_selected_once_for_a_policy_and_again_when_a_plugin_is_added() -> None:
    registry = Registry([Oldest], [Nap])
    policy = Policy((), ((PluginOption("oldest"), PluginOption("nobody")),))
    first = registry.select_plugins(policy)
    assert [[(kind.name, points) for kind, _, points in tier] for tier in first.tiers] == [[("oldest", [JobOrder])]]
    assert registry.select_plugins(policy) is first
    registry.add_plugin(TheirOldest)
    assert registry.select_plugins(policy) is not first
