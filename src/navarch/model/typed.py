"""Objects that only some plugins read, from manifests to values of the model, each read once in its life.

A cluster keeps such objects as decoded manifests. A plugin asks for a kind here; what is read stays in the snapshot's memo,
and when the kind changes only the objects that are new are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from navarch.model.snapshot import Snapshot

V = TypeVar("V")
Key = tuple[str, str]


def of_kind(
    snapshot: Snapshot, kind: str, read: Callable[[Mapping[str, Any]], V], *, namespaced: bool = False
) -> Mapping[Key, V]:
    """(namespace, name) -> value, in that order; the namespace is empty for kinds without one."""
    held = snapshot.memo.pop(("typed", kind), None)
    version = snapshot.versions.get(kind, 0)
    if held is None or held[0] != version:
        sources = snapshot.objects.get(kind, {})
        before: dict[Key, tuple[Any, V]] = held[1] if held is not None else {}
        made: dict[Key, tuple[Any, V]] = {}
        for (namespace, name), source in sorted(sources.items()):
            key = ((namespace or "default") if namespaced else "", name)
            known = before.get(key)
            if known is not None and known[0] is source:
                made[key] = known
            else:
                made[key] = source, read(source) if isinstance(source, Mapping) else source
        held = version, made, {key: value for key, (_, value) in made.items()}
    snapshot.memo["typed", kind] = held
    found: Mapping[Key, V] = held[2]
    return found
