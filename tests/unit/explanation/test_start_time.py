"""Start times beside the search: the same answer, from a process that ends."""

from __future__ import annotations

import pytest

from navarch.explanation.explain import explain_read, reading
from navarch.explanation.start_time import ForkedAnswer, StartTimeQuestion
from navarch.testing.builders import node, pod, pod_group

NOW = 100_000.0
pytestmark = pytest.mark.skipif(not ForkedAnswer.is_possible(), reason="needs fork and two cores")


def question() -> StartTimeQuestion:
    runs = pod("runs-0").cpu(4).in_group("runs").on("n").phase("Running")
    runs.child("status")["startTime"] = "1970-01-02T03:00:00Z"
    group = pod_group("runs").annotate("navarch.io/expected-duration", "1h").phase("Running")
    objects = [node("n").cpu(4), group, runs, pod_group("waits"), pod("waits-0").cpu(4).in_group("waits")]
    return StartTimeQuestion(reading(objects, "fifo", NOW).run, "default/waits", (), {}, 20)


def test_a_process_beside_the_search_gives_the_same_answer() -> None:
    asked = question()
    beside = ForkedAnswer(asked, 600.0).answer()
    here = asked.answer(600.0)
    assert beside == here and here.known["default/waits"].p50 == 97_200.0 + 3600.0


def test_a_process_that_is_not_needed_is_ended() -> None:
    beside = ForkedAnswer(question(), 600.0)
    beside.stop()
    assert not beside.runs


def test_a_large_cluster_is_forecast_beside_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("navarch.explanation.start_time.STEPS_FROM", 0)
    runs = pod("runs-0").cpu(4).in_group("runs").on("n").phase("Running")
    runs.child("status")["startTime"] = "1970-01-02T03:00:00Z"
    group = pod_group("runs").annotate("navarch.io/expected-duration", "1h").phase("Running")
    objects = [node("n").cpu(4), group, runs, pod_group("waits"), pod("waits-0").cpu(4).in_group("waits")]
    read = reading(objects, "fifo", NOW)
    found = explain_read(read, "waits", seconds=600.0, may_fork=True)
    assert found.eta is not None and found.eta.p50 == "1970-01-02T04:00:00Z"
    assert explain_read(read, "runs", seconds=600.0, may_fork=True).eta_reason == "it runs"
