"""Whether an API server stores a kind."""

from __future__ import annotations

from navarch.kube.resources import Resource
from navarch.live.scheduler import Scheduler


def stored(scheduler: Scheduler, resource: Resource) -> list[str]:
    found = (each for each, _ in scheduler.informers.kinds if each.resource == resource)
    return sorted(name for informer in found for _, name in informer.store)
