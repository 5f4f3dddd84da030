"""Evictions and nominations that the API server never shows: they end after a time-out.

An eviction is assumed until the watch shows the pod leaving. Until then its place is promised to another job. If the API server
accepted the eviction and nothing follows (a proxy answered in its place, for example), the promise would block the place for ever. The
victim then counts as running again, and it is no victim for a while, so that the next cycle chooses otherwise.

A nomination is assumed until the watch shows it, or until its pod is refused. One that no cycle repeats ends too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from navarch.live.cache.assumed_pods import AssumedPods

EVICTION_TIMEOUT = 30.0
"""Seconds from the API server's yes until the watch has to show that the pod leaves."""
UNANSWERED_TIMEOUT = 600.0
"""The same for an eviction without an answer. The evictor gives up much sooner; this ends what it lost."""
NOMINATION_TIMEOUT = 60.0
"""Seconds since the last cycle that promised the pod this node."""


class UnconfirmedDecisions:
    """`end_eviction(uid, seconds)` and `end_nomination(uid)` undo a decision. Times are those that `check` is given."""

    def __init__(
        self, assumed: AssumedPods, end_eviction: Callable[[str, float], None], end_nomination: Callable[[str], None]
    ) -> None:
        self._assumed = assumed
        self._end_eviction = end_eviction
        self._end_nomination = end_nomination
        self._evictions: dict[tuple[str, bool], float] = {}
        """(uid, whether it was accepted) -> when this was first seen."""
        self._nominations: dict[tuple[str, str], float] = {}
        """(uid, node) -> when it was first seen, or last promised by a cycle."""

    def check(self, now: float, promised: Collection[str]) -> None:
        """`promised`: uids of the pods that the last cycle promised a node. Called once a second. Cost: a step for each decision that
        the API does not show."""
        assumed = self._assumed
        evictions = {(uid, uid in assumed.accepted_evictions) for uid in assumed.evictions}
        self._evictions = {key: self._evictions.get(key, now) for key in evictions}
        for (uid, accepted), since in sorted(self._evictions.items()):
            limit = EVICTION_TIMEOUT if accepted else UNANSWERED_TIMEOUT
            if now - since >= limit:
                self._end_eviction(uid, limit)
        nominations = self._nominations
        self._nominations = {key: now if key[0] in promised else nominations.get(key, now) for key in assumed.nominations.items()}
        for (uid, _), since in sorted(self._nominations.items()):
            if now - since >= NOMINATION_TIMEOUT:
                self._end_nomination(uid)
