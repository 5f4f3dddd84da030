"""The statuses of a task, and how each affects a node's figures.

The values are dense integers because statuses are a column (`TaskTable.status`) and index the per-job count matrix.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class TaskStatus(IntEnum):
    PENDING = 0
    ALLOCATED = 1
    """Given idle resources in this cycle, not yet handed to binding."""
    PIPELINED = 2
    """Promised resources that are being released."""
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9


STATUS_NAMES = tuple(status.name.capitalize() for status in TaskStatus)
STATUS_COUNT = len(TaskStatus)


def _statuses(*statuses: TaskStatus) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    flags = np.zeros(STATUS_COUNT, dtype=bool)
    flags[list(statuses)] = True
    return flags


S = TaskStatus
IS_ALLOCATED = _statuses(S.ALLOCATED, S.BINDING, S.BOUND, S.RUNNING)
"""Counts in a job's and a queue's allocated sums."""
IS_ACTIVE = _statuses(S.ALLOCATED, S.PIPELINED, S.BINDING, S.BOUND, S.RUNNING)
"""Holds a node, or is promised one."""
ON_NODE = _statuses(S.ALLOCATED, S.BINDING, S.BOUND, S.RUNNING, S.RELEASING, S.UNKNOWN)
"""Occupies its node: used grows by its request; RELEASING grows `releasing` too. PIPELINED only grows `pipelined`."""
IS_TERMINAL = _statuses(S.SUCCEEDED, S.FAILED)
COUNTS_READY = _statuses(S.ALLOCATED, S.BINDING, S.BOUND, S.RUNNING, S.SUCCEEDED)
PREEMPTABLE = _statuses(S.BOUND, S.RUNNING)
