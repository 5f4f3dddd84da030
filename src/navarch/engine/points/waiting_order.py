"""The order in which waiting jobs would be tried: queues by the plugins' order, and in each queue its jobs.

A cycle serves queues in turns, and what one gets may put another first. This is the order before anything was placed. Queues that no
plugin tells apart take turns by how long their first jobs have waited (`Semantics.longest_wait_orders_queues`).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from functools import cmp_to_key

from navarch.engine.job import Job
from navarch.engine.session import Session


def waiting_order(session: Session, jobs: Iterable[Job]) -> list[Job]:
    of_queue: dict[str, list[Job]] = {}
    for job in jobs:
        of_queue.setdefault(job.queue.name, []).append(job)
    rank = cmp_to_key(session.queue_order)
    alike: list[list[list[Job]]] = []
    """Jobs of each queue in order, for each group of queues that are not told apart."""
    last = None
    for queue in sorted((session.queues[name] for name in of_queue), key=rank):
        waiting = sorted(of_queue[queue.name], key=session.job_order)
        takes_turns = session.semantics.longest_wait_orders_queues and last is not None and not session.queue_opinion(last, queue)
        if takes_turns:
            alike[-1].append(waiting)
        else:
            alike.append([waiting])
        last = queue
    return [job for queues in alike for job in _by_longest_wait(queues)]


def _by_longest_wait(queues: list[list[Job]]) -> Iterable[Job]:
    """Jobs of queues that take turns: always the first one of the queue whose first one has waited longest."""
    if len(queues) == 1:
        yield from queues[0]
        return
    first = [(waiting[0].spec.created, number, 0) for number, waiting in enumerate(queues)]
    heapq.heapify(first)
    while first:
        _, number, place = first[0]
        yield queues[number][place]
        if place + 1 < len(queues[number]):
            heapq.heapreplace(first, (queues[number][place + 1].spec.created, number, place + 1))
        else:
            heapq.heappop(first)
