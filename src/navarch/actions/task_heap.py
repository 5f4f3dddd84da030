"""Taking the next tasks of a job, from a list that ends with the first.

The list is sorted once, because most orders do not change while a job is placed. Where the policy compares tasks again after each
placement, the list is a binary heap, stored from its end: the root is the last element. A heap keeps its invariant only while keys
stay. With moving keys, the next task depends on the comparisons made so far, so the steps of the heap are part of the rule.
"""

from __future__ import annotations

from navarch.engine.session import Session


def take_next(session: Session, tasks: list[int], count: int, *, moving: bool) -> list[int]:
    """Remove the next `count` tasks. `moving`: tasks are compared again after each one; a list sorted in reverse is a heap to begin
    with."""
    if not moving:
        taken = tasks[: -count - 1 : -1]
        del tasks[-count:]
        return taken
    taken = []
    for _ in range(count):
        taken.append(tasks.pop())
        if len(tasks) > 1:
            tasks.append(tasks.pop(0))
            _sift_down(session, tasks)
    return taken


def _sift_down(session: Session, tasks: list[int]) -> None:
    """Move the root down until no child comes before it. Node `i` of the heap is at the index `-1 - i`."""
    node, size = 0, len(tasks)
    while (child := 2 * node + 1) < size:
        if child + 1 < size and session.compare_tasks(tasks[-2 - child], tasks[-1 - child]) < 0:
            child += 1
        if session.compare_tasks(tasks[-1 - child], tasks[-1 - node]) >= 0:
            return
        tasks[-1 - child], tasks[-1 - node] = tasks[-1 - node], tasks[-1 - child]
        node = child
