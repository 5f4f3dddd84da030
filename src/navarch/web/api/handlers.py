"""Every path of the API and its handler."""

from __future__ import annotations

from navarch.kube.client import Client
from navarch.web.api.context import Context
from navarch.web.api.job_page import JobPage
from navarch.web.api.lists import Lists
from navarch.web.api.node_page import NodePage
from navarch.web.api.queue_page import QueuePage
from navarch.web.application import ViewerHandler
from navarch.web.stream.event_stream import EventStreams


def handlers(context: Context, client: Client) -> dict[tuple[str, str], ViewerHandler]:
    """(method, path below /api/v1) -> handler."""
    lists = Lists(context)
    streams = EventStreams(context, lists)
    return {
        ("GET", "viewer"): lists.viewer,
        ("GET", "overview"): lists.overview,
        ("GET", "jobs"): lists.jobs,
        ("GET", "jobs/{namespace}/{name:.+}"): JobPage(context, client).get,
        ("GET", "queues"): lists.queues,
        ("GET", "queues/{name:.+}"): QueuePage(context).get,
        ("GET", "nodes"): lists.nodes,
        ("GET", "nodes/{name:.+}"): NodePage(context).get,
        ("GET", "events"): streams.events,
    }
