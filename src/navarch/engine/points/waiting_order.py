"""The order in which waiting jobs would be tried: queues by the plugins' order, and in each queue its jobs.

A cycle serves queues in turns, and what one gets may put another first. This is the order before anything was placed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key

from navarch.engine.job import Job
from navarch.engine.session import Session


def waiting_order(session: Session, jobs: Iterable[Job]) -> list[Job]:
    jobs = list(jobs)
    rank = cmp_to_key(session.queue_order)
    queues = sorted({job.queue.name for job in jobs}, key=lambda name: rank(session.queues[name]))
    place = {name: number for number, name in enumerate(queues)}
    return sorted(jobs, key=lambda job: (place[job.queue.name], session.job_order(job)))
