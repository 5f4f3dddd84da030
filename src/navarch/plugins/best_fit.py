"""Best fit: a pod goes to the node with the least left of what it asks for that still suffices.

One resource counts for a pod: the first of `resources` that it asks for. Of a gang with pods of different sizes the smaller ones go
to the emptiest node instead: they are what remained after whole nodes were taken, and their job is no help in filling gaps.
Ties go to the first node in the cycle's order.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.model.resources import FloatArray


class BestFit(Plugin):
    """Prefers the node with the least left that suffices; remainders of a gang go to the emptiest"""

    name = "best-fit"
    arguments = (
        Argument("resources", "str", "nvidia.com/gpu, amd.com/gpu, cpu, memory", "the first of these that a pod asks for counts"),
        Argument("weight", "int", 1, "weight of the score", minimum=0),
    )
    waits_for_room = True

    def open(self) -> None:
        names = self.session.snapshot.resource_names
        listed = (name.strip() for name in self.given.text("resources").split(","))
        self._dims = [names.index(name) for name in listed if name in names]
        self._sizes: dict[int, int] = {}
        """Shape -> what its pods ask for of the resource that counts."""
        self.session.distinguish_by(self._is_remainder)

    def next_cycle(self) -> bool:
        return True

    def node_scorers(self) -> list[NodeScorer]:
        weight = self.given.integer("weight")
        return [LeastLeft(self, weight)] if weight else []

    def task_order(self, task: int) -> OrderKey:
        return -self._size(task)

    def dim_of(self, shape: int) -> int | None:
        request = self.session.snapshot.shape_request[:, shape]
        return next((dim for dim in self._dims if request[dim]), None)

    def _size(self, task: int) -> int:
        shape = int(self.session.shape[task])
        size = self._sizes.get(shape)
        if size is None:
            dim = self.dim_of(shape)
            size = self._sizes[shape] = 0 if dim is None else int(self.session.snapshot.shape_request[dim, shape])
        return size

    def _is_remainder(self, task: int) -> bool:
        """Whether its job has larger pods."""
        row = int(self.session.snapshot.tasks.job[task])
        tasks = self.session.snapshot.jobs.tasks[row] if row >= 0 else ()
        if len(tasks) < 2:
            return False
        return self._size(task) < max(self._size(other) for other in tasks)

    def emptiest(self, task: TaskClass) -> bool:
        return self._is_remainder(task.task)


class LeastLeft(NodeScorer):
    name = "best-fit"
    scope = Scope.ROW

    def __init__(self, plugin: BestFit, weight: int) -> None:
        self.plugin = plugin
        self.weight = float(weight)
        self._sign: dict[int, tuple[int, int]] = {}

    def applies(self, task: TaskClass) -> bool:
        dim = self.plugin.dim_of(task.shape_number)
        if dim is None:
            return False
        self._sign[task.number] = dim, 1 if self.plugin.emptiest(task) else -1
        return True

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        dim, sign = self._sign[task.number]
        left: FloatArray = np.multiply(at.allocatable[dim] - at.used[dim], sign, dtype=np.float64)
        return left
