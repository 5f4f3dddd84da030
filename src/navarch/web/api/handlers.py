"""Every path of the API and its handler."""

from __future__ import annotations

from navarch.web.api.context import Context
from navarch.web.api.lists import Lists
from navarch.web.application import ViewerHandler
from navarch.web.stream.event_stream import EventStreams


def handlers(context: Context) -> dict[tuple[str, str], ViewerHandler]:
    """(method, path below /api/v1) -> handler."""
    lists = Lists(context)
    streams = EventStreams(context, lists)
    return {
        ("GET", "viewer"): lists.viewer,
        ("GET", "overview"): lists.overview,
        ("GET", "jobs"): lists.jobs,
        ("GET", "queues"): lists.queues,
        ("GET", "nodes"): lists.nodes,
        ("GET", "events"): streams.events,
    }
