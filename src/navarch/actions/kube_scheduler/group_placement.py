"""Finding nodes for a group of pods or a group of groups, as kube-scheduler's workload cycle does.

The pods of a group are tried in their order, each with the ones before it in place. The search ends as soon as the minimum cannot be
reached. The children of a composite are tried the same way, each as a whole. A topology constraint makes *placements*: one for each
value of the label among the nodes at hand, or the one where pods of the group already are. Each is tried. The best is kept, of equal
ones the first by name: more pods are better, and so are nodes that become fuller. Where a group fails, everything below it is taken
back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from navarch.actions.kube_scheduler.group_tree import GroupNode, scheduled
from navarch.engine.placement.fit_errors import FitErrors
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.engine.topology.domains import NOWHERE, label_tree
from navarch.engine.victims.what_if import WhatIf
from navarch.model.resources import BoolArray

if TYPE_CHECKING:
    from navarch.actions.kube_scheduler.schedule import Schedule

Pair = tuple[int, int]
"""A pod and its node."""


class Board(Protocol):
    """Where pods are put on trial."""

    def put(self, row: int, node: int) -> str:
        """Returns why a plugin refuses the pod there; empty: it is there."""
        ...

    def mark(self) -> int: ...

    def take_back(self, mark: int) -> None:
        """Everything since this mark."""
        ...


class StatementBoard:
    """On a statement, which can be committed."""

    def __init__(self, action: Schedule, statement: Statement) -> None:
        self._action, self._session, self._statement = action, action.session, statement
        self._nominated: list[tuple[int, int | None]] = []

    def put(self, row: int, node: int) -> str:
        job = self._session.job_of(row)
        assert job is not None
        refused = self._statement.allocate(job, [row], [node], self._session.class_of(row))
        if refused:
            return next(iter(refused.values())).message
        self._nominated.append((row, self._action.nominations.node_of(row)))
        self._action.nominations.drop(row)
        self._action.changed()
        return ""

    def mark(self) -> int:
        return self._statement.save_point()

    def take_back(self, mark: int) -> None:
        undone = {row for operation in self._statement.operations[mark:] for row in operation.tasks}
        told = {row: job for row in undone if (job := self._session.job_of(row)) is not None}
        before = {job.row: dict(job.last_undone) for job in told.values()}
        self._statement.roll_back(mark)
        for job in told.values():  # a pod of a group is told the group's shortage, not that it could have run alone
            job.last_undone.clear()
            job.last_undone.update(before[job.row])
        while self._nominated and self._nominated[-1][0] in undone:
            row, node = self._nominated.pop()
            if node is not None:
                self._action.nominations.put(row, node)
        self._action.changed()


class TrialBoard:
    """In a what-if trial, where victims are gone already."""

    def __init__(self, action: Schedule, trial: WhatIf) -> None:
        self._action, self._trial = action, trial
        self._put: list[tuple[int, int, int | None]] = []

    def put(self, row: int, node: int) -> str:
        self._trial.add(row, node)
        self._put.append((row, node, self._action.nominations.node_of(row)))
        self._action.nominations.drop(row)
        self._action.changed()
        return ""

    def mark(self) -> int:
        return len(self._put)

    def take_back(self, mark: int) -> None:
        while len(self._put) > mark:
            row, node, nominated = self._put.pop()
            self._trial.remove(row, node)
            if nominated is not None:
                self._action.nominations.put(row, nominated)
        self._action.changed()


@dataclass(slots=True)
class Outcome:
    """`pairs`: what was placed. `message`: why the group fails; empty: it succeeds."""

    pairs: list[Pair] = field(default_factory=list)
    message: str = ""
    refused: dict[int, FitErrors] = field(default_factory=dict)
    """Pods of groups that succeed which found no node themselves."""
    failed: dict[int, str] = field(default_factory=dict)
    """Pods of groups below that fail -> why."""


class GroupPlacement:
    """`waiting`: the pending pods of a job, in their order."""

    def __init__(self, action: Schedule, board: Board, waiting: Callable[[GroupNode], list[int]]) -> None:
        self.action = action
        self.session: Session = action.session
        self.board = board
        self._waiting = waiting

    def place_root(self, root: GroupNode) -> Outcome:
        """As `place`, but a group none of whose waiting pods finds a node fails, although the pods that it has may be enough."""
        found = self.place(root)
        if not found.message and not found.pairs:
            texts = (*(errors.message for errors in found.refused.values()), *found.failed.values())
            found.message = texts[0] if texts else "no pod of the group waits"
        return found

    def place(self, node: GroupNode, within: BoolArray | None = None) -> Outcome:
        """On success what was placed stays on the board; on failure nothing does."""
        if not node.label:
            return self._place(node, within)
        masks = self._placements(node, within)
        if isinstance(masks, str):
            return Outcome(message=masks)
        found: list[tuple[BoolArray, Outcome]] = []
        first = ""
        for mask in masks:
            mark = self.board.mark()
            outcome = self._place(node, mask)
            self.board.take_back(mark)
            first = first or outcome.message
            if not outcome.message:
                found.append((mask, outcome))
        if not found:
            return Outcome(
                message=f"0/{len(masks)} placements are available, first placement status: {first or 'no node has the label'}"
            )
        best = self._best(node, found)
        for row, where in best.pairs:
            self.board.put(row, where)
        return best

    def _best(self, node: GroupNode, found: Sequence[tuple[BoolArray, Outcome]]) -> Outcome:
        """The placement with the highest score, the first among equals. Its score is the share of pods that it takes, of the most that
        one takes, and what scorers of the profile say of it."""
        held = len(scheduled(self.session, node))
        most = held + max(len(outcome.pairs) for _, outcome in found)
        if len(found) == 1 or not most:
            return found[0][1]

        def score(mask: BoolArray, outcome: Outcome) -> float:
            tasks = [self.session.class_of(row) for row, _ in outcome.pairs]
            parts = ((each.weight, each.placement(tasks, mask)) for each in self.session.scorers_for(tasks[0])) if tasks else ()
            return (held + len(outcome.pairs)) * 100 // most + sum(weight * part for weight, part in parts if part is not None)

        return max(found, key=lambda each: score(*each))[1]

    def _placements(self, node: GroupNode, within: BoolArray | None) -> list[BoolArray] | str:
        """The nodes of each value of the label, by value; the reason if pods of the group already are in several domains."""
        tree = label_tree(self.session.snapshot, node.label)
        held = sorted({int(self.session.node[task]) for task in scheduled(self.session, node)})
        taken = sorted({int(domain) for domain in tree.at_tier(0)[held]}) if held else []
        if len(taken) > 1 or NOWHERE in taken:
            return f"cannot determine domain for already scheduled pods: they are in {len(taken)} domains of {node.label}"
        domains = taken or np.flatnonzero(tree.tier == 0).tolist()
        masks = [tree.mask(domain) if within is None else tree.mask(domain) & within for domain in domains]
        return [mask for mask in masks if mask.any()]

    def _place(self, node: GroupNode, within: BoolArray | None) -> Outcome:
        return self._place_pods(node, within) if node.job is not None else self._place_children(node, within)

    def _place_pods(self, node: GroupNode, within: BoolArray | None) -> Outcome:
        rows = self._waiting(node)
        held, left, mark = len(scheduled(self.session, node)), len(rows), self.board.mark()
        if held + left < node.minimum:
            return Outcome(message=_shortage(node, held, left))
        out = Outcome()
        for row in rows:
            left -= 1
            found = self._find(row, within)
            if not isinstance(found, FitErrors):
                out.pairs.append((row, found))
                continue
            out.refused[row] = found
            if held + len(out.pairs) + left < node.minimum:
                self.board.take_back(mark)
                return Outcome(message=f"{_shortage(node, held + len(out.pairs), left)}: {found.message}")
        return out

    def _place_children(self, node: GroupNode, within: BoolArray | None) -> Outcome:
        out, done, left, mark = Outcome(), 0, len(node.children), self.board.mark()
        if left < node.minimum:
            return Outcome(message=_shortage(node, 0, left))
        why = ""
        for child in node.children:
            found = self.place(child, within)
            left -= 1
            done += not found.message
            why = why or found.message
            out.pairs += found.pairs
            out.refused |= found.refused
            out.failed |= found.failed
            if found.message:
                out.failed |= {row: found.message for leaf in child.leaves() for row in self._waiting(leaf)}
            if done + left < node.minimum:
                self.board.take_back(mark)
                return Outcome(message=f"{_shortage(node, done, left)}: {why}", failed=out.failed)
        return out

    def _find(self, row: int, within: BoolArray | None) -> int | FitErrors:
        """The node that the pod was put on, or why none takes it."""
        session, task = self.session, self.session.class_of(row)
        attempt, _ = self.action.look(task, row, within)
        node = attempt.node
        if node < 0 and attempt.feasible.any():
            node = session.view(task).choose_in(attempt.feasible, 1)[0]
        if node >= 0:
            refusal = self.board.put(row, node)
            return node if not refusal else FitErrors(len(session.nodes), message=refusal)
        size = len(session.nodes) if within is None else int(within.sum())
        attempt.errors.message = attempt.errors.available_text(size, attempt.rejection) if size else attempt.rejection
        return attempt.errors


def _shortage(node: GroupNode, done: int, left: int) -> str:
    return f"minCount ({node.minimum}) cannot be satisfied: {done} scheduled, {left} remaining"
