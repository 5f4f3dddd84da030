"""The interface of sources of node load, and the configuration behind `metrics:` of a policy file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from navarch.engine.policy import Policy
from navarch.engine.policy.checks import LOAD_READERS

USUAL_PERIOD: Final = "10m"
"""The period that Volcano fetches."""
INTERVAL: Final = 30.0
TIMEOUT: Final = 60.0
"""Seconds that one fetch of all figures may take."""
INDEX, HOST_FIELD = "metricbeat-*", "host.hostname"

Percents = Mapping[str, tuple[float | None, float | None]]
"""Node -> percent of its cpu and of its memory; None: the server has no figure."""


class LoadError(Exception):
    """The server did not answer with the load of nodes. The message names the server and its answer."""


class LoadSource(Protocol):
    async def fetch(self, nodes: Sequence[str], period: str, now: float) -> Percents:
        """The average load over the period that ends at `now`. Raises LoadError."""
        ...

    async def close(self) -> None: ...


class LoadConfig(Struct, frozen=True):
    type: str
    address: str = ""
    interval: float = INTERVAL
    insecure: bool = False
    index: str = INDEX
    host_field: str = HOST_FIELD
    username: str = ""
    password: str = ""
    periods: tuple[str, ...] = (USUAL_PERIOD,)


def read_config(policy: Policy) -> LoadConfig | None:
    """The configuration of the policy; None if it names no server, or no plugin that reads the load of nodes."""
    given = policy.metrics
    kind = _text(given, "type")
    if not kind or not any(option.name in LOAD_READERS for option in policy.plugins):
        return None
    interval = given.get("interval")
    return LoadConfig(
        type=kind,
        address=_text(given, "address"),
        interval=float(interval) if isinstance(interval, int | float) and interval > 0 else INTERVAL,
        insecure=bool(given.get("tls.insecureSkipVerify")),
        index=_text(given, "elasticsearch.index") or INDEX,
        host_field=_text(given, "elasticsearch.hostnameFieldName") or HOST_FIELD,
        username=_text(given, "elasticsearch.username"),
        password=_text(given, "elasticsearch.password"),
        periods=_periods(policy),
    )


def _periods(policy: Policy) -> tuple[str, ...]:
    """The periods that rules of the policy read."""
    moved = [str(option.arguments.get("metricsPeriod") or "5m") for option in policy.plugins if option.name == "rescheduling"]
    return tuple(dict.fromkeys([USUAL_PERIOD, *moved]))


def _text(given: Mapping[str, object], name: str) -> str:
    value = given.get(name)
    return "" if value is None else str(value)


def percent(value: float) -> float | None:
    """A figure that a server sent; None if it is no number."""
    return value if math.isfinite(value) else None
