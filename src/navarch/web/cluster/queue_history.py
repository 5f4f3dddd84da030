"""What each queue held in the last hour, in steps of half a minute, since the dashboard was started.

The value of a step is the last one that was seen in it; a step in which nothing changed has the value of the step before. One
array of floats a queue and resource: 500 queues with three resources take less than 1 MB.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Container, Mapping
from typing import Any, Final

STEP_SECONDS: Final = 30
STEPS: Final = 120
"""Values that are kept, so one hour."""


class QueueHistory:
    def __init__(self) -> None:
        self._held: dict[tuple[str, str], array[float]] = {}
        """(queue, resource) -> values, the newest last; NaN: not known."""
        self._newest = 0
        """Number of the newest step, since 1970."""

    def add(self, now: float, held: Mapping[str, Mapping[str, float]]) -> None:
        """`held`: queue -> resource -> amount. A queue that is missing is gone."""
        self._advance(now)
        for (queue, resource), values in list(self._held.items()):
            if queue not in held:
                del self._held[queue, resource]
            elif resource not in held[queue]:
                values[-1] = 0.0
        for queue, amounts in held.items():
            for resource, amount in amounts.items():
                values = self._held.setdefault((queue, resource), array("f", [math.nan] * STEPS))
                values[-1] = amount

    def _advance(self, now: float) -> None:
        step = int(now // STEP_SECONDS)
        passed = min(max(step - self._newest, 0), STEPS)
        self._newest = max(self._newest, step)
        if passed:
            for key, values in self._held.items():
                self._held[key] = values[passed:] + array("f", [values[-1]] * passed)

    def to_dict(self, now: float, queues: Container[str] | None, queue: str = "", resource: str = "") -> dict[str, Any]:
        """`queues`: those that the viewer may see; None: all. `queue`, `resource`: only these, where given."""
        self._advance(now)
        rows = [
            {"queue": name, "resource": of, "held": [None if math.isnan(each) else round(each, 3) for each in values]}
            for (name, of), values in sorted(self._held.items())
            if (queues is None or name in queues) and queue in ("", name) and resource in ("", of) and of != "pods"
        ]
        return {"seconds": STEP_SECONDS, "end": (self._newest + 1) * STEP_SECONDS, "rows": rows}
