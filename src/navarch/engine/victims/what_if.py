"""What-if trials: add or remove pods in the view that filters and scores read, then restore it.

Statements change jobs, queues and both accounts of a node, and are meant to be kept. A trial changes only the pods' view of nodes
and the counts of rules on other pods. So it is cheap, needs no job, and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from navarch.engine.node_functions import TaskClass

if TYPE_CHECKING:
    from navarch.engine.session import Session


@runtime_checkable
class FollowsTrials(Protocol):
    """A shared object of the session that counts pods and follows the moves of trials."""

    def trial_begins(self) -> None: ...

    def trial_ends(self) -> None:
        """Called once everything is moved back."""

    def imagined(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None: ...

    def pod_evicted(self, task: TaskClass, row: int, node: int) -> None:
        """A pod on this node was evicted. It stays on the node until it is gone, but some rules no longer count it."""


class WhatIf:
    """A context manager: it moves everything back at its end."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._moves: list[tuple[int, int, int]] = []

    def __enter__(self) -> WhatIf:
        for follower in self.session.events.followers:
            follower.trial_begins()
        return self

    def __exit__(self, *_: object) -> None:
        while self._moves:
            task, node, step = self._moves.pop()
            self._move(task, node, -step)
        for follower in self.session.events.followers:
            follower.trial_ends()

    def add(self, task: int, node: int) -> None:
        self._move(task, node, 1)
        self._moves.append((task, node, 1))

    def remove(self, task: int, node: int) -> None:
        self._move(task, node, -1)
        self._moves.append((task, node, -1))

    def _move(self, task: int, node: int, step: int) -> None:
        session = self.session
        kind = session.class_of(task)
        session.nodes.imagine(node, kind.request, kind.footprint, step)
        for follower in session.events.followers:
            follower.imagined(kind, (task,), (node,), step)
