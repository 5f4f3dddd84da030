"""The live terminal view of `navarch up`: queues, jobs, nodes and the last events, at most four times a second.

The view reads the scheduler's own cache of the cluster. It is drawn again only when something changed, and less often the longer it
takes, so that it does not slow down a large cluster.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from navarch.cli.tables.columns import TableForm, rich_text, table_lines
from navarch.cli.tables.overview import amounts, jobs_form, nodes_form, queues_form
from navarch.cli.up.cluster import UpCluster
from navarch.cli.up.event_log import EventLog
from navarch.views.nodes import NodeRow
from navarch.views.overview import Overview, overview

PAUSE = 0.25
FURNITURE = 15
"""Lines of the view that are titles, headers and space."""


def current(cluster: UpCluster) -> Overview:
    """The cluster as the scheduler sees it now."""
    scheduler = cluster.scheduler
    assert scheduler is not None
    pods = scheduler.cache.pods
    return overview(
        scheduler.cache.cluster,
        scheduler.policy_file.policy,
        scheduler.policy_file.registry,
        scheduler.clock(),
        lambda namespace, name: pods.get((namespace, name)),
    )


class View:
    """`await view.run()` draws until it is cancelled."""

    def __init__(self, cluster: UpCluster, events: EventLog, console: Console) -> None:
        self._cluster = cluster
        self._events = events
        self._console = console

    async def run(self) -> None:
        revision, told, drawn = -1, -1, 0.0
        with Live(console=self._console, auto_refresh=False, screen=False, vertical_overflow="crop") as live:
            try:
                while True:
                    store = self._cluster.server.store
                    state = (store.revision, len(self._events.lines))
                    if state != (revision, told) or time.time() - drawn > 1.0:  # ages change
                        revision, told = state
                        started = time.perf_counter()
                        live.update(self.draw(), refresh=True)
                        drawn = time.time()
                        await asyncio.sleep(max(PAUSE, 4 * (time.perf_counter() - started)))
                    else:
                        await asyncio.sleep(PAUSE)
            finally:
                live.update(self.draw(), refresh=True)

    def draw(self) -> RenderableType:
        now = time.time()
        found = current(self._cluster)
        jobs = sorted(found.jobs, key=lambda row: (not (row.pending or row.running), row.namespace, row.name))
        room = max(6, self._console.height - FURNITURE - len(found.queues))
        shown_jobs = max(3, room * 2 // 5)
        shown_nodes = max(1, room // 4)
        parts: list[RenderableType] = [self._head()]
        parts += self._table("Queues", found.queues, queues_form(found.queues))
        parts += self._table("Jobs", jobs[:shown_jobs], jobs_form(now, namespaces=True))
        if len(jobs) > shown_jobs:
            parts.append(Text(f"... and {len(jobs) - shown_jobs} more", "dim"))
        parts += self._table("Nodes", found.nodes[:shown_nodes], nodes_form(now))
        if len(found.nodes) > shown_nodes:
            parts.append(Text(f"... and {len(found.nodes) - shown_nodes} more; in all {_in_use(found.nodes)}", "dim"))
        lines = list(self._events.lines)[-max(2, room // 4) :]
        parts += [Text(), *(Text(line, overflow="ellipsis", no_wrap=True) for line in lines)]
        return Group(*parts)

    def _table(self, title: str, rows: Sequence[Any], form: TableForm[Any]) -> list[RenderableType]:
        """Each row is one line, cut at the edge of the terminal: folded lines would move the view."""
        lines = table_lines(form, rows, self._console.width)
        return [Text(), Text(title, "bold"), *map(rich_text, lines)]

    def _head(self) -> Text:
        options = self._cluster.options
        pace = f", {options.speed:g} times as fast" if options.speed != 1 else ""
        head = Text.assemble(("navarch up", "bold"), f"  {self._cluster.server.url}{pace}   Ctrl-C stops\n")
        head.append(self._cluster.export, "cyan")
        if self._cluster.dashboard:
            head.append(f"\n{self._cluster.dashboard}", "cyan")
        return head


def _in_use(nodes: list[NodeRow]) -> str:
    used: dict[str, float] = {}
    for node in nodes:
        for name, amount in node.used.items():
            used[name] = used.get(name, 0) + amount
    return f"{amounts(used)} in use"
