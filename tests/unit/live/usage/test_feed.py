from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from navarch.live.usage.feed import UsageFeed, open_source
from navarch.live.usage.history import HistorySource
from navarch.live.usage.params import UsageConfig, UsageConfigError, UsageParams
from navarch.live.usage.prometheus import PrometheusSource
from navarch.live.usage.source import Usage, UsageError, put_usage
from navarch.model.cluster import Cluster
from navarch.model.objects.queue_usage import QUEUE_USAGE

PARAMS = UsageParams(fetch_interval=60, staleness=150)
ANSWER: Usage = {"a": {"gpu": 0.5}}


class Script:
    """A source that answers as the script says: usage, an error to raise, or None for never."""

    def __init__(self, *answers: Usage | Exception | None) -> None:
        self.answers: Iterator[Usage | Exception | None] = iter(answers)
        self.closed = False

    async def fetch(self, now: float) -> Usage:
        answer = next(self.answers, None)
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None
        return answer

    async def close(self) -> None:
        self.closed = True


def feed(*answers: Usage | Exception | None) -> UsageFeed:
    loop = asyncio.get_running_loop()
    return UsageFeed(Script(*answers), PARAMS, loop.time)


@pytest.mark.looptime
async def test_a_silent_source_is_not_waited_for() -> None:
    usage = feed(None)
    usage.start()
    await asyncio.sleep(3600)
    assert (usage.reading().fetched, usage.reading().usage) == (None, {})
    assert str(usage.reading()) == "usage over time is not known yet"
    await usage.close()


@pytest.mark.looptime
async def test_a_failing_source_is_asked_again_and_what_is_known_stays() -> None:
    usage = feed(ANSWER, UsageError("down"), UsageError("down"), {"b": {"gpu": 1.0}})
    usage.start()
    await asyncio.sleep(61)
    assert usage.reading().usage == ANSWER
    assert (usage.reading().stale, usage.reading().error) == (False, "down")
    await asyncio.sleep(99)
    assert usage.reading().stale
    assert str(usage.reading()) == "usage over time is old and used all the same: down"
    await asyncio.sleep(30)
    assert usage.reading().usage == {"b": {"gpu": 1.0}} and str(usage.reading()) == ""
    await usage.close()


@pytest.mark.looptime
async def test_an_unexpected_error_does_not_end_the_feed() -> None:
    usage = feed(ANSWER, ZeroDivisionError("surprise"), {"b": {"gpu": 1.0}})
    usage.start()
    await asyncio.sleep(61)
    assert usage.reading().error == "ZeroDivisionError: surprise"
    await asyncio.sleep(60)
    assert usage.reading().usage == {"b": {"gpu": 1.0}}
    await usage.close()
    assert isinstance(usage.source, Script) and usage.source.closed


async def test_the_policy_chooses_the_source() -> None:
    built_in = open_source(UsageConfig("builtin", ":memory:"))
    assert isinstance(built_in, HistorySource)
    await built_in.close()
    assert isinstance(open_source(UsageConfig("prometheus", "http://localhost")), PrometheusSource)
    with pytest.raises(UsageConfigError, match="clientType: found 'fake', expected one of builtin, prometheus"):
        open_source(UsageConfig("fake", "x"))


def test_a_snapshot_holds_what_the_feed_knows() -> None:
    cluster = Cluster()
    put_usage(cluster, {"a": {"gpu": 0.5}, "b": {"gpu": 0.1}})
    put_usage(cluster, {"a": {"gpu": 0.7}})
    assert cluster.snapshot().objects[QUEUE_USAGE] == {("", "a"): {"gpu": 0.7}}
