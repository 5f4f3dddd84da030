"""The queue before the pool: few inside, the body at the last moment, nothing sent while paused."""

from __future__ import annotations

from functools import partial

import pytest
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.kube.write.pool import Done, Outcome, Write
from navarch.live.writers.outbox import Outbox


def write(name: str) -> Write:
    return Write("POST", f"/{name}", b"")


def ignore(outcome: Outcome) -> None:
    return None


def made(name: str) -> tuple[Write, Done]:
    return write(name), ignore


def test_only_a_handful_is_inside_the_pool() -> None:
    submitted = Submitted()
    outbox = Outbox(submitted.pool, room=2)
    for i in range(5):
        outbox.put(partial(made, str(i)))
    assert [each.path for each in submitted.writes] == ["/0", "/1"]
    submitted.end()
    assert [each.path for each in submitted.writes] == ["/0", "/1", "/2"]
    assert len(outbox) == 4


def test_unwanted_writes_are_not_sent() -> None:
    submitted = Submitted()
    outbox = Outbox(submitted.pool, room=1)
    wanted = {"a": True, "b": True}

    def make(name: str) -> tuple[Write, Done] | None:
        return made(name) if wanted[name] else None

    for name in wanted:
        outbox.put(partial(make, name))
    wanted["b"] = False
    submitted.end()
    assert [each.path for each in submitted.writes] == ["/a"]
    assert len(outbox) == 0


def test_while_paused_nothing_goes_out() -> None:
    submitted = Submitted()
    outbox = Outbox(submitted.pool)
    outbox.pause()
    outbox.put(lambda: (write("a"), ignore))
    assert submitted.writes == []
    outbox.resume()
    assert len(submitted.writes) == 1


def test_a_write_put_while_another_is_built_is_sent_after_it() -> None:
    submitted = Submitted()
    outbox = Outbox(submitted.pool)

    def first() -> tuple[Write, Done]:
        outbox.put(lambda: (write("second"), ignore))
        return write("first"), ignore

    outbox.put(first)
    assert [each.path for each in submitted.writes] == ["/first", "/second"]


def test_a_full_queue_drops_and_counts() -> None:
    submitted = Submitted()
    outbox = Outbox(submitted.pool, room=1, longest=2)
    kept = [outbox.put(lambda: (write("a"), ignore)) for _ in range(5)]
    assert kept == [True, True, True, False, False]
    assert outbox.dropped == 2


def test_a_callback_that_raises_does_not_hold_up_later_writes() -> None:
    def fail(outcome: Outcome) -> None:
        raise ValueError(outcome)

    submitted = Submitted()
    outbox = Outbox(submitted.pool, room=1)
    outbox.put(lambda: (write("a"), fail))
    outbox.put(lambda: (write("b"), ignore))
    with pytest.raises(ValueError):
        submitted.end()
    assert [each.path for each in submitted.writes] == ["/a", "/b"]
