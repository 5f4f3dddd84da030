"""Nodes that refused a task of a role are not tried again for that role in the same attempt at its job (`refusals_bind_the_role`).

The rule matters where later tasks of the role would pass: they ask for less, or the tasks placed in between changed the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.engine.session import Session
from navarch.model.resources import BoolArray


class RoleRefusals:
    """One attempt. `lasting`: whether refusals last at all."""

    def __init__(self, session: Session, tasks: Sequence[int], *, lasting: bool) -> None:
        self._session = session
        self._refused: dict[str, BoolArray] = {}
        self._mixed: set[str] = set()
        """Roles whose tasks get different answers in the course of the attempt."""
        if lasting and len(tasks) > 1:
            kinds: dict[str, int] = {}
            for task in tasks:
                role, kind = session.task(task).role, session.class_of(task)
                if role and (kinds.setdefault(role, kind.number) != kind.number or session.view(kind).global_filters):
                    self._mixed.add(role)

    def bind(self, role: str) -> bool:
        return role in self._mixed

    def open_to(self, role: str, within: BoolArray | None) -> BoolArray | None:
        """The nodes that may still be tried for the role; None: all."""
        refused = self._refused.get(role)
        if refused is None:
            return within
        return ~refused if within is None else within & ~refused

    def note(self, task: int) -> None:
        """The task is tried now: remember the nodes that refuse it."""
        role = self._session.task(task).role
        view = self._session.view(self._session.class_of(task))
        refused = ~(view.feasible() & view.future)
        before = self._refused.get(role)
        self._refused[role] = refused if before is None else before | refused
