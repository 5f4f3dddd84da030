"""What queues held, step by step."""

from __future__ import annotations

from navarch.web.cluster.queue_history import STEPS, QueueHistory


def held(history: QueueHistory, now: float, last: int = 4) -> dict[tuple[str, str], list[float | None]]:
    return {(row["queue"], row["resource"]): row["held"][-last:] for row in history.to_dict(now, None)["rows"]}


def test_a_step_has_its_last_value_and_a_quiet_step_that_of_the_one_before() -> None:
    history = QueueHistory()
    history.add(300.0, {"a": {"gpu": 1.0}})
    history.add(315.0, {"a": {"gpu": 2.0}})
    assert held(history, 329.0) == {("a", "gpu"): [None, None, None, 2.0]}
    history.add(395.0, {"a": {"gpu": 5.0}})
    assert held(history, 400.0) == {("a", "gpu"): [2.0, 2.0, 2.0, 5.0]}
    assert held(history, 425.0) == {("a", "gpu"): [2.0, 2.0, 5.0, 5.0]}
    assert history.to_dict(425.0, None)["end"] == 450
    assert held(history, 400.0 + 30 * STEPS, last=1) == {("a", "gpu"): [5.0]}


def test_a_resource_that_is_no_longer_held_is_zero_and_a_queue_that_is_gone_is_not_told() -> None:
    history = QueueHistory()
    history.add(300.0, {"a": {"gpu": 1.0, "cpu": 2.0, "pods": 3.0}, "b": {"gpu": 1.0}})
    history.add(330.0, {"a": {"cpu": 4.0}})
    assert held(history, 330.0, last=2) == {("a", "cpu"): [2.0, 4.0], ("a", "gpu"): [1.0, 0.0]}


def test_only_queues_that_a_viewer_sees_and_those_asked_for_are_told() -> None:
    history = QueueHistory()
    history.add(300.0, {name: {"gpu": 1.0, "cpu": 1.0} for name in "abc"})

    def told(**asked: str) -> list[tuple[str, str]]:
        return [(row["queue"], row["resource"]) for row in history.to_dict(300.0, {"a", "b"}, **asked)["rows"]]

    assert told() == [("a", "cpu"), ("a", "gpu"), ("b", "cpu"), ("b", "gpu")]
    assert told(queue="b") == [("b", "cpu"), ("b", "gpu")]
    assert told(resource="gpu", queue="c") == []
