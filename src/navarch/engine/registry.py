"""The registry: finds plugins and actions by name.

Built-in classes are known by their import path and are imported when a policy names them. Others come from entry points
(`navarch.plugins`, `navarch.actions`) or are added by a call (`--plugin-dir` does that). Tests make registries of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from navarch.engine.action import Action
from navarch.engine.arguments import Arguments
from navarch.engine.plugin import Plugin
from navarch.engine.points.checked_plugins import checked, is_foreign
from navarch.engine.points.declaration import declaration_problems
from navarch.engine.points.protocols import POINTS, JobTurn, implemented_points
from navarch.engine.policy.catalogue import Catalogue, Entry, key_of
from navarch.engine.policy.values import PluginOption, Policy
from navarch.places import Lazily, at, place_of

if TYPE_CHECKING:
    from navarch.engine.session import Session

K = TypeVar("K", Plugin, Action)

Selected = tuple[type[Plugin], PluginOption, list[type]]
"""A plugin's class, its option in the policy, and the protocols of the points at which it is asked."""


class SelectedPlugins:
    """The plugins of one policy.

    `tiers` holds those of the first profile, tier by tier. `added` holds plugins that only further profiles have. `further` lists
    each further profile as (number, points): the number counts through `tiers`, then `added`. Profiles that configure a plugin
    equally share one."""

    def __init__(self, tiers: list[list[Selected]], further: Mapping[str, list[Selected]]) -> None:
        self.tiers = tiers
        self.added: list[Selected] = []
        self.further: dict[str, list[tuple[int, list[type]]]] = {}
        first = [_identity(option) for tier in tiers for _, option, _ in tier] if further else []
        numbers = {identity: number for number, identity in enumerate(first)}
        for name, profile in further.items():
            for each in profile:
                if _identity(each[1]) not in numbers:
                    numbers[_identity(each[1])] = len(first) + len(self.added)
                    self.added.append(each)
            self.further[name] = [(numbers[_identity(option)], points) for _, option, points in profile]


def _identity(option: PluginOption) -> Hashable:
    """Equal for options with the same name, switches and arguments."""
    return option.name, repr(sorted(option.enabled.items())), repr(sorted(option.arguments.items()))


class RegistrationError(ValueError):
    """A class that cannot be registered; the text says what is wrong with it."""


class _Classes(Generic[K]):
    """Plugin or action classes by key. A class that is known only by its import path is imported when it is first used."""

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

    def load(self, key: str) -> type[K]:
        found = self._known[key]
        if isinstance(found, str):
            found = self._known[key] = at(found)
        return found

    def find(self, name: str, dialect: str) -> type[K] | None:
        key = key_of(self._known, name, dialect)
        return None if key is None else self.load(key)


class Registry:
    """`plugin_places` and `action_places` map names to import paths, as `navarch.plugins.PLACES` does."""

    def __init__(
        self,
        plugins: Iterable[type[Plugin]] = (),
        actions: Iterable[type[Action]] = (),
        *,
        plugin_places: Mapping[str, str] | None = None,
        action_places: Mapping[str, str] | None = None,
    ) -> None:
        self._plugins = _Classes(Plugin, plugins, plugin_places or {})
        self._actions = _Classes(Action, actions, action_places or {})
        self._selected: tuple[Policy, SelectedPlugins] | None = None

    def add_plugin(self, plugin: type[Plugin]) -> None:
        self._plugins.add(plugin)
        for problem in declaration_problems(plugin):
            raise RegistrationError(f"plugin {plugin.name} ({_source(plugin)}): {problem}")
        self._selected = None

    def add_action(self, action: type[Action]) -> None:
        self._actions.add(action)

    def plugin(self, name: str, dialect: str = "") -> type[Plugin] | None:
        return self._plugins.find(name, dialect)

    def action(self, name: str, dialect: str = "") -> type[Action] | None:
        return self._actions.find(name, dialect)

    def make_actions(self, session: Session) -> list[Action]:
        """The actions of the session's policy, in order. All are made before the first is executed: some start accounts of shared
        devices when they are made, which has to happen before any action looks at a class of tasks."""
        policy = session.policy
        found = [self.action(name, policy.dialect) for name in policy.actions]
        return [kind(session) for kind in found if kind is not None]

    def select_plugins(self, policy: Policy) -> SelectedPlugins:
        """The plugins of a policy and the points of each. Cached for the last policy, because every cycle asks."""
        if self._selected is None or self._selected[0] is not policy:
            tiers = [self._select_all(tier, policy) for tier in policy.tiers]
            further = {name: self._select_all(policy.profiles[name].plugins, policy) for name in [*policy.profiles][1:]}
            self._selected = policy, SelectedPlugins(tiers, further)
        return self._selected[1]

    def keeps_order(self, policy: Policy) -> bool:
        """Whether nothing may pass the first waiting job of a queue under the policy."""
        return any(kind.keeps_order and JobTurn in points for tier in self.select_plugins(policy).tiers for kind, _, points in tier)

    def makes_promises(self, policy: Policy) -> bool:
        """Whether waiting jobs are promised room under the policy."""
        return any(kind.makes_promises and JobTurn in points for tier in self.select_plugins(policy).tiers for kind, _, points in tier)

    def asked_servers(self, policy: Policy) -> list[str]:
        """URLs of the servers that cycles of the policy ask."""
        selected = self.select_plugins(policy)
        plugins = [each for tier in (*selected.tiers, selected.added) for each in tier]
        found = [server for kind, option, _ in plugins for server in kind.asked_servers(Arguments(kind.arguments, option.arguments))]
        return list(dict.fromkeys(found))

    def _select_all(self, options: Iterable[PluginOption], policy: Policy) -> list[Selected]:
        return [each for option in options if (each := self._select(option, policy))]

    def _select(self, option: PluginOption, policy: Policy) -> Selected | None:
        kind = self.plugin(option.name, policy.dialect)
        if kind is None:
            return None
        if is_foreign(kind):
            kind = checked(kind)
        return kind, option, [POINTS[point] for point in implemented_points(kind) if option.is_enabled(point)]

    def catalogue(self) -> Catalogue:
        """What a policy file may name."""
        return Catalogue(Lazily(self._actions.keys(), self._action_entry), Lazily(self._plugins.keys(), self._plugin_entry))

    def _action_entry(self, key: str) -> Entry:
        action = self._actions.load(key)
        return Entry(action.arguments, None, _first_line(action), action)

    def _plugin_entry(self, key: str) -> Entry:
        plugin = self._plugins.load(key)
        return Entry(plugin.arguments, implemented_points(plugin), _first_line(plugin), plugin)


def _key(kind: type, name: str, dialect: str) -> str:
    if not name:
        raise RegistrationError(f"{kind!r} has no name")
    return f"{dialect}:{name}" if dialect else name


def _source(kind: type) -> str:
    """The file that defines a class."""
    return str(getattr(sys.modules.get(kind.__module__), "__file__", None) or kind.__module__)


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
