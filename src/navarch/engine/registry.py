"""Where plugins and actions are found by name.

Built-in ones are imported from their rooms, others come by entry point (`navarch.plugins`, `navarch.actions`) or are added
by hand (`--plugin-dir` does that). A registry is an ordinary value: tests make their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from navarch.engine.action import Action
from navarch.engine.extension_points import SWITCH, answers
from navarch.engine.plugin import Plugin
from navarch.engine.policy.catalogue import Catalogue, Entry, key_of
from navarch.engine.policy.values import PluginOption, Policy

LineUp = list[list[tuple[type[Plugin], PluginOption, list[str]]]]
"""Tier by tier: each plugin's class, how the policy wants it, and the points at which it is asked."""


class RegistrationError(ValueError):
    """A class that cannot be registered; the text says what is wrong with it."""


class Registry:
    def __init__(self, plugins: Iterable[type[Plugin]] = (), actions: Iterable[type[Action]] = ()) -> None:
        self._plugins: dict[str, type[Plugin]] = {}
        self._actions: dict[str, type[Action]] = {}
        self._lined_up: tuple[Policy, LineUp] | None = None
        for plugin in plugins:
            self.add_plugin(plugin)
        for action in actions:
            self.add_action(action)

    def add_plugin(self, plugin: type[Plugin]) -> None:
        if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
            raise RegistrationError(f"{plugin!r} is not a subclass of navarch.engine.plugin.Plugin")
        key = _key(plugin, getattr(plugin, "name", ""), plugin.dialect)
        if self._plugins.get(key, plugin) is not plugin:
            raise RegistrationError(f"two plugins are called {key!r}: {self._plugins[key]!r} and {plugin!r}")
        self._plugins[key] = plugin
        self._lined_up = None

    def add_action(self, action: type[Action]) -> None:
        if not (isinstance(action, type) and issubclass(action, Action)):
            raise RegistrationError(f"{action!r} is not a subclass of navarch.engine.action.Action")
        key = _key(action, getattr(action, "name", ""), action.dialect)
        if self._actions.get(key, action) is not action:
            raise RegistrationError(f"two actions are called {key!r}: {self._actions[key]!r} and {action!r}")
        self._actions[key] = action

    def plugin(self, name: str, dialect: str = "") -> type[Plugin] | None:
        key = key_of(self._plugins, name, dialect)
        return None if key is None else self._plugins[key]

    def action(self, name: str, dialect: str = "") -> type[Action] | None:
        key = key_of(self._actions, name, dialect)
        return None if key is None else self._actions[key]

    def line_up(self, policy: Policy) -> LineUp:
        """Who takes part under a policy, and where. Kept while the policy is the same: every cycle asks."""
        if self._lined_up is None or self._lined_up[0] is not policy:
            self._lined_up = policy, [[each for option in tier if (each := self._place(option, policy))] for tier in policy.tiers]
        return self._lined_up[1]

    def _place(self, option: PluginOption, policy: Policy) -> tuple[type[Plugin], PluginOption, list[str]] | None:
        kind = self.plugin(option.name, policy.dialect)
        if kind is None:
            return None
        return kind, option, [point for point in answers(kind) if option.is_enabled(SWITCH.get(point, point))]

    def catalogue(self) -> Catalogue:
        """What a policy file may name."""
        return Catalogue(
            actions={k: Entry(a.arguments, None, _first_line(a), a) for k, a in sorted(self._actions.items())},
            plugins={k: Entry(p.arguments, answers(p), _first_line(p), p) for k, p in sorted(self._plugins.items())},
        )


def _key(kind: type, name: str, dialect: str) -> str:
    if not name:
        raise RegistrationError(f"{kind!r} has no name")
    return f"{dialect}:{name}" if dialect else name


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
