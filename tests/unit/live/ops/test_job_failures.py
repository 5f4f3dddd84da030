"""What operators are told of jobs on which a rule failed."""

from __future__ import annotations

import logging

import pytest

from navarch.engine.record import Bind, CycleRecord, JobFailure
from navarch.live.ops.job_failures import JobFailures
from navarch.live.ops.metrics import Metrics


def failure(job: str, error: str = "ValueError") -> JobFailure:
    return JobFailure(job, "plugin p", error, f"Traceback of {job}")


def test_the_traceback_is_logged_once_and_every_failure_counted(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    failures = JobFailures(metrics.job_failures, lambda job: True)
    with caplog.at_level(logging.ERROR):
        for record in (CycleRecord(failures=[failure("a/x"), failure("a/y")]), CycleRecord(failures=[failure("a/x")])):
            failures.take(record)
    assert [record.getMessage() for record in caplog.records] == ["plugin p failed on job a/x, which is set aside\nTraceback of a/x"]
    assert metrics.registry.get_sample_value("navarch_job_failures_total", {"where": "plugin p"}) == 3


def test_readyz_counts_jobs_until_they_are_placed_or_gone() -> None:
    there = {"a/x", "a/y"}
    failures = JobFailures(Metrics().job_failures, there.__contains__)
    failures.take(CycleRecord(failures=[failure("a/x"), failure("a/y")]))
    assert failures.notes() == ["2 jobs are set aside: plugin p failed"]
    failures.take(CycleRecord(binds=[Bind("a/x-0", "n", "u", "a/x")]))
    assert failures.notes() == ["1 job is set aside: plugin p failed"]
    there.clear()
    assert failures.notes() == []
