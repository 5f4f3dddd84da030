"""Shortest first: jobs by how long their owners expect them to run.

The expected duration is what the group says (annotation `navarch.io/expected-duration`). Jobs that do not say are taken to run for
`default`, or come last where the policy gives none.
"""

from __future__ import annotations

import math

from navarch.engine.arguments import Argument, Arguments
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.points.order_key import OrderKey
from navarch.model.spec import JobSpec


class ShortestFirst(Plugin):
    """Orders jobs by how long they are expected to run, shortest first"""

    name = "shortest-first"
    turns_in_one_step = True
    arguments = (Argument("default", "duration", None, "expected duration of jobs that do not say; none: they come last"),)
    waits_for_room = True

    def next_cycle(self) -> bool:
        return True

    def job_order(self, job: Job) -> OrderKey:
        return self.waiting_order(job.spec, self.given)

    @staticmethod
    def waiting_order(spec: JobSpec, given: Arguments) -> OrderKey:
        if spec.expected_duration is not None:
            return spec.expected_duration
        default = given["default"]
        return float(default) if isinstance(default, int | float) else math.inf
