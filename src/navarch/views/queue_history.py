"""What each queue held in the last hour, in steps of half a minute.

The leader keeps one since it leads, and the dashboard keeps one since it was started: it fills what it does not know from the leader's
(`fill`). The value of a step is the last one that was seen in it; a step in which nothing changed has the value of the step before.
One array of floats a queue and resource: 500 queues with three resources take less than 1 MB.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

STEP_SECONDS: Final = 30
STEPS: Final = 120
"""Values that are kept, so one hour."""


def step_of(now: float) -> int:
    """The number of a step, since 1970."""
    return int(now // STEP_SECONDS)


class QueueHistory:
    def __init__(self) -> None:
        self._held: dict[tuple[str, str], array[float]] = {}
        """(queue, resource) -> values, the newest last; NaN: not known."""
        self._queues: frozenset[str] = frozenset()
        """Queues that exist, also those that hold nothing."""
        self._newest = 0
        """Number of the newest step."""
        self._first: int | None = None
        """Number of the first step that was seen."""

    def add(self, now: float, held: Mapping[str, Mapping[str, float]]) -> None:
        """`held`: queue -> resource -> amount. A queue that is missing is gone."""
        self._advance(now)
        self._queues = frozenset(held)
        self._first = self._newest if self._first is None else self._first
        for (queue, resource), values in list(self._held.items()):
            if queue not in held:
                del self._held[queue, resource]
            elif resource not in held[queue]:
                values[-1] = 0.0
        for queue, amounts in held.items():
            for resource, amount in amounts.items():
                values = self._held.setdefault((queue, resource), array("f", [math.nan] * STEPS))
                values[-1] = amount

    def fill(self, end: float, held: Mapping[tuple[str, str], Sequence[float | None]]) -> None:
        """Take values of steps that are not known here from another history: (queue, resource) -> values, the newest last. `end`: the
        end of its newest step. Of queues that do not exist here nothing is taken."""
        later = step_of(end) - 1 - self._newest
        """By how many steps the other history is ahead."""
        for (queue, resource), values in held.items():
            if queue not in self._queues:
                continue
            own = self._held.setdefault((queue, resource), self._nothing_held())
            for back in range(STEPS):
                at = len(values) - 1 - later - back
                if math.isnan(own[-1 - back]) and 0 <= at < len(values):
                    value = values[at]
                    own[-1 - back] = math.nan if value is None else value

    def _nothing_held(self) -> array[float]:
        """Of a queue that was seen without a resource: 0 since the first step, not known before."""
        seen = min(STEPS, self._newest + 1 - self._first) if self._first is not None else 0
        return array("f", [math.nan] * (STEPS - seen) + [0.0] * seen)

    def _advance(self, now: float) -> None:
        step = step_of(now)
        passed = min(max(step - self._newest, 0), STEPS)
        self._newest = max(self._newest, step)
        if passed:
            for key, values in self._held.items():
                self._held[key] = values[passed:] + array("f", [values[-1]] * passed)

    def to_dict(self, now: float, queues: Container[str] | None = None, queue: str = "", resource: str = "") -> dict[str, Any]:
        """`queues`: those that the viewer may see; None: all. `queue`, `resource`: only these, where given."""
        self._advance(now)
        rows = [
            {"queue": name, "resource": of, "held": [None if math.isnan(each) else round(each, 3) for each in values]}
            for (name, of), values in sorted(self._held.items())
            if (queues is None or name in queues) and queue in ("", name) and resource in ("", of) and of != "pods"
        ]
        return {"seconds": STEP_SECONDS, "end": (self._newest + 1) * STEP_SECONDS, "rows": rows}
