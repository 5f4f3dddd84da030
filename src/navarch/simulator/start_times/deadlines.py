"""When Jobs are ended by Kubernetes: `activeDeadlineSeconds` of a Job counts from the start of the Job, not of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

Deadlines = Mapping[tuple[str, str], tuple[float | None, float]]
"""Namespace and name of a Job -> when it started, if it has, and its deadline in seconds."""


def job_deadlines(jobs: Iterable[Mapping[str, Any]]) -> Deadlines:
    """Of Jobs that have one.

    >>> job_deadlines([{"metadata": {"name": "a"}, "spec": {"activeDeadlineSeconds": 60}}])
    {('default', 'a'): (None, 60.0)}
    """
    found = {}
    for job in jobs:
        spec, status, metadata = job.get("spec") or {}, job.get("status") or {}, job["metadata"]
        deadline = spec.get("activeDeadlineSeconds")
        if isinstance(deadline, int) and deadline > 0:
            found[metadata.get("namespace") or "default", str(metadata["name"])] = (_moment(status.get("startTime")), float(deadline))
    return found


def _moment(value: object) -> float | None:
    """None for what is no time."""
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
