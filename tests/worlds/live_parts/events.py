"""The events writer with a pool without a wire."""

from __future__ import annotations

from tests.worlds.live_parts.fake_pool import Submitted

from navarch.live.writers.events import Events, pod_reference
from navarch.live.writers.outbox import Count, uncounted

POD = pod_reference("default", "a", "u1")


class Clock:
    now = 1_700_000_000.25

    def __call__(self) -> float:
        return self.now


def make(count: Count = uncounted) -> tuple[Events, Submitted, Clock]:
    submitted, clock = Submitted(), Clock()
    return Events(submitted.pool, instance="me", clock=clock, count=count), submitted, clock
