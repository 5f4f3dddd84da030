"""Whether an API server stores a kind."""

from __future__ import annotations

from navarch.kube.resources import Resource


def stored(scheduler: object, resource: Resource) -> list[str]:
    found = (each for each, _ in scheduler.informers.kinds if each.resource == resource)  # type: ignore[attr-defined]
    return sorted(name for informer in found for _, name in informer.store)
