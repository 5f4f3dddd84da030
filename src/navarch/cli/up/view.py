"""The live terminal view of `navarch up`: queues, jobs, nodes and the last events, at most four times a second.

The view reads the scheduler's own cache of the cluster. It reads it again only when something changed, and less often the longer that
takes, so that it does not slow down a large cluster. A key only draws again what was read. It fits the terminal whatever its size:
lines are cut at the edge, and the list of the chosen pane has the lines that the others leave.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any, Final, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from navarch.cli.tables.columns import Column, TableForm, cut, layout, rich_text, table_lines
from navarch.cli.tables.overview import age, amounts, jobs_form, nodes_form, queues_form
from navarch.cli.up.cluster import UpCluster
from navarch.cli.up.event_log import EventLog
from navarch.cli.up.keys import reading_keys
from navarch.cli.up.view_state import KEYS, PANES, ViewState, window
from navarch.views.jobs import FindPod, JobRow
from navarch.views.nodes import NodeRow
from navarch.views.overview import Overview, overview
from navarch.views.pods import PodRow, pod_rows

PAUSE: Final = 0.25
FEWEST: Final = 3
"""Lines that the chosen pane has on the smallest terminal."""
SELECTED: Final = "reverse"


def current(cluster: UpCluster) -> Overview:
    """The cluster as the scheduler sees it now."""
    scheduler = cluster.scheduler
    assert scheduler is not None
    return overview(
        scheduler.cache.cluster,
        scheduler.policy_file.policy,
        scheduler.policy_file.registry,
        scheduler.clock(),
        _find_pod(cluster),
    )


def _find_pod(cluster: UpCluster) -> FindPod:
    assert cluster.scheduler is not None
    pods = cluster.scheduler.cache.pods
    return lambda namespace, name: pods.get((namespace, name))


class _List(NamedTuple):
    """What a pane lists."""

    rows: Sequence[Any]
    keys: list[str]
    form: TableForm[Any]
    total: int
    """Rows before the filter."""
    note: str = ""


class View:
    """`await view.run()` draws until the user quits, or until it is cancelled."""

    def __init__(self, cluster: UpCluster, events: EventLog, console: Console) -> None:
        self._cluster = cluster
        self._events = events
        self._console = console
        self._found = Overview([], [], [])
        self._keys: list[str] = []
        self._page = 1
        self._pressed = asyncio.Event()
        self.state = ViewState()

    async def run(self) -> None:
        revision, told, read = -1, -1, 0.0
        with reading_keys(self.press), Live(console=self._console, auto_refresh=False, screen=True, vertical_overflow="crop") as live:
            pause = PAUSE
            while not self.state.quits:
                state = (self._cluster.server.store.revision, len(self._events.lines))
                if state != (revision, told) or time.time() - read > 1.0:  # ages change
                    revision, told = state
                    started = time.perf_counter()
                    self.read()
                    read, pause = time.time(), max(PAUSE, 4 * (time.perf_counter() - started))
                live.update(self.draw(), refresh=True)
                next_read = time.monotonic() + pause
                while not self.state.quits and (left := next_read - time.monotonic()) > 0:
                    self._pressed.clear()
                    try:
                        async with asyncio.timeout(left):
                            await self._pressed.wait()
                    except TimeoutError:
                        break
                    live.update(self.draw(), refresh=True)

    def read(self) -> None:
        self._found = current(self._cluster)

    def press(self, key: str) -> None:
        self.state.press(key, self._keys, self._page)
        self._pressed.set()

    def draw(self) -> RenderableType:
        """As many lines as the terminal has, at most."""
        width, height = self._console.width, self._console.height
        head, foot = self._head(), self._foot()
        room = height - len(head) - len(foot)
        job = next((row for row in self._found.jobs if row.key == self.state.opened), None)
        if self.state.helps:
            body = [Text("Keys", "bold"), *(_fit(Text(f"  {line}")) for line in KEYS)]
            return Group(*head, *body[:room], *_blank(room - len(body)), *foot)
        if self.state.opened:
            body = self._opened(job, room, width)
            return Group(*head, *body, *_blank(room - len(body)), *foot)
        above: list[Text] = []
        if self.state.pane == "Jobs" and room - len(self._found.queues) - 4 >= 2 * FEWEST:
            above = [Text("Queues", "bold"), *self._lines(queues_form(self._found.queues), self._found.queues), Text()]
        events = min(len(self._events.lines), max(0, (room - len(above) - FEWEST) // 4)) if self.state.pane != "Events" else 0
        below = [Text(), *(Text(cut(line, width)) for line in list(self._events.lines)[-events:])] if events else []
        body = self._pane(room - len(above) - len(below))
        return Group(*head, *above, *body, *_blank(room - len(above) - len(below) - len(body)), *below, *foot)

    def _pane(self, room: int) -> list[Text]:
        """The title, the header, and the rows around the selected one."""
        state, list_ = self.state, self._list()
        rows, keys = list_.rows, list_.keys
        self._keys, self._page = keys, max(1, room - 2)
        selected = state.place(keys)
        made, texts = layout(list_.form, rows, self._console.width)
        blocks = [made.lines(row, cells) for row, cells in zip(rows, texts)]
        first, last = window([len(block) for block in blocks], selected, self._page)
        chosen = f" {first + 1}-{last} of {len(rows)}" if last - first < len(rows) else f" {len(rows)}"
        title = Text.assemble((state.pane, "bold"), f"{chosen}{f' (of {list_.total})' if len(rows) < list_.total else ''}{list_.note}")
        lines = [_fit(title), rich_text(made.header())]
        for number in range(first, last):
            drawn = [rich_text(line) for line in blocks[number]]
            if number == selected:
                drawn[0].stylize(SELECTED)
            lines += drawn
        return lines[:room]

    def _list(self) -> _List:
        """The rows of the chosen pane that pass the filter."""
        now, state, found = time.time(), self.state, self._found
        match state.pane:
            case "Jobs":
                jobs = sorted(found.jobs, key=lambda row: (not (row.pending or row.running), row.namespace, row.name))
                chosen = [row for row in jobs if state.passes(f"{row.namespace} {row.name} {row.kind} {row.queue} {row.phase}")]
                return _List(chosen, [row.key for row in chosen], jobs_form(now, namespaces=True), len(jobs))
            case "Queues":
                queues = [row for row in found.queues if state.passes(row.name)]
                return _List(queues, [row.name for row in queues], queues_form(queues), len(found.queues))
            case "Nodes":
                nodes = [row for row in found.nodes if state.passes(f"{row.name} {row.status} {row.zone}")]
                return _List(nodes, [row.name for row in nodes], nodes_form(now), len(found.nodes), f"; {_in_use(found.nodes)}")
        width = self._console.width
        lines = [part for line in self._events.lines if state.passes(line) for part in _folded(line, width)]
        form = TableForm([Column[str]("EVENT", lambda line: line)])
        return _List(lines, [str(number) for number in range(len(lines))], form, len(lines))

    def _opened(self, job: JobRow | None, room: int, width: int) -> list[Text]:
        """One job with its pods, from the line that the user scrolled to."""
        if job is None:
            return [Text(f"{self.state.opened} is gone; Esc goes back", "bold")]
        scheduler = self._cluster.scheduler
        assert scheduler is not None
        pods = pod_rows(scheduler.cache.cluster, job.key, _find_pod(self._cluster))
        lines = [Text(f"{job.kind} {job.namespace}/{job.name}", "bold")]
        lines += self._lines(TableForm(jobs_form(time.time(), namespaces=False).columns), [replace(job, why="")])
        for reason in dict.fromkeys(text for text in (job.why, job.prospect.never if job.prospect else "") if text):
            lines += [Text(line) for line in wrap(reason, width, initial_indent="  ", subsequent_indent="    ")]
        lines.append(Text())
        lines += self._lines(_pods_form(time.time()), pods) if pods else [Text("no pods", "dim")]
        self.state.scroll = min(self.state.scroll, max(0, len(lines) - room))
        self._page = max(1, room - 1)
        return lines[self.state.scroll : self.state.scroll + room]

    def _lines(self, form: TableForm[Any], rows: Sequence[Any]) -> list[Text]:
        """Each row is one line, cut at the edge of the terminal: folded lines would move the view."""
        return [rich_text(line) for line in table_lines(form, rows, self._console.width)]

    def _head(self) -> list[Text]:
        options = self._cluster.options
        pace = f", {options.speed:g} times as fast" if options.speed != 1 else ""
        head = [Text.assemble(("navarch up", "bold"), f"  {self._cluster.server.url}{pace}"), Text(self._cluster.export, "cyan")]
        if self._cluster.dashboard:
            head.append(Text(self._cluster.dashboard, "cyan"))
        return [*map(_fit, head), Text()]

    def _foot(self) -> list[Text]:
        state = self.state
        if state.typing:
            return [Text(f"/{state.filter}_   Enter keeps the filter, Esc clears it", "bold")]
        if state.opened:
            return [_fit(Text("Esc back   ↑↓ PgUp PgDn scroll   ? keys   Ctrl-C stops", "dim"))]
        following = PANES[(PANES.index(state.pane) + 1) % len(PANES)]
        shown = f"filter: {state.filter} (Esc clears)   " if state.filter else ""
        opening = "Enter opens   " if state.pane == "Jobs" else ""
        return [_fit(Text(f"{shown}↑↓ move   {opening}/ filters   Tab {following.lower()}   ? keys   q stops", "dim"))]


def _pods_form(now: float) -> TableForm[PodRow]:
    return TableForm(
        (
            Column[PodRow]("POD", lambda row: row.name),
            Column[PodRow]("STATUS", lambda row: row.status),
            Column[PodRow]("NODE", lambda row: row.node or "-"),
            Column[PodRow]("AGE", lambda row: age(row.created, now)),
        )
    )


def _fit(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _folded(line: str, width: int) -> list[str]:
    """An event in lines of the terminal; those after the first begin below its text."""
    return wrap(line, max(20, width), subsequent_indent=" " * 10, break_on_hyphens=False) or [""]


def _blank(count: int) -> list[Text]:
    return [Text()] * max(0, count)


def _in_use(nodes: list[NodeRow]) -> str:
    used: dict[str, float] = {}
    for node in nodes:
        for name, amount in node.used.items():
            used[name] = used.get(name, 0) + amount
    return f"{amounts(used)} in use"
