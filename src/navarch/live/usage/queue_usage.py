"""What queues held in the last hour, for the page /state/usage of the leader's endpoint: the dashboard shows it as bars.

A cycle costs one comparison. The figures of the last cycle in a step are summed over the tree of queues when the next step begins, or
when the page is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from navarch.engine.record import QueueFigures
from navarch.model.spec import QueueSpec
from navarch.views.published_state import UsagePage
from navarch.views.quantities import numbers
from navarch.views.queue_history import QueueHistory, step_of
from navarch.views.queues import with_below


class QueueUsage:
    """`queues` gives the queues of the cluster, by name."""

    def __init__(self, queues: Callable[[], Mapping[str, QueueSpec]]) -> None:
        self._queues = queues
        self._history = QueueHistory()
        self._figures: Sequence[QueueFigures] = ()
        self._at = 0.0

    def take(self, now: float, figures: Sequence[QueueFigures]) -> None:
        """What queues hold after a cycle. No figures: the cycle did not report any."""
        if not figures:
            return
        if self._figures and step_of(now) != step_of(self._at):
            self._add()
        self._at, self._figures = now, figures

    def forget(self) -> None:
        """We do not lead any more: what the next leader sees is not known here."""
        self._history, self._figures = QueueHistory(), ()

    def page(self, now: float) -> UsagePage:
        if self._figures:
            self._add()
        return msgspec.convert(self._history.to_dict(now), UsagePage)

    def _add(self) -> None:
        held = with_below(self._queues(), {each.queue: each for each in self._figures}, "allocated")
        self._history.add(self._at, {name: numbers(amounts) for name, amounts in held.items()})
