"""Objects that cannot be read: counted, logged, and reported by a warning event on the object once we lead."""

from __future__ import annotations

import logging

from navarch.kube.resources import Resource
from navarch.kube.watch.decoding import Metadata
from navarch.live.ops.metrics import Metrics
from navarch.live.writers.events import Events, Regarding

log = logging.getLogger(__name__)

MOST = 1000
"""Invalid objects remembered until we lead. If there are more, the log has the rest."""


class InvalidObjects:
    def __init__(self, events: Events, metrics: Metrics, scheduler: str) -> None:
        """`scheduler`: the name that we serve. An event is seen without its source, beside those of other schedulers."""
        self._events, self._scheduler = events, scheduler
        self._metrics = metrics
        self._leading = False
        self._waiting: dict[Regarding, str] = {}
        """Events to write once we lead: the object, and what is wrong with it."""

    def report(self, kind: str, resource: Resource, metadata: Metadata, error: Exception) -> None:
        """Called once for each invalid version of an object."""
        self._metrics.bad_objects.labels(kind).inc()
        log.warning("%s %s/%s is invalid and not used: %s", kind, metadata.namespace or "", metadata.name, error)
        reference = Regarding(kind, metadata.namespace or "", metadata.name, metadata.uid or "", resource.api_version)
        if self._leading:
            self._emit(reference, str(error))
        elif len(self._waiting) < MOST:
            self._waiting[reference] = str(error)

    def set_leading(self, leading: bool) -> None:
        """Only the leader writes events, so that each is written once."""
        self._leading = leading
        if leading:
            for reference, error in self._waiting.items():
                self._emit(reference, error)
            self._waiting.clear()

    def _emit(self, reference: Regarding, error: str) -> None:
        self._events.emit(reference, "Warning", "InvalidObject", "Reading", f"scheduler {self._scheduler} cannot use it: {error}")
