"""Filter and scores of a Volcano extender.

The extender is asked about the nodes that the filters before it leave, and about those that have room where an action places pods. An
answer about a node holds until something on the node changes. Scores are asked for over the nodes that a task may go to, if there are
at least two.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.placement.static_cache import static_mask
from navarch.engine.reasons import Event, Reason
from navarch.model.resources import BoolArray, FloatArray
from navarch.plugins.volcano.extender.answers import LONGEST, PredicateAnswer, PrioritizeAnswer, read
from navarch.plugins.volcano.extender.bodies import node_info, task_info

if TYPE_CHECKING:
    from navarch.plugins.volcano.extender.plugin import Extender

UNSCHEDULABLE = 2
"""The code of a refusal that an eviction might undo."""
_UNDONE_BY = (Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_REMOVED, Event.TIME_PASSED)


class ExtenderPredicate(NodeFilter):
    name = "extender"
    scope = Scope.GLOBAL
    undone_by = _UNDONE_BY

    def __init__(self, plugin: Extender) -> None:
        self.plugin = plugin
        self._answers: dict[tuple[int, int], tuple[int, str, bool]] = {}
        """Class and node -> the state of the node that it was asked about, why it is refused, whether no eviction could help."""

    def applies(self, task: TaskClass) -> bool:
        return self.plugin.interested(task)

    def moved_by_own_class(self, task: TaskClass) -> bool:
        return False

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        rows = _rows(at, len(self.plugin.session.nodes))
        asked = rows[self._left_by_others(task)[rows]]
        self._ask(task, asked)
        refused = {row for row in asked.tolist() if self._answers[task.number, row][1]}
        return np.array([row not in refused for row in rows.tolist()], dtype=bool)

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        """What was said so far. Nodes that another filter refuses are not asked about."""
        rows = _rows(at, len(self.plugin.session.nodes)).tolist()
        said: dict[tuple[str, bool], list[bool]] = {}
        for place, row in enumerate(rows):
            _, message, final = self._answers.get((task.number, row), (0, "", False))
            if message:
                said.setdefault((message, final), [False] * len(rows))[place] = True
        for (message, final), refused in sorted(said.items()):
            yield Refusal(message, np.array(refused, dtype=bool), final, "ExtenderRefused")

    def _left_by_others(self, task: TaskClass) -> BoolArray:
        """Nodes that pass the filters before this one, and have room where pods are placed."""
        session = self.plugin.session
        left = np.ones(len(session.nodes), dtype=bool)
        if session.action in PLACING:
            view = session.view(task)
            view.refresh()
            left &= view.future
        for each in session.filters_for(task):
            if each is self:
                break
            left &= static_mask(session, each, task) if each.scope is Scope.STATIC else each.mask(task, session.nodes)
        return left

    def _ask(self, task: TaskClass, rows: Rows) -> None:
        plugin, session = self.plugin, self.plugin.session
        state = plugin.state_of_node
        unknown = [row for row in rows.tolist() if self._answers.get((task.number, row), (-1,))[0] != state[row]]
        answers = session.conversation.ask(
            plugin.server,
            plugin.verb("predicate"),
            len(unknown),
            lambda i: {"task": task_info(session, task.task), "node": node_info(session, unknown[i])},
        )
        for row, answer in zip(unknown, answers, strict=True):
            message, final = self._judged(read(answer, PredicateAnswer))
            self._answers[task.number, row] = (int(state[row]), message, final)

    def _judged(self, found: PredicateAnswer | str) -> tuple[str, bool]:
        """Why the node is refused, empty if it is not, and whether no eviction could help."""
        if isinstance(found, str):
            return ("", False) if self.plugin.ignorable else (f"the extender failed: {found}", False)
        code, message = found.code or 0, (found.status or "")[:LONGEST]
        if not message and code:
            message = f"the extender refuses with code {code}"
        return message, bool(message) and code != UNSCHEDULABLE


class Scores:
    """What the extender answered about the nodes that a class of tasks may go to."""

    def __init__(self, plugin: Extender) -> None:
        self.plugin = plugin
        self._known: dict[int, tuple[bytes, FloatArray, str]] = {}
        """Class -> the nodes with their states that it was asked about, their scores, the failure."""

    def ask(self, task: TaskClass, group: BoolArray) -> None:
        """Ask about these nodes, if there is a choice."""
        plugin, session = self.plugin, self.plugin.session
        rows = np.flatnonzero(group)
        zeros: FloatArray = np.zeros(len(session.nodes))
        asked = rows.tobytes() + plugin.state_of_node[rows].tobytes()
        known = self._known.get(task.number)
        if known is not None and known[0] == asked:
            return
        if len(rows) < 2:
            self._known[task.number] = (asked, zeros, "")
            return
        (answer,) = session.conversation.ask(
            plugin.server,
            plugin.verb("prioritize"),
            1,
            lambda _: {"task": task_info(session, task.task), "nodes": [node_info(session, row) for row in rows.tolist()]},
        )
        scores, error = self._judged(read(answer, PrioritizeAnswer), zeros)
        self._known[task.number] = (asked, scores, error)

    def failure(self, task: TaskClass) -> str:
        """Why there are no scores; empty if all is well."""
        known = self._known.get(task.number)
        return "" if known is None else known[2]

    def of(self, task: TaskClass) -> FloatArray:
        known = self._known.get(task.number)
        return np.zeros(len(self.plugin.session.nodes)) if known is None else known[1]

    def _judged(self, found: PrioritizeAnswer | str, scores: FloatArray) -> tuple[FloatArray, str]:
        if isinstance(found, str):
            return scores, "" if self.plugin.ignorable else found
        if found.error_message or found.node_score is None:
            return scores, "" if self.plugin.ignorable else (found.error_message or "it names no scores")[:LONGEST]
        nodes = self.plugin.session.snapshot.nodes
        for name, score in found.node_score.items():
            row = nodes.row(name)
            if row is not None:
                scores[row] = score or 0.0
        return scores, ""


class ExtenderScorer(NodeScorer):
    name = "extender"
    scope = Scope.GLOBAL

    def __init__(self, plugin: Extender) -> None:
        self.plugin = plugin

    def applies(self, task: TaskClass) -> bool:
        return self.plugin.interested(task)

    def is_level(self, task: TaskClass, nodes: BoolArray) -> bool:
        """One answer serves all tasks of a run."""
        return True

    def prepare(self, task: TaskClass, feasible: BoolArray) -> None:
        self.plugin.scores.ask(task, feasible)

    def failure(self, task: TaskClass) -> Reason | None:
        error = self.plugin.scores.failure(task)
        text = f"the extender gave no scores: {error}"
        return Reason("ExtenderFailed", text, undone_by=(Event.TIME_PASSED,)) if error else None

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        scores: FloatArray = self.plugin.scores.of(task)[at.rows]
        return scores


PLACING = frozenset({"allocate", "backfill"})
"""Actions that ask only about nodes with room."""


def _rows(at: Figures, nodes: int) -> Rows:
    return np.arange(nodes)[at.rows] if isinstance(at.rows, slice) else at.rows
