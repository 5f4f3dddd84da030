"""Metrics under the names and labels of a followed system, beside our own (`navarch run --metrics-names volcano`).

Dashboards and alerts of a migrated installation keep working for the metrics that have an equivalent here. A metric without one is
absent: a series of zeros would mislead. docs/metrics.md has the table of each system, and a test compares it with what is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, repeat
from typing import TYPE_CHECKING

from navarch.engine.record import CycleRecord, Eviction, QueueFigures
from navarch.live.ops.metrics import MOST_QUEUES, OTHERS
from navarch.model.spec import TaskSpec

if TYPE_CHECKING:
    from navarch.live.core import LiveCore
    from navarch.live.cycle import Cycle

MOST_JOBS = 1000
"""Series that name a job exist for this many jobs; those of the oldest are removed."""


class FollowedMetrics:
    """No further names: the default. A followed system overrides what it serves."""

    def cycle(self, cycle: Cycle, commit_seconds: float, core: LiveCore) -> None:
        """A cycle was decided and committed."""

    def bound(self, task: TaskSpec, waited: float, binding: float) -> None:
        """A pod was bound `waited` seconds after its creation. The binding took `binding` seconds from the decision."""

    def refresh(self, core: LiveCore) -> None:
        """The metrics are about to be read: bring those in line that show a state."""


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds of buckets as Go's client computes them, so that the `le` labels are the same.

    >>> exponential(5, 2, 4)
    (5, 10, 20, 40)
    """
    return tuple(accumulate(repeat(factor, count - 1), lambda bound, by: bound * by, initial=start))


def exponential_range(lowest: float, highest: float, count: int) -> tuple[float, ...]:
    """
    >>> exponential_range(1, 8, 4)
    (1.0, 2.0, 4.0, 8.0)
    """
    growth = (highest / lowest) ** (1 / (count - 1))
    return tuple(lowest * growth**i for i in range(count))


def plugin_times(record: CycleRecord) -> Iterator[tuple[str, str, float]]:
    """(plugin, `OnSessionOpen` or `OnSessionClose`, seconds) of a cycle."""
    for name, seconds in record.timings.items():
        for end, label in ((" (open)", "OnSessionOpen"), (" (close)", "OnSessionClose")):
            if name.endswith(end):
                yield name.removesuffix(end), label, seconds


def action_times(cycle: Cycle) -> Iterator[tuple[str, float]]:
    """(action, seconds) of a cycle."""
    for name in cycle.policy.actions:
        if name in cycle.record.timings:
            yield name, cycle.record.timings[name]


def evictions_by_purpose(record: CycleRecord) -> dict[tuple[str, str], list[Eviction]]:
    """(action, job that gets the room) -> its victims."""
    found: dict[tuple[str, str], list[Eviction]] = {}
    for eviction in record.evictions:
        found.setdefault((eviction.action, eviction.for_), []).append(eviction)
    return found


def bounded(figures: Sequence[QueueFigures]) -> Iterator[tuple[str, QueueFigures]]:
    """(label, figures) of each queue; the queues beyond a bound have one label."""
    for number, each in enumerate(figures):
        yield each.queue if number < MOST_QUEUES else OTHERS, each
