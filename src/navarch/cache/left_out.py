"""Pods that no cycle looks at are told why: the group they name does not exist, or its queue does not.

Such jobs are not in a session, so no decision speaks of them, and without this their pods would wait in silence. Once a second
the job table is asked in a few vector operations (150 us for 10,000 jobs); only who is left out is walked through, and told again
every ten seconds at most. What appears in time is placed or refused by a cycle, whose word is the newer one.
"""

from __future__ import annotations

import numpy as np

from navarch.cache.mirror import Mirror
from navarch.cache.pod_status import WORDS_PAUSE, PodStatuses
from navarch.dialects.upstream_workloads import absence
from navarch.model.cluster import Cluster
from navarch.model.status import TaskStatus


class LeftOut:
    def __init__(self, mirror: Mirror, pods: PodStatuses) -> None:
        self._mirror = mirror
        self._pods = pods
        self._told: dict[str, tuple[str, float]] = {}
        """Job -> what its pods were told, and when."""

    def look(self, now: float) -> None:
        """`now` is the event loop's time."""
        cluster = self._mirror.cluster
        found = {}
        for row in left_out(cluster):
            key, spec = cluster.jobs.keys[row], cluster.jobs.specs[row]
            text = absence(key) if spec is None else f'the queue "{spec.queue}" does not exist'
            before, at = self._told.get(key, ("", 0.0))
            if before == text and now - at < WORDS_PAUSE:
                found[key] = (text, at)
                continue
            found[key] = (text, now)
            for task in [cluster.tasks.specs[each] for each in cluster.jobs.tasks[row]]:
                if task is not None and task.status == TaskStatus.PENDING:
                    self._pods.refuse(task, "Unschedulable", text, now)
        self._told = found


def left_out(cluster: Cluster) -> list[int]:
    """Rows of the jobs with waiting pods that have no spec, or name a queue that nobody made."""
    jobs = cluster.jobs
    known = np.zeros(len(jobs.queue_names) + 1, dtype=bool)  # the last one is for -1: there is no spec
    for name, number in jobs.queue_names.items():
        known[number] = name in cluster.queues
    rows: list[int] = np.flatnonzero((jobs.counts[:, TaskStatus.PENDING] > 0) & ~known[jobs.queue]).tolist()
    return rows
