"""The interface of sources of usage data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, Protocol

from navarch.model.cluster import Cluster
from navarch.model.objects.queue_usage import QUEUE_USAGE

RESOURCES: Final = ("cpu", "gpu", "memory")
"""The resources that fairness over time looks at."""

Usage = Mapping[str, Mapping[str, float]]
"""Queue -> resource -> what it held over the window, as a fraction of what the cluster had. An absent queue used nothing."""


class UsageError(Exception):
    """The source did not answer with usage data. The message names the source and its answer."""


class UsageSource(Protocol):
    async def fetch(self, now: float) -> Usage:
        """Usage over the window that ends at `now`; UsageError if it is unknown."""
        ...

    async def close(self) -> None: ...


def put_usage(cluster: Cluster, usage: Usage) -> None:
    """Bring the cluster's `QueueUsage` objects in line with what a feed knows."""
    held = cluster.objects.get(QUEUE_USAGE, {})
    for _, queue in sorted(held):
        if queue not in usage:
            cluster.remove_object(QUEUE_USAGE, "", queue)
    for queue in sorted(usage):
        if held.get(("", queue)) != usage[queue]:
            cluster.put_object(QUEUE_USAGE, "", queue, usage[queue])


def ratio(held: float, capacity: float) -> float:
    """A fraction of the cluster; 0 if the cluster had none of the resource or the figures are unknown.

    >>> ratio(3.0, 12.0), ratio(3.0, 0.0), ratio(float("nan"), 1.0)
    (0.25, 0.0, 0.0)
    """
    return held / capacity if capacity > 0 and math.isfinite(held) and math.isfinite(capacity) else 0.0
