"""Tells of every move of a session: first the objects that its plugins share, then the plugins with `AllocateEvents`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeGuard, cast

from navarch.engine.points.protocols import AllocateEachEvents, AllocateEvents, Change, EachChange
from navarch.engine.points.runner import PluginRunner
from navarch.engine.victims.what_if import FollowsTrials

_METHODS = frozenset({"on_allocate", "on_deallocate", "on_allocate_each"})


class PlacementEvents:
    def __init__(self, plugins: PluginRunner) -> None:
        self._plugins = plugins
        self._shared: list[AllocateEvents] = []
        self.followers: list[FollowsTrials] = []
        """Shared objects that count pods and follow what-if trials."""

    def add(self, shared: object) -> None:
        """Tell this object too, if it has the methods."""
        kind: type = type(shared)
        listens, follows = _hears(kind)
        if listens:
            self._shared.append(cast(AllocateEvents, shared))
        if follows:
            self.followers.append(cast(FollowsTrials, shared))

    def allocated(self, change: Change) -> None:
        for listener in self._shared:
            listener.on_allocate(change)
        for plugin in self._plugins.implementing(AllocateEvents):
            plugin.on_allocate(change)

    def deallocated(self, change: Change) -> None:
        for listener in self._shared:
            listener.on_deallocate(change)
        for plugin in self._plugins.implementing(AllocateEvents):
            plugin.on_deallocate(change)

    def placed_each(self, change: EachChange) -> None:
        """Placements of many jobs in one step. Listeners that do not take them together hear of them job by job."""
        one_by_one: Sequence[Change] = ()
        for listener in (*self._shared, *self._plugins.implementing(AllocateEvents)):
            if _takes_each(listener):
                listener.on_allocate_each(change)
                continue
            one_by_one = one_by_one or change.changes()
            tell = listener.on_deallocate if change.undone else listener.on_allocate
            for one in one_by_one:
                tell(one)


def _takes_each(listener: AllocateEvents) -> TypeGuard[AllocateEachEvents]:
    return _class_takes_each(type(listener))


@cache
def _class_takes_each(kind: type) -> bool:
    """Whether the nearest class that has a method for placements has `on_allocate_each`: one that overrides `on_allocate` alone must
    not be passed over."""
    nearest = next((found for base in kind.__mro__ if (found := _METHODS & vars(base).keys())), frozenset[str]())
    return "on_allocate_each" in nearest


@cache
def _hears(kind: type) -> tuple[bool, bool]:
    """Whether objects of this class get changes, and what-if trials. An isinstance check on a protocol is slow."""
    return issubclass(kind, AllocateEvents), issubclass(kind, FollowsTrials)
