"""shuffle: evicts running tasks that plugins name, so that they are placed again."""

from __future__ import annotations

import numpy as np

from navarch.engine.action import Action
from navarch.engine.points.protocols import VictimTasks
from navarch.model.status import TaskStatus


class Shuffle(Action):
    """Evicts the running tasks that plugins name"""

    name = "shuffle"

    def execute(self) -> None:
        session = self.session
        if not session.implementing(VictimTasks):
            return
        tasks = session.snapshot.tasks
        running = np.flatnonzero(tasks.alive & (session.status == TaskStatus.RUNNING) & (session.node >= 0) & (tasks.job >= 0))
        running = running[session.snapshot.jobs.taking_part[tasks.job[running]]]
        candidates = sorted(running.tolist(), key=lambda t: session.task(t).key)
        candidates = [t for t in candidates if session.job_of(t) is not None]
        statement = session.statement()
        for victim in session.victim_tasks(candidates):
            statement.evict(victim, reason="shuffle")
        statement.commit()
