"""The steps of a cycle: what it may do before its decisions so far are its record.

The engine reads no clock, so it counts. A step is about as much work as one pass over the columns of a hundred nodes: rules about a
class of tasks, a refusal, a trial of evictions cost what they look at. Between two jobs an action asks whether steps are left. When
they are used up the cycle is cut: what was committed stands, jobs that got nothing are untried, and the next cycle tries fewer of them
at once (`live/queue/rounds.py`). In a new session, the same snapshot, policy and
allowance give the same record.
"""

from __future__ import annotations

NODES_A_STEP = 100
TASKS_A_STEP = 500


class StepsUsedUp(BaseException):
    """The cycle has used up its steps. No rule is at fault, so containment does not take it."""


class Steps:
    """`allowed` None: as many as it takes, as for `plan`, `explain` and recorded answers."""

    __slots__ = ("_left", "spent")

    def __init__(self, allowed: int | None = None) -> None:
        self.spent = 0
        self._left = allowed

    def spend(self, steps: int) -> None:
        self.spent += steps

    def check(self) -> None:
        """Called between two jobs, while no statement is open."""
        if self._left is not None and self.spent >= self._left:
            raise StepsUsedUp
