"""Nodes that refused a task of a role are not tried again for that role in the same attempt at its job (`refusals_bind_the_role`).

The rule matters where later tasks of the role would pass: they ask for less, or the tasks placed in between changed the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from navarch.engine.placement.fit_errors import FitErrors
from navarch.engine.session import Session
from navarch.model.resources import BoolArray


class RoleRefusals:
    """One attempt. `lasting`: whether refusals last at all."""

    def __init__(self, session: Session, tasks: Sequence[int], *, lasting: bool) -> None:
        self._session = session
        self._refused: dict[str, BoolArray] = {}
        self._why: dict[str, list[FitErrors]] = {}
        self._mixed: set[str] = set()
        """Roles whose tasks get different answers in the course of the attempt."""
        self.alike = lasting and len(tasks) > 1 and session.share_class(tasks)
        """All tasks are known to be of one class."""
        if lasting and len(tasks) > 1:
            if self.alike and not session.view(session.class_of(tasks[0])).global_filters:
                return
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

    def note(self, task: int, within: BoolArray | None) -> None:
        """The task is tried now: remember the nodes that refuse it, and why they do."""
        role = self._session.task(task).role
        view = self._session.view(self._session.class_of(task))
        refused = ~(view.feasible() & view.future)
        if within is not None:
            refused = refused & within
        before = self._refused.get(role)
        new = refused if before is None else refused & ~before
        self._refused[role] = refused if before is None else before | refused
        if new.any():
            self._why.setdefault(role, []).append(view.explain(within=new))

    def explain(self, role: str) -> FitErrors:
        """Why each node refuses the role: what it said to the first task that it refused."""
        first, *others = self._why[role]
        nodes, unresolvable = dict(first.nodes), first.unresolvable
        for each in others:
            for text, count in each.nodes.items():
                nodes[text] = nodes.get(text, 0) + count
            unresolvable = unresolvable | each.unresolvable
        return replace(
            first,
            refused=first.refused + sum(each.refused for each in others),
            nodes=dict(sorted(nodes.items())),
            unresolvable=unresolvable,
            codes=tuple(dict.fromkeys(code for each in (first, *others) for code in each.codes)),
            undone_by=tuple(dict.fromkeys(event for each in (first, *others) for event in each.undone_by)),
        )
