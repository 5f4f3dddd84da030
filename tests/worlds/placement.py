"""Node functions and the plain way to place tasks, for properties of placement."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.session import Session
from navarch.model.resources import CPU, MEMORY, BoolArray, FloatArray


class Fullest(NodeScorer):
    name, scope = "fullest", Scope.ROW

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        share: FloatArray = at.used[CPU] * 100.0 / np.maximum(at.allocatable[CPU], 1)
        return share


class Emptiest(NodeScorer):
    name, scope = "emptiest", Scope.ROW

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        tenths: FloatArray = -np.floor(at.requested[MEMORY] * 10.0 / np.maximum(at.allocatable[MEMORY], 1))
        return tenths


class Named(NodeScorer):
    """A static score rescaled over the feasible nodes."""

    name, scope, normalises = "named", Scope.STATIC, True

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        return np.array([len(set(n)) for n in self.names], dtype=float)[at.rows]

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        return np.floor(100 * raw / high) if high else raw

    def __init__(self, names: list[str]) -> None:
        self.names = names


class AtMostThree(NodeFilter):
    name, scope = "at-most-three", Scope.ROW

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        placed = at.requested[2] < 3
        return np.asarray(placed)


def plugin_of(parts: frozenset[str]) -> type[Plugin]:
    class Test(Plugin):
        name = "test"

        def node_scorers(self) -> list[NodeScorer]:
            made: dict[str, NodeScorer] = {
                "fullest": Fullest(),
                "emptiest": Emptiest(),
                "named": Named(self.session.nodes.names),
            }
            return [scorer for key, scorer in made.items() if key in parts]

        def node_filters(self) -> list[NodeFilter]:
            return [AtMostThree()] if "three" in parts else []

    return Test


parts = st.frozensets(st.sampled_from(["fullest", "emptiest", "named", "three"]))


def place(session: Session, count: int, step: int) -> list[tuple[str, bool]]:
    job = session.all_jobs()[0]
    task = session.class_of(job.tasks[0])
    statement = session.statement()
    left = list(job.tasks)
    out: list[tuple[str, bool]] = []
    while left:
        nodes, pipelined = session.view(task).choose(min(step, len(left)))
        if not nodes:
            break
        batch, left = left[: len(nodes)], left[len(nodes) :]
        (statement.pipeline if pipelined else statement.allocate)(job, batch, nodes, task)
        out += [(session.nodes.names[n], pipelined) for n in nodes]
    return out
