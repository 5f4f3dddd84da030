"""What a policy's `usageDBConfig` says, checked: where usage is kept, over which window, how fast the past fades."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from navarch.engine.arguments import WrongKind, duration
from navarch.live.usage.cron import Cron

WEEK: Final = 7 * 24 * 3600.0
_SOME_DAY: Final = 2e9
"""A cron time that does not come in the years before this never comes."""
METRICS: Final[Mapping[str, str]] = {
    "gpuAllocationMetric": "kai_queue_allocated_gpus",
    "cpuAllocationMetric": "kai_queue_allocated_cpu_cores",
    "memoryAllocationMetric": "kai_queue_allocated_memory_bytes",
    "gpuCapacityMetric": 'sum(kube_node_status_capacity{resource="nvidia_com_gpu"})',
    "cpuCapacityMetric": 'sum(kube_node_status_capacity{resource="cpu"})',
    "memoryCapacityMetric": 'sum(kube_node_status_capacity{resource="memory"})',
}


class UsageConfigError(ValueError):
    """What is wrong in usageDBConfig: the field, what was found, what was expected."""


class UsageWindow(Struct, frozen=True):
    """Which past counts. `sliding`: the last `size` seconds; `tumbling`: since the last multiple of `size` after `start`;
    `cron`: since the last time that `cron` names. `half_life` None: all of it alike."""

    kind: str = "sliding"
    size: float = WEEK
    start: float = 0.0
    cron: Cron | None = None
    half_life: float | None = None

    def begin(self, now: float) -> float:
        """When the window that ends at `now` began.

        >>> UsageWindow("tumbling", size=100.0, start=30.0).begin(299.0)
        230.0
        """
        if self.kind == "cron" and self.cron is not None:
            return self.cron.last(now)
        if self.kind == "tumbling":
            return self.start + math.floor((now - self.start) / self.size) * self.size
        return now - self.size

    def fading(self, age: float) -> float:
        """How much an amount held `age` seconds ago still counts."""
        return 1.0 if self.half_life is None else float(0.5 ** (age / self.half_life))


class UsageParams(Struct, frozen=True):
    window: UsageWindow = UsageWindow()
    fetch_interval: float = 60.0
    staleness: float = 300.0
    query_timeout: float = 10.0
    resolution: float = 60.0
    metrics: Mapping[str, str] = field(default_factory=lambda: METRICS)


class UsageConfig(Struct, frozen=True):
    client: str
    connection: str
    params: UsageParams = UsageParams()


def read_config(given: Mapping[str, object], environ: Mapping[str, str]) -> UsageConfig | None:
    """The configuration behind `Policy.usage`; None if usage is not kept at all.

    Durations may be seconds already (as the policy loader leaves them) or in Go's notation."""
    client = _text(given, "clientType")
    if not client:
        return None
    literal, variable = _text(given, "connectionString"), _text(given, "connectionStringEnvVar")
    if literal and variable:
        raise UsageConfigError("connectionString and connectionStringEnvVar: found both, expected one of them")
    if variable and not environ.get(variable):
        raise UsageConfigError(f"connectionStringEnvVar: {variable} is not set, expected an environment variable with a value")
    connection = literal or (environ[variable] if variable else "")
    if not connection:
        raise UsageConfigError("connectionString: found nothing, expected an address (prometheus) or a file (builtin)")
    return UsageConfig(client, connection, _params(_mapping(given, "usageParams")))


def _params(given: Mapping[str, object]) -> UsageParams:
    extra = _mapping(given, "extraParams")
    metrics = {name: _text(extra, name) or default for name, default in METRICS.items()}
    interval = _seconds(given, "fetchInterval", 60.0, positive=True)
    return UsageParams(
        window=_window(given),
        fetch_interval=interval,
        # Data cannot be fresher than it is fetched.
        staleness=max(_seconds(given, "stalenessPeriod", 300.0), interval),
        query_timeout=_seconds(extra, "usageQueryTimeout", 10.0, positive=True),
        resolution=_seconds(extra, "queryResolution", 60.0, positive=True),
        metrics=metrics,
    )


def _window(given: Mapping[str, object]) -> UsageWindow:
    kind = _text(given, "windowType") or "sliding"
    half_life = _seconds(given, "halfLifePeriod", 0.0)
    size = _seconds(given, "windowSize", WEEK, positive=True)
    start, cron = 0.0, None
    if kind == "tumbling":
        start = _moment(given.get("tumblingWindowStartTime"))
    elif kind == "cron":
        try:
            cron = Cron.parse(_text(given, "cronString"))
            cron.last(_SOME_DAY)
        except ValueError as error:
            raise UsageConfigError(f"usageParams.cronString: {error}") from None
    elif kind != "sliding":
        raise UsageConfigError(f"usageParams.windowType: found {kind!r}, expected sliding, tumbling or cron")
    return UsageWindow(kind, size, start, cron, half_life if half_life > 0 else None)


def _moment(value: object) -> float:
    try:
        moment = value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value))
    except ValueError:
        expected = "a time such as 2026-01-01T00:00:00Z"
        raise UsageConfigError(f"usageParams.tumblingWindowStartTime: found {value!r}, expected {expected}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def _seconds(given: Mapping[str, object], name: str, default: float, *, positive: bool = False) -> float:
    value = given.get(name)
    if value is None:
        return default
    try:
        found = float(value) if isinstance(value, int | float) else duration(str(value))
    except WrongKind as error:
        raise UsageConfigError(f"{name}: {error}") from None
    if positive and found <= 0:
        raise UsageConfigError(f"{name}: found {value!r}, expected more than nothing")
    return found


def _text(given: Mapping[str, object], name: str) -> str:
    value = given.get(name)
    return "" if value is None else str(value)


def _mapping(given: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = given.get(name) or {}
    if not isinstance(value, Mapping):
        raise UsageConfigError(f"{name}: found {value!r}, expected a mapping")
    return value
