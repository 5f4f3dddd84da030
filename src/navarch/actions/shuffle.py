"""shuffle: evicts running tasks that plugins name, so that they are placed again."""

from __future__ import annotations

import numpy as np

from navarch.engine.action import Action
from navarch.model.status import TaskStatus


class Shuffle(Action):
    """Evicts the running tasks that plugins name"""

    name = "shuffle"

    def execute(self) -> None:
        session = self.session
        there = session.snapshot.tasks.alive & (session.status == TaskStatus.RUNNING) & (session.node >= 0)
        running = [t for t in np.flatnonzero(there).tolist() if session.job_of(t) is not None]
        candidates = sorted(running, key=lambda t: session.task(t).key)
        statement = session.statement()
        for victim in session.victim_tasks(candidates):
            statement.evict(victim, reason="shuffle")
        statement.commit()
