"""Writes an event for each Volcano Job that no controller takes up.

The scheduler does not make the pods of a Job: Volcano's controller does. Where it does not run, a Job stays without status, group and
pods, and no cycle sees it. Such a Job gets a Warning event, and the log one line.
"""

from __future__ import annotations

import logging
from typing import Final

from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.events import Events, Regarding

log = logging.getLogger(__name__)

PATIENCE: Final = 60.0
"""Seconds that a controller may take."""
MOST_A_TICK: Final = 100
"""Events for new Jobs in one tick. More would fill the queue of events, and events of other objects would be dropped."""
NOTE: Final = (
    "no controller has taken up this Job: Volcano's controller makes its pods, and the scheduler does not. "
    "Is volcano-controllers running?"
)
_API_VERSION: Final = "batch.volcano.sh/v1alpha1"


class UnattendedJobs:
    def __init__(self, cache: ClusterCache, events: Events) -> None:
        self._cache = cache
        self._events = events
        self._reported: frozenset[str] = frozenset()
        """UIDs of the Jobs that have their event."""

    def report(self, now: float) -> None:
        """`now`: seconds since the epoch."""
        found = self._cache.unattended_makers(now - PATIENCE)
        fresh = [maker for maker in found if maker.uid not in self._reported][:MOST_A_TICK]
        for maker in fresh:
            about = Regarding("Job", maker.namespace, maker.name, maker.uid, _API_VERSION)
            self._events.emit(about, "Warning", "NoController", "Scheduling", NOTE)
        if fresh and not self._reported:
            log.warning("Job %s/%s: %s", fresh[0].namespace, fresh[0].name, NOTE)
        self._reported = self._reported.intersection(maker.uid for maker in found).union(maker.uid for maker in fresh)
