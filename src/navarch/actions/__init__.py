"""Actions: the steps of a cycle, one file each."""

from __future__ import annotations

from navarch.engine.action import Action


def builtin_actions() -> tuple[type[Action], ...]:
    """Every action that comes with Navarch."""
    from navarch.actions.allocate import Allocate
    from navarch.actions.backfill import Backfill
    from navarch.actions.enqueue import Enqueue
    from navarch.actions.gang_evict import GangPreempt, GangReclaim
    from navarch.actions.preempt import Preempt
    from navarch.actions.reclaim import Reclaim
    from navarch.actions.schedule import Schedule
    from navarch.actions.shuffle import Shuffle

    return (Allocate, Backfill, Enqueue, GangPreempt, GangReclaim, Preempt, Reclaim, Schedule, Shuffle)
