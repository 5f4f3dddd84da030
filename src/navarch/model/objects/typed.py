"""Objects that only some plugins read, decoded from manifests to values of the model, each version once.

A cluster keeps such objects as decoded manifests. A plugin asks for a kind here; what is read stays in the snapshot's memo,
and when the kind changes only new objects are read. An object that cannot be read is left out with a message (`set_aside`):
rules that need it treat it as absent, and nothing else is affected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from navarch.model.snapshot import Snapshot
from navarch.object_types import ObjectKey

V = TypeVar("V")


def of_kind(
    snapshot: Snapshot, kind: str, read: Callable[[Mapping[str, Any]], V], *, namespaced: bool = False
) -> Mapping[ObjectKey, V]:
    """(namespace, name) -> value, in that order; the namespace is empty for kinds without one."""
    held = snapshot.memo.pop(("typed", kind), None)
    version = snapshot.versions.get(kind, 0)
    if held is None or held[0] != version:
        sources = snapshot.objects.get(kind, {})
        before: dict[ObjectKey, tuple[Any, V]] = held[1] if held is not None else {}
        made: dict[ObjectKey, tuple[Any, V]] = {}
        aside: list[str] = []
        for (namespace, name), source in sorted(sources.items()):
            key = ((namespace or "default") if namespaced else "", name)
            known = before.get(key)
            if known is not None and known[0] is source:
                made[key] = known
                continue
            try:
                made[key] = source, read(source) if isinstance(source, Mapping) else source
            except (ValueError, TypeError, AttributeError, LookupError) as error:
                shown = f"{namespace}/{name}" if namespace else name
                aside.append(f"{kind} {shown} cannot be read and is left out: {type(error).__name__}: {error}")
        held = version, made, {key: value for key, (_, value) in made.items()}, aside
    snapshot.memo["typed", kind] = held
    found: Mapping[ObjectKey, V] = held[2]
    return found


def set_aside(snapshot: Snapshot) -> list[str]:
    """One message for each object that could not be read, of the kinds that plugins asked for, in a total order."""
    held = [snapshot.memo.get(("typed", kind)) for kind in snapshot.objects]
    return sorted(text for value in held if value is not None for text in value[3])
