"""Moments and spans as the API and its users write them."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """`metav1.Time`: whole seconds.

    >>> rfc3339(0.7)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def go_duration(seconds: float) -> str:
    """As Go prints a duration, to the millisecond.

    >>> [go_duration(each) for each in (600, 5400, 90061, 2.5, 0)]
    ['10m0s', '1h30m0s', '25h1m1s', '2.5s', '0s']
    """
    thousandths = round(seconds * 1000)
    hours, rest = divmod(thousandths, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    out = f"{rest / 1000:g}s"
    if hours or minutes:
        out = f"{minutes}m{out}"
    return f"{hours}h{out}" if hours else out
