"""Where plugins and actions are found by name.

Built-in ones are known by their place and imported when a policy names them; others come by entry point (`navarch.plugins`,
`navarch.actions`) or are added by hand (`--plugin-dir` does that). A registry is an ordinary value: tests make their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from navarch.engine.action import Action
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import SWITCH, answers
from navarch.engine.policy.catalogue import Catalogue, Entry, key_of
from navarch.engine.policy.values import PluginOption, Policy
from navarch.places import Lazily, at, place_of

K = TypeVar("K", Plugin, Action)

Placed = tuple[type[Plugin], PluginOption, list[str]]
"""A plugin's class, how the policy wants it, and the points at which it is asked."""


class LineUp:
    """Who takes part: tier by tier, and in each profile after the first by its number among all, as it stands in `tiers` and then
    in `added`. What several profiles want in the same way is there once."""

    def __init__(self, tiers: list[list[Placed]], further: Mapping[str, list[Placed]]) -> None:
        self.tiers = tiers
        self.added: list[Placed] = []
        self.further: dict[str, list[tuple[int, list[str]]]] = {}
        first = [_wanted(option) for tier in tiers for _, option, _ in tier] if further else []
        numbers = {wanted: number for number, wanted in enumerate(first)}
        for name, profile in further.items():
            for each in profile:
                if _wanted(each[1]) not in numbers:
                    numbers[_wanted(each[1])] = len(first) + len(self.added)
                    self.added.append(each)
            self.further[name] = [(numbers[_wanted(option)], points) for _, option, points in profile]


def _wanted(option: PluginOption) -> Hashable:
    """Equal for options that want the same plugin in the same way."""
    return option.name, repr(sorted(option.enabled.items())), repr(sorted(option.arguments.items()))


class RegistrationError(ValueError):
    """A class that cannot be registered; the text says what is wrong with it."""


class _Shelf(Generic[K]):
    """Classes of one kind by key; one that is only known by its place is imported when it is taken."""

    def __init__(self, base: type[K], classes: Iterable[type[K]], places: Mapping[str, str]) -> None:
        self.base: type[K] = base
        self._known: dict[str, type[K] | str] = dict(places)
        for kind in classes:
            self.add(kind)

    def keys(self) -> list[str]:
        return sorted(self._known)

    def add(self, kind: type[K]) -> None:
        if not (isinstance(kind, type) and issubclass(kind, self.base)):
            raise RegistrationError(f"{kind!r} is not a subclass of {self.base.__module__}.{self.base.__name__}")
        key = _key(kind, getattr(kind, "name", ""), kind.dialect)
        if self._known.get(key, kind) not in (kind, place_of(kind)):
            what = self.base.__name__.lower()
            raise RegistrationError(f"two {what}s are called {key!r}: {self._known[key]!r} and {kind!r}")
        self._known[key] = kind

    def take(self, key: str) -> type[K]:
        found = self._known[key]
        if isinstance(found, str):
            found = self._known[key] = at(found)
        return found

    def find(self, name: str, dialect: str) -> type[K] | None:
        key = key_of(self._known, name, dialect)
        return None if key is None else self.take(key)


class Registry:
    """`plugin_places` and `action_places` are tables of name -> place, as `navarch.plugins.PLACES` is one."""

    def __init__(
        self,
        plugins: Iterable[type[Plugin]] = (),
        actions: Iterable[type[Action]] = (),
        *,
        plugin_places: Mapping[str, str] | None = None,
        action_places: Mapping[str, str] | None = None,
    ) -> None:
        self._plugins = _Shelf(Plugin, plugins, plugin_places or {})
        self._actions = _Shelf(Action, actions, action_places or {})
        self._lined_up: tuple[Policy, LineUp] | None = None

    def add_plugin(self, plugin: type[Plugin]) -> None:
        self._plugins.add(plugin)
        self._lined_up = None

    def add_action(self, action: type[Action]) -> None:
        self._actions.add(action)

    def plugin(self, name: str, dialect: str = "") -> type[Plugin] | None:
        return self._plugins.find(name, dialect)

    def action(self, name: str, dialect: str = "") -> type[Action] | None:
        return self._actions.find(name, dialect)

    def line_up(self, policy: Policy) -> LineUp:
        """Who takes part under a policy, and where. Kept while the policy is the same: every cycle asks."""
        if self._lined_up is None or self._lined_up[0] is not policy:
            tiers = [self._placed(tier, policy) for tier in policy.tiers]
            further = {name: self._placed(policy.profiles[name].plugins, policy) for name in [*policy.profiles][1:]}
            self._lined_up = policy, LineUp(tiers, further)
        return self._lined_up[1]

    def _placed(self, options: Iterable[PluginOption], policy: Policy) -> list[Placed]:
        return [each for option in options if (each := self._place(option, policy))]

    def _place(self, option: PluginOption, policy: Policy) -> Placed | None:
        kind = self.plugin(option.name, policy.dialect)
        if kind is None:
            return None
        return kind, option, [point for point in answers(kind) if option.is_enabled(SWITCH.get(point, point))]

    def catalogue(self) -> Catalogue:
        """What a policy file may name."""
        return Catalogue(Lazily(self._actions.keys(), self._action_entry), Lazily(self._plugins.keys(), self._plugin_entry))

    def _action_entry(self, key: str) -> Entry:
        action = self._actions.take(key)
        return Entry(action.arguments, None, _first_line(action), action)

    def _plugin_entry(self, key: str) -> Entry:
        plugin = self._plugins.take(key)
        return Entry(plugin.arguments, answers(plugin), _first_line(plugin), plugin)


def _key(kind: type, name: str, dialect: str) -> str:
    if not name:
        raise RegistrationError(f"{kind!r} has no name")
    return f"{dialect}:{name}" if dialect else name


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
