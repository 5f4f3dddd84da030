"""What queues held, for the leader's page: the last figures of each step, with the queues below."""

from __future__ import annotations

from navarch.engine.record import QueueFigures
from navarch.live.usage.queue_usage import QueueUsage
from navarch.model.spec import QueueSpec

QUEUES = {"root": QueueSpec("root"), "a": QueueSpec("a", parent="root"), "b": QueueSpec("b", parent="root")}


def figures(**gpus: int) -> list[QueueFigures]:
    return [QueueFigures(name, {}, {"nvidia.com/gpu": 1000 * number}, {}, 0.0) for name, number in gpus.items()]


def told(usage: QueueUsage, now: float) -> dict[str, list[float | None]]:
    return {row.queue: row.held[-3:] for row in usage.page(now).rows}


def test_a_step_has_the_last_figures_of_its_cycles() -> None:
    usage = QueueUsage(lambda: QUEUES)
    usage.take(300.0, figures(a=1, b=2))
    usage.take(310.0, figures(a=3, b=2))
    usage.take(311.0, [])  # a cycle that reports no queues
    assert told(usage, 311.0) == {"a": [None, None, 3], "b": [None, None, 2], "root": [None, None, 5]}
    usage.take(335.0, figures(a=0, b=4))
    assert told(usage, 361.0) == {"a": [3, 0, 0], "b": [2, 4, 4], "root": [5, 4, 4]}
    assert usage.page(361.0).end == 390.0


def test_a_scheduler_that_led_before_does_not_tell_what_it_no_longer_sees() -> None:
    usage = QueueUsage(lambda: QUEUES)
    usage.take(300.0, figures(a=1))
    usage.forget()
    assert usage.page(330.0).rows == []
