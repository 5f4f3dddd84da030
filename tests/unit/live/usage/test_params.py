from __future__ import annotations

import datetime

import pytest

from navarch.live.usage.cron import Cron
from navarch.live.usage.params import METRICS, UsageConfigError, UsageWindow, read_config

NOON = datetime.datetime(2026, 3, 18, 12, 0, 30, tzinfo=datetime.UTC)
"""A Wednesday."""


def stamp(text: str) -> float:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()


@pytest.mark.parametrize(
    ("cron", "last"),
    [
        ("* * * * *", "2026-03-18T12:00"),
        ("0 0 * * 0", "2026-03-15T00:00"),
        ("0 0 * * 7", "2026-03-15T00:00"),
        ("0 0 * * mon", "2026-03-16T00:00"),
        ("30 13 * * *", "2026-03-17T13:30"),
        ("*/25 11 * * *", "2026-03-18T11:50"),
        ("0 0 1 * *", "2026-03-01T00:00"),
        ("0 0 31 * *", "2026-01-31T00:00"),
        ("15 6 29 feb *", "2024-02-29T06:15"),
        ("0 8-10,14 * * 1-5", "2026-03-18T10:00"),
        ("0 0 1 * 2", "2026-03-17T00:00"),
        ("10/20 * * * *", "2026-03-18T11:50"),
        ("@weekly", "2026-03-15T00:00"),
        ("@yearly", "2026-01-01T00:00"),
    ],
)
def test_the_last_time_a_cron_names(cron: str, last: str) -> None:
    assert Cron.parse(cron).last(NOON.timestamp()) == stamp(last)


@pytest.mark.parametrize(
    ("cron", "complaint"),
    [
        ("* * * *", "expected five fields"),
        ("60 * * * *", "minute: found '60', expected a number from 0 to 59"),
        ("0 5-3 * * *", "hour: found '5-3', expected a range that runs upwards"),
        ("0 0 * nov-foo *", "month: found 'foo'"),
        ("0 0 30 2 *", "a time that never comes"),
    ],
)
def test_a_cron_that_cannot_be_is_refused_with_its_field(cron: str, complaint: str) -> None:
    usage = {"clientType": "builtin", "connectionString": "x", "usageParams": {"windowType": "cron", "cronString": cron}}
    with pytest.raises(UsageConfigError, match=complaint):
        read_config(usage, {})


def test_windows_begin_where_their_kind_says() -> None:
    now = NOON.timestamp()
    assert UsageWindow("sliding", size=3600).begin(now) == now - 3600
    assert UsageWindow("tumbling", size=86400, start=stamp("2026-01-01T06:00")).begin(now) == stamp("2026-03-18T06:00")
    assert UsageWindow("cron", cron=Cron.parse("@daily")).begin(now) == stamp("2026-03-18T00:00")
    assert UsageWindow("tumbling", size=86400, start=stamp("2026-04-01T06:00")).begin(now) == stamp("2026-03-18T06:00")


def test_defaults_are_those_of_the_field() -> None:
    config = read_config({"clientType": "prometheus", "connectionString": "http://p:9090"}, {})
    assert config is not None
    params = config.params
    assert (params.window.kind, params.window.size, params.window.half_life) == ("sliding", 168 * 3600, None)
    assert (params.fetch_interval, params.staleness) == (60, 300)
    assert (params.query_timeout, params.resolution) == (10, 60)
    assert params.metrics == METRICS


def test_a_configuration_reads_whole() -> None:
    given = {
        "clientType": "prometheus",
        "connectionStringEnvVar": "USAGE",
        "usageParams": {
            "halfLifePeriod": "12h",
            "windowSize": "24h0m0s",
            "windowType": "tumbling",
            "tumblingWindowStartTime": "2026-01-01T00:00:00Z",
            "fetchInterval": 600.0,
            "stalenessPeriod": "1m",
            "extraParams": {"queryResolution": "30s", "usageQueryTimeout": "5s", "gpuAllocationMetric": "my_gpus"},
        },
    }
    config = read_config(given, {"USAGE": "http://p"})
    assert config is not None and config.connection == "http://p"
    assert config.params.window == UsageWindow("tumbling", 86400.0, stamp("2026-01-01T00:00"), None, 43200.0)
    assert config.params.staleness == 600.0, "never below the interval of fetching"
    assert (config.params.resolution, config.params.query_timeout) == (30.0, 5.0)
    assert config.params.metrics["gpuAllocationMetric"] == "my_gpus"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"connectionString": "a", "connectionStringEnvVar": "B"}, "found both"),
        ({"connectionStringEnvVar": "B"}, "B is not set"),
        ({}, "connectionString: found nothing"),
        ({"connectionString": "a", "usageParams": {"windowType": "round"}}, "found 'round', expected sliding"),
        ({"connectionString": "a", "usageParams": {"windowSize": "x"}}, "windowSize: found the string 'x'"),
        ({"connectionString": "a", "usageParams": {"windowSize": "0s"}}, "expected more than nothing"),
        ({"connectionString": "a", "usageParams": {"windowType": "tumbling"}}, "tumblingWindowStartTime: found None"),
    ],
)
def test_mistakes_name_their_field(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageConfigError, match=complaint):
        read_config({"clientType": "prometheus", **given}, {})


def test_without_a_client_usage_is_not_kept() -> None:
    assert read_config({}, {}) is None
