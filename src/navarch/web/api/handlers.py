"""Every path of the API and its handler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from navarch.kube.client import Client
from navarch.web.api.context import Context
from navarch.web.api.cycles import Cycles
from navarch.web.api.job_page import JobPage
from navarch.web.api.lists import Lists
from navarch.web.api.node_page import NodePage
from navarch.web.api.queue_page import QueuePage
from navarch.web.api.simulations import Simulations
from navarch.web.api.trials import Trials
from navarch.web.application import ViewerHandler
from navarch.web.stream.event_stream import EventStreams
from navarch.web.work.requests import Explain
from navarch.web.work.runner import WorkRunner


@dataclass(frozen=True)
class Sources:
    """What handlers read besides the watched cluster. `explain()`: how a working process finds the cluster."""

    client: Client
    explain: Callable[[], Explain]
    recordings: Path | None = None
    simulations: Path | None = None
    plugin_dirs: Sequence[str] = ()


def handlers(context: Context, runner: WorkRunner, sources: Sources) -> dict[tuple[str, str], ViewerHandler]:
    """(method, path below /api/v1) -> handler."""
    lists = Lists(context)
    streams = EventStreams(context, lists)
    cycles = Cycles(context, runner, sources.recordings, sources.plugin_dirs)
    simulations = Simulations(sources.simulations)
    job = "jobs/{namespace}/{name:.+}"
    return {
        ("GET", "viewer"): lists.viewer,
        ("GET", "status"): lists.status,
        ("GET", "overview"): lists.overview,
        ("GET", "jobs"): lists.jobs,
        ("POST", f"{job}/trials"): Trials(context, runner, sources.explain).post,
        ("GET", job): JobPage(context, sources.client).get,
        ("GET", "queues"): lists.queues,
        ("GET", "queues/{name:.+}"): QueuePage(context).get,
        ("GET", "usage"): lists.usage,
        ("GET", "nodes"): lists.nodes,
        ("GET", "nodes/{name:.+}"): NodePage(context).get,
        ("GET", "cycles"): cycles.get_all,
        ("GET", "cycles/{id}"): cycles.get,
        ("GET", "simulations"): simulations.get_all,
        ("GET", "simulations/{name}"): simulations.get,
        ("GET", "events"): streams.events,
    }
