"""Whether a plugin's answers have the types that its extension points expect, for `check_plugin`.

An answer of the wrong type often fails late: text instead of a Reason refuses the job, and fails only when its message is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Vote
from navarch.engine.reasons import Reason

Ask = Callable[[Any, Job, TaskClass], object]
_FLAG = (bool, np.bool_)
_COUNT = (int, np.integer)
_REASON = (Reason, type(None))
EXPECTED: dict[str, tuple[Ask, tuple[type, ...], str]] = {
    "job_valid": (lambda p, job, task: p.job_valid(job), _REASON, "a Reason or None"),
    "job_enqueueable": (lambda p, job, task: p.job_enqueueable(job), (Vote, Reason), "a Vote or a Reason"),
    "job_ready": (lambda p, job, task: p.job_ready(job), _FLAG, "true or false"),
    "job_pipelined": (lambda p, job, task: p.job_pipelined(job), (Vote,), "a Vote"),
    "job_starving": (lambda p, job, task: p.job_starving(job), _FLAG, "true or false"),
    "overused": (lambda p, job, task: p.overused(job.queue), _REASON, "a Reason or None"),
    "allocatable": (lambda p, job, task: p.allocatable(job.queue, task, 1), (*_COUNT, Reason), "a number or a Reason"),
    "preemptive": (lambda p, job, task: p.preemptive(job.queue, task), _REASON, "a Reason or None"),
    "pre_predicate": (lambda p, job, task: p.pre_predicate(task), _REASON, "a Reason or None"),
}
"""Point -> how to call it, the expected types, and their description."""


def check_answers(plugin: Plugin, points: tuple[str, ...], job: Job, task: TaskClass) -> Iterator[str]:
    """One message for each point whose answer has the wrong type."""
    for point, (ask, kinds, words) in EXPECTED.items():
        if point in points:
            answer = ask(plugin, job, task)
            if not isinstance(answer, kinds):
                yield f"{point} answers with {answer!r}; expected {words}"
