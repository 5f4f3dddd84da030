"""enqueue: admits waiting jobs, queue by queue, best job first.

A rejected job is skipped for this cycle and the next one is tried. A job without minimum resources is admitted without a vote.
"""

from __future__ import annotations

from navarch.actions.job_queues import JobHeap, QueueHeap
from navarch.engine.action import Action


class Enqueue(Action):
    """Admits pending jobs to their queues"""

    name = "enqueue"

    def execute(self) -> None:
        session = self.session
        waiting: dict[str, JobHeap] = {}
        for job in session.unadmitted_jobs():
            waiting.setdefault(job.queue.name, JobHeap(session)).push(job)
        queues = QueueHeap(session, (session.queues[name] for name in waiting))
        while (queue := queues.pop()) is not None:
            best = waiting[queue.name].pop()
            if best is None:
                continue
            reason = None if best.spec.min_resources is None else session.job_enqueueable(best)
            if reason is None:
                session.job_enqueued(best)
                best.phase = "Inqueue"
            else:
                best.refuse(reason)
            queues.push(queue)
