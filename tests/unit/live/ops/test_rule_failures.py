"""What operators are told of jobs and nodes on which a rule failed."""

from __future__ import annotations

import logging

import pytest

from navarch.engine.record import Bind, CycleRecord, JobFailure, NodeFailure, PluginFailure
from navarch.live.ops.metrics import Metrics
from navarch.live.ops.rule_failures import RuleFailures


def failure(job: str, error: str = "ValueError") -> JobFailure:
    return JobFailure(job, "plugin p", error, f"Traceback of {job}")


def test_the_traceback_is_logged_once_and_every_failure_counted(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    failures = RuleFailures(metrics.job_failures, metrics.node_failures, metrics.plugin_failures, lambda job: True)
    with caplog.at_level(logging.ERROR):
        for record in (CycleRecord(failures=[failure("a/x"), failure("a/y")]), CycleRecord(failures=[failure("a/x")])):
            failures.take(record)
    assert [record.getMessage() for record in caplog.records] == ["plugin p failed on job a/x, which is set aside\nTraceback of a/x"]
    assert metrics.registry.get_sample_value("navarch_job_failures_total", {"where": "plugin p"}) == 3


def test_readyz_counts_jobs_until_they_are_placed_or_gone() -> None:
    there = {"a/x", "a/y"}
    metrics = Metrics()
    failures = RuleFailures(metrics.job_failures, metrics.node_failures, metrics.plugin_failures, there.__contains__)
    failures.take(CycleRecord(failures=[failure("a/x"), failure("a/y")]))
    assert failures.notes() == ["2 jobs are set aside: plugin p failed"]
    failures.take(CycleRecord(binds=[Bind("a/x-0", "n", "u", "a/x")]))
    assert failures.notes() == ["1 job is set aside: plugin p failed"]
    there.clear()
    assert failures.notes() == []


def test_a_node_is_told_counted_and_named_on_readyz_while_it_is_left_out() -> None:
    metrics, told = Metrics(), list[str]()
    failures = RuleFailures(
        metrics.job_failures, metrics.node_failures, metrics.plugin_failures, lambda job: True, lambda node, message: told.append(node)
    )
    failures.take(CycleRecord(node_failures=[NodeFailure("n1", "plugin p", "ValueError")]))
    assert told == ["n1"] and failures.notes() == ["1 node is left out: plugin p failed"]
    failures.take(CycleRecord(left_out_nodes=["n1"]))
    assert told == ["n1"] and failures.notes() == ["1 node is left out: plugin p failed"]
    failures.take(CycleRecord())
    assert failures.notes() == []
    assert metrics.registry.get_sample_value("navarch_node_failures_total", {"where": "plugin p"}) == 1


def test_a_plugin_that_fails_is_logged_once_counted_and_named_on_readyz_while_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    failures = RuleFailures(metrics.job_failures, metrics.node_failures, metrics.plugin_failures, lambda job: True)
    record = CycleRecord(plugin_failures=[PluginFailure("p", "plugin p (p.py:7)", "OSError: gone", "Traceback of p")])
    with caplog.at_level(logging.ERROR):
        failures.take(record)
        failures.take(record)
    assert [each.getMessage() for each in caplog.records] == [
        "plugin p (p.py:7) failed on this cycle: what needs its consent is refused\nTraceback of p"
    ]
    assert failures.notes() == ["plugin p (p.py:7) failed: what needs its consent is refused"]
    assert metrics.registry.get_sample_value("navarch_plugin_failures_total", {"where": "plugin p (p.py:7)"}) == 2
    failures.take(CycleRecord())
    assert failures.notes() == []
