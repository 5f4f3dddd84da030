"""What queues held, step by step."""

from __future__ import annotations

from navarch.views.queue_history import STEPS, QueueHistory


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


def test_what_is_not_known_is_filled_from_another_history() -> None:
    before, now = QueueHistory(), QueueHistory()
    before.add(300.0, {"a": {"gpu": 1.0}, "b": {"gpu": 4.0}, "gone": {"gpu": 9.0}})
    before.add(330.0, {"a": {"gpu": 2.0}, "b": {"gpu": 4.0}, "gone": {"gpu": 9.0}})
    before.add(360.0, {"a": {"gpu": 7.0}, "b": {}, "gone": {"gpu": 9.0}})
    now.add(390.0, {"a": {"gpu": 3.0}, "b": {}})
    told = before.to_dict(365.0)
    now.fill(told["end"], {(row["queue"], row["resource"]): row["held"] for row in told["rows"]})
    # The newest step of `a` is its own value; of the queue that holds nothing now the earlier steps are the other's.
    assert held(now, 395.0) == {("a", "gpu"): [1.0, 2.0, 7.0, 3.0], ("b", "gpu"): [4.0, 4.0, 0.0, 0.0]}
    now.add(420.0, {"a": {"gpu": 3.0}, "b": {}})
    assert held(now, 420.0, last=2) == {("a", "gpu"): [3.0, 3.0], ("b", "gpu"): [0.0, 0.0]}


def test_a_history_that_is_ahead_or_far_behind_fills_the_same_steps() -> None:
    ahead, now, old = QueueHistory(), QueueHistory(), QueueHistory()
    now.add(300.0, {"a": {"gpu": 3.0}})
    ahead.add(270.0, {"a": {"gpu": 1.0}})
    told = ahead.to_dict(360.0)
    now.fill(told["end"], {("a", "gpu"): told["rows"][0]["held"]})
    assert held(now, 300.0, last=3) == {("a", "gpu"): [None, 1.0, 3.0]}
    old.add(300.0, {"a": {"gpu": 8.0}})
    later = QueueHistory()
    later.add(300.0 + 30 * STEPS, {"a": {"gpu": 3.0}})
    told = old.to_dict(300.0)
    later.fill(told["end"], {("a", "gpu"): told["rows"][0]["held"]})
    assert held(later, 300.0 + 30 * STEPS, last=STEPS) == {("a", "gpu"): [None] * (STEPS - 1) + [3.0]}
