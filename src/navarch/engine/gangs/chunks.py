"""Chunks: the tasks of a job that are placed together, or evicted together.

A part below its minimum reaches it in one chunk or not at all; above the minimum a job grows task by task. It shrinks in the
reverse order: single surplus tasks first, then whole surplus parts, then all remaining tasks at once.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from navarch.engine.gangs.gang_tree import GangTree, Part

if TYPE_CHECKING:
    from navarch.engine.session import Session

NOTHING: frozenset[int] = frozenset()


def next_to_place(session: Session, tree: GangTree, evicted: Container[int] = NOTHING) -> list[int]:
    """Tasks to place together. `evicted`: tasks that a search took from their nodes and may put back."""
    return _place(session, tree, tree.root, evicted)


def _place(session: Session, tree: GangTree, part: Part, evicted: Container[int]) -> list[int]:
    if not part.children:
        return _of_leaf(tree, part, evicted)
    if len(part.children) == 1 and not part.children[0].children:  # the usual job: one leaf
        return _of_leaf(tree, part.children[0], evicted)
    children = session.parts_in_order(tree, part.children)
    if tree.satisfied(part):
        return next((chunk for child in children if (chunk := _place(session, tree, child, evicted))), [])
    first = children[: tree.required(part)]
    return [task for child in first if not tree.satisfied(child) for task in _place(session, tree, child, evicted)]


def _of_leaf(tree: GangTree, leaf: Part, evicted: Container[int]) -> list[int]:
    here = tree.counts_of(leaf)
    candidates = here.pending
    if evicted and here.releasing:
        back = {task for task in here.releasing if task in evicted}
        if back:
            waiting = set(candidates)
            candidates = [task for task in leaf.tasks if task in back or task in waiting]
    missing = tree.required(leaf) - len(here.active)
    return candidates[: missing if missing > 0 else 1]


def next_to_evict(session: Session, tree: GangTree) -> list[int]:
    """Tasks to evict together."""
    if len(tree.leaves) == 1:  # the usual job
        active = tree.active
        return active[-1:] if len(active) > tree.required(tree.leaves[0]) else active
    return _surplus(session, tree, tree.root) or tree.active


def _surplus(session: Session, tree: GangTree, part: Part) -> list[int]:
    if not part.children:
        active = tree.counts_of(part).active
        return active[-1:] if len(active) > tree.required(part) else []
    satisfied = tree.count(part)
    if not satisfied:
        return []
    children = session.parts_in_order(tree, part.children)[::-1]
    for child in children:
        chunk = _surplus(session, tree, child)
        if chunk:
            return chunk
    if satisfied > tree.required(part):
        for child in children:
            chunk = [task for leaf in child.leaf_parts() for task in tree.counts_of(leaf).active]
            if chunk:
                return chunk
    return []
