"""The order in which waiting jobs are taken, and in which running ones are offered as victims, before anything is placed."""

from __future__ import annotations

import pytest
from tests.parity.kai_counts import CYCLES, has_order
from tests.parity.kai_session import Case, session_of
from tests.parity.recorded import recorded_cases

from navarch.actions.kai.queue_forest import QueueForest
from navarch.engine.gangs.chunks import next_to_place
from navarch.engine.job import Job


def names(forest: QueueForest) -> list[str]:
    out: list[str] = []
    while (job := forest.pop()) is not None:
        out.append(job.spec.name)
    return out


@pytest.mark.parametrize("case", [case for name in CYCLES for case in recorded_cases(f"kai/{name}.jsonl", has_order)])
def test_order_of_jobs(case: Case) -> None:
    session = session_of(case)
    jobs = session.all_jobs()

    def chunk(job: Job) -> list[int]:
        return next_to_place(session, job.tree)

    waiting = [job for job in jobs if job.tree.has_pending and job.tree.could_start()]
    assert names(QueueForest(session, waiting, chunk)) == case["jobOrder"]["pending"]
    running = [job for job in jobs if job.spec.preemptable and job.tree.active]
    assert names(QueueForest(session, running, lambda job: job.tree.active, victims=True)) == case["jobOrder"]["victims"]
