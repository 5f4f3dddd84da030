"""Whether the sample of `navarch up` can show on this cluster and under this policy what it promises, and how long it takes."""

from __future__ import annotations

from typing import Final

from navarch.embedded.sample import SECONDS
from navarch.embedded.sample.size import FEWEST_SLOTS, Size
from navarch.engine.policy import Policy

EVICTING: Final = frozenset({"reclaim", "preempt", "gangreclaim", "gangpreempt"})
STEPS_SECONDS: Final = 10.0
"""What the steps take of the wall clock, before the cluster's time is accelerated."""


def misfit(policy: Policy, nodes: int, size: Size) -> str:
    """Why the sample is of no use here; empty if it is."""
    if not nodes:
        return "the cluster has no nodes"
    if size.slots < FEWEST_SLOTS:
        return f"its steps need room for {FEWEST_SLOTS} pods of {size.amount} {size.unit}, the cluster has room for {size.slots}"
    if "schedule" in policy.actions:
        return "it shows queues and gangs, and the policy places single pods"
    return ""


def evicts(policy: Policy) -> bool:
    return bool(EVICTING & set(policy.actions))


def how_long(speed: float) -> str:
    """
    >>> how_long(1.0)
    'the sample takes about 2 min (--speed 20: about 16 s)'
    >>> how_long(20.0)
    'the sample takes about 16 s'
    """
    hint = f" (--speed 20: {_about(20.0)})" if speed == 1.0 else ""
    return f"the sample takes {_about(speed)}{hint}"


def _about(speed: float) -> str:
    seconds = STEPS_SECONDS / min(speed, 1.0) + SECONDS / speed
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"
