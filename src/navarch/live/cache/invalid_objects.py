"""Objects that could not be read: counted, logged, and told to their owners by a warning event once we lead."""

from __future__ import annotations

import logging

from navarch.kube.resources import Resource
from navarch.kube.watch.decoding import Metadata
from navarch.live.ops.metrics import Metrics
from navarch.live.writers.events import Events, Regarding

log = logging.getLogger(__name__)

MOST = 1000
"""Bad objects remembered until we lead; whoever has more of them finds the rest in the log."""


class InvalidObjects:
    def __init__(self, events: Events, metrics: Metrics) -> None:
        self._events = events
        self._metrics = metrics
        self._leads = False
        self._untold: dict[Regarding, str] = {}

    def take(self, kind: str, resource: Resource, metadata: Metadata, error: Exception) -> None:
        """Called once for each bad version of an object."""
        self._metrics.bad_objects.labels(kind).inc()
        log.warning("%s %s/%s is set aside: %s", kind, metadata.namespace or "", metadata.name, error)
        reference = Regarding(kind, metadata.namespace or "", metadata.name, metadata.uid or "", resource.api_version)
        if self._leads:
            self._tell(reference, str(error))
        elif len(self._untold) < MOST:
            self._untold[reference] = str(error)

    def lead(self, leads: bool) -> None:
        """Only the leader writes events, so that replicas do not say everything twice."""
        self._leads = leads
        if leads:
            for reference, error in self._untold.items():
                self._tell(reference, error)
            self._untold.clear()

    def _tell(self, reference: Regarding, error: str) -> None:
        self._events.emit(reference, "Warning", "InvalidObject", "Reading", error)
