"""Shapes interned to numbers, with their requests as columns.

Tasks with equal requests and constraints share one shape number. Numbers are kept while any task uses the shape; a freed
number may be reused, so caches that outlive a cycle key on the Shape value and not on its number.

Thousands of shapes may differ in amounts or in their rules about other pods alone. `node_rules` has what is left of a shape without
them, so that such shapes share one answer of the filters that read labels, taints and names of nodes.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from navarch.model.gpus import GPU_RESOURCES, part_of_gpus
from navarch.model.resources import BOUND, IntArray, ResourceSpace
from navarch.model.spec import Shape
from navarch.model.tables.columns import grown


class ShapeTable:
    def __init__(self, space: ResourceSpace) -> None:
        self.space = space
        self.specs: list[Shape] = []
        self.uses: list[int] = []
        self.request: IntArray = np.zeros((len(space), 8), dtype=np.int64)
        """(R, shapes): what a task of the shape asks for, one pod included."""
        self.charge: IntArray = np.zeros((len(space), 8), dtype=np.int64)
        """(R, shapes): what a task of the shape counts for in the accounts of jobs and queues: its request, and parts of GPUs."""
        self.best_effort: list[bool] = []
        """Asks for nothing but its pod slot."""
        self.with_pod_rules: dict[int, Shape] = {}
        """Those in use that have rules about other pods, by number: few, where there may be as many shapes as pods."""
        self.sharing_devices: set[int] = set()
        """Those in use that ask for a part of a device, by number."""
        self.changes = 0
        """Grows with every shape that is added."""
        self.node_rules: list[Shape] = []
        """By number: what the shape says about nodes. Shapes that say the same have the same object."""
        self._sharing: dict[Shape, tuple[Shape, list[int]]] = {}
        """Rules about nodes -> the object that stands for them, and how many shapes have it."""
        self._number: dict[Shape, int] = {}
        self._free: list[int] = []

    def acquire(self, shape: Shape) -> int:
        number = self._number.get(shape)
        if number is None:
            number = self._add(shape)
        self.uses[number] += 1
        return number

    def release(self, number: int) -> None:
        self.uses[number] -= 1
        if not self.uses[number]:
            del self._number[self.specs[number]]
            self.with_pod_rules.pop(number, None)
            self.sharing_devices.discard(number)
            self._release_node_rules(self.node_rules[number])
            self._free.append(number)

    def _add(self, shape: Shape) -> int:
        self.changes += 1
        self.space.learn(shape.requests)
        part = min(part_of_gpus(shape), BOUND)
        if part:
            self.space.learn(((GPU_RESOURCES[0], part),), trusted=True)
        if self._free:
            number = self._free.pop()
            self.specs[number] = shape
            self.node_rules[number] = self._node_rules_of(shape)
        else:
            number = len(self.specs)
            self.specs.append(shape)
            self.node_rules.append(self._node_rules_of(shape))
            self.uses.append(0)
            self.best_effort.append(False)
        self._number[shape] = number
        if shape.pod_affinity is not None or shape.spread:
            self.with_pod_rules[number] = shape
        self.request = grown(grown(self.request, len(self.space), axis=0), number + 1)
        self.request[: len(self.space), number] = self.space.bounded_vector(shape.requests, pods=1)
        self.charge = grown(grown(self.charge, len(self.space), axis=0), number + 1)
        self.charge[:, number] = self.request[:, number]
        if part:
            self.charge[self.space.index(GPU_RESOURCES[0]), number] += part
            self.sharing_devices.add(number)
        self.best_effort[number] = not part and not any(amount for name, amount in shape.requests if name != "pods")
        return number

    def _node_rules_of(self, shape: Shape) -> Shape:
        rules = node_rules(shape)
        found, uses = self._sharing.setdefault(rules, (rules, [0]))
        uses[0] += 1
        return found

    def _release_node_rules(self, rules: Shape) -> None:
        uses = self._sharing[rules][1]
        uses[0] -= 1
        if not uses[0]:
            del self._sharing[rules]


_EMPTY = Shape()


def node_rules(shape: Shape) -> Shape:
    """The shape as if it asked once for each of its resources, took no ports and had no rules about other pods. Parts of devices
    stay: filters of slices read them, and few shapes have any."""
    return replace(
        shape,
        requests=tuple((name, 1 if amount else 0) for name, amount in shape.requests),
        scoring=_EMPTY.scoring,
        footprint=_EMPTY.footprint,
        limits=_EMPTY.limits,
        parts=_EMPTY.parts,
        ports=_EMPTY.ports,
        pod_affinity=_EMPTY.pod_affinity,
        spread=_EMPTY.spread,
        has_own_spread=_EMPTY.has_own_spread,
        namespace=shape.namespace if shape.volumes is not None or shape.claims else "",
    )
