"""Kubernetes events about some objects of a namespace, newest first."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Collection
from typing import Any, Final

from navarch.apis.core.objects import seconds
from navarch.kube.client import Client
from navarch.kube.errors import KubeError
from navarch.kube.resources import Resource

EVENTS: Final = Resource("events.k8s.io", "v1", "events")
MOST_EVENTS: Final = 100
MOST_READ: Final = 5000
"""Events of a namespace that are looked through."""
LIST_SECONDS: Final = 5.0
"""A page is shown without events rather than later."""


async def events_of(client: Client, namespace: str, names: Collection[str]) -> list[dict[str, Any]] | None:
    """None: they may not be listed, or the API server does not answer."""
    found: list[dict[str, Any]] = []
    read = 0
    try:
        async with asyncio.timeout(LIST_SECONDS):
            async for page in client.pages(EVENTS, dict[str, Any], namespace=namespace):
                found += (_shown(each) for each in page.items or () if (each.get("regarding") or {}).get("name") in names)
                read += len(page.items or ())
                if read >= MOST_READ:
                    break
    except (KubeError, TimeoutError):
        return None
    found.sort(key=lambda each: (-(each["time"] or 0.0), each["object"], each["reason"]))
    return found[:MOST_EVENTS]


def _shown(event: dict[str, Any]) -> dict[str, Any]:
    regarding, series = event.get("regarding") or {}, event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("deprecatedLastTimestamp"), event.get("eventTime"))
    metadata = event.get("metadata") or {}
    when = next((text for text in (*times, metadata.get("creationTimestamp")) if text), None)
    return {
        "time": _seconds(when),
        "type": event.get("type") or "",
        "reason": event.get("reason") or "",
        "object": f"{regarding.get('kind') or ''}/{regarding.get('name') or ''}",
        "message": event.get("note") or "",
        "count": series.get("count") or event.get("deprecatedCount") or 1,
    }


def _seconds(text: Any) -> float | None:
    try:
        return seconds(datetime.datetime.fromisoformat(str(text))) if text else None
    except ValueError:
        return None
