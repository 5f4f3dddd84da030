"""The queue tree of the capacity plugin: the ancestors of each queue, its limit, and its deserved amount.

A queue's parent is the one it names, else the root. A queue whose parents do not lead to the root (a missing parent, a cycle) is
broken, and so is everything below it; the rest of the tree works without them. Limits come down from the root: a child may hold
what its parent may, minus the guarantees of its siblings, within its own capability. What a capability does not name is
inherited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from navarch.engine.queue import MOST_LEVELS, ROOT, Queue
from navarch.engine.reasons import Event, Reason
from navarch.model.resources import CPU, MEMORY, UNLIMITED, IntArray
from navarch.plugins.queues.amounts import Amounts, total_of


@dataclass(slots=True)
class Tree:
    ancestors: list[list[int]]
    """By queue number, root first; empty for the root and for broken queues."""
    children: list[list[int]]
    broken: dict[int, Reason]

    def is_leaf(self, number: int) -> bool:
        return not self.children[number]

    def level(self, one: int, other: int) -> int:
        """Index of the last ancestor that both lists share from the root on; 0 when that is the root, or none."""
        level = 0
        for i, (a, b) in enumerate(zip(self.ancestors[one], self.ancestors[other])):
            if a != b:
                break
            level = i
        return level

    def above(self, number: int, depth: int) -> int | None:
        """The ancestor `depth` steps up, 1 for the parent."""
        line = self.ancestors[number]
        return line[-depth] if 0 < depth <= len(line) else None


def flat(queues: Sequence[Queue]) -> Tree:
    return Tree([[] for _ in queues], [[] for _ in queues], {})


def grow(queues: Sequence[Queue]) -> Tree:
    """The tree of queues, by number; `queues` has the root among them."""
    by_name = {queue.name: queue for queue in queues}
    tree = flat(queues)
    for queue in queues:
        line = _line(queue, by_name)
        if isinstance(line, Reason):
            tree.broken[queue.number] = line
        else:
            tree.ancestors[queue.number] = line
            if line:
                tree.children[line[-1]].append(queue.number)
    return tree


def _line(queue: Queue, by_name: Mapping[str, Queue]) -> list[int] | Reason:
    line: list[int] = []
    seen = {queue.name}
    at = queue
    while at.name != ROOT:
        parent = at.spec.parent or ROOT
        if parent not in by_name:
            return _broken(queue, f"queue {at.name} has a parent that does not exist: {parent}")
        if parent in seen:
            return _broken(queue, f"queue {at.name} has itself among its ancestors")
        if len(line) == MOST_LEVELS:
            return _broken(queue, f"queue {queue.name} stands more than {MOST_LEVELS} levels below {ROOT}")
        seen.add(parent)
        at = by_name[parent]
        line.append(at.number)
    return line[::-1]


def _broken(queue: Queue, why: str) -> Reason:
    return Reason("QueueTreeInvalid", why, figures={"queue": queue.name}, undone_by=(Event.QUEUE_CHANGED,))


@dataclass(slots=True)
class Entitlements:
    """By queue number."""

    deserved: list[Amounts]
    guarantee: list[Amounts]
    limit: IntArray
    """(queues, resources): zero where a resource is not to be had at all."""


def flat_entitlements(names: Sequence[str], queues: Sequence[Queue], limits: Sequence[Amounts]) -> Entitlements:
    guarantee = [Amounts.of(names, q.spec.guarantee) for q in queues]
    deserved = [Amounts.of(names, q.spec.deserved).within(limit).at_least(own) for q, limit, own in zip(queues, limits, guarantee)]
    return Entitlements(deserved, guarantee, _matrix(limits, len(names)))


def tree_entitlements(names: Sequence[str], queues: Sequence[Queue], tree: Tree, total: IntArray) -> Entitlements:
    """Limits from the root down. What a broken queue may hold is nothing."""
    capability = [Amounts.of(names, q.spec.capability) for q in queues]
    guarantee = [Amounts.of(names, q.spec.guarantee) for q in queues]
    deserved = [Amounts.of(names, q.spec.deserved).at_least(own) for q, own in zip(queues, guarantee)]
    nothing = Amounts.of(names, None)
    limit = [nothing] * len(queues)
    root = next(q.number for q in queues if q.name == ROOT)
    everything = _everything(total)
    if capability[root].is_empty:
        capability[root] = everything
    else:
        capability[root] = _inherit(capability[root], everything)
    limit[root] = capability[root]
    waiting = [root]
    while waiting:
        at = waiting.pop()
        children = tree.children[at]
        kept = total_of((guarantee[c] for c in children), len(names))
        if at == root:
            guarantee[root], deserved[root] = kept, total_of((deserved[c] for c in children), len(names))
        common = limit[at].beyond(kept)
        for child in children:
            capability[child] = _inherit(capability[child], capability[at])
            limit[child] = common.plus(guarantee[child]).within(capability[child])
        waiting += children
    return Entitlements(deserved, guarantee, _matrix(limit, len(names)))


def _everything(total: IntArray) -> Amounts:
    """No limit on cpu, memory and whatever some node has."""
    given = total > 0
    given[[CPU, MEMORY]] = True
    return Amounts(np.where(given, UNLIMITED, 0), given)


def _inherit(own: Amounts, parent: Amounts) -> Amounts:
    """Own amounts where they are named (cpu and memory: above zero), else the parent's."""
    named = own.given.copy()
    named[[CPU, MEMORY]] = own.values[[CPU, MEMORY]] > 0
    return Amounts(np.where(named, own.values, parent.values), own.given | parent.given)


def _matrix(amounts: Sequence[Amounts], resources: int) -> IntArray:
    rows = [each.values for each in amounts]
    return np.array(rows, dtype=np.int64).reshape(len(rows), resources)
