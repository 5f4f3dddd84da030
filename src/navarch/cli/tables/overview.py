"""The tables of jobs, queues and nodes; `rows` prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from navarch.model.resources import UNLIMITED, format_amount
from navarch.views.jobs import JobRow
from navarch.views.nodes import NodeRow
from navarch.views.prospects import Prospect
from navarch.views.quantities import Amounts
from navarch.views.queues import QueueRow

LEFT_OUT = frozenset({"pods", "ephemeral-storage"})
SHORT = {"nvidia.com/gpu": "gpu", "memory": "mem"}
PHASE_STYLES = {"Running": "green", "Pending": "yellow", "Inqueue": "cyan", "Unknown": "red", "Completed": "dim"}


def short(name: str) -> str:
    return SHORT.get(name) or name.rpartition("/")[2]


def amounts(found: Amounts, keep: Sequence[str] = ()) -> str:
    """The main resources in short form: `gpu 8, cpu 64, mem 512Gi`.

    >>> amounts({"cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 2000, "pods": 3})
    'gpu 2, cpu 1500m, mem 1Gi'
    >>> amounts({"nvidia.com/gpu": 4660})
    'gpu 4.66'
    """
    shown = [name for name in found if name not in LEFT_OUT and 0 < found[name] < UNLIMITED and not name.startswith("hugepages-")]
    shown.sort(key=lambda name: (name in ("cpu", "memory"), name))
    return ", ".join(f"{short(name)} {_brief(name, found[name])}" for name in shown if not keep or name in keep) or "-"


def _brief(name: str, amount: float) -> str:
    if name == "memory" and amount >= 1 << 30:
        return f"{amount / (1 << 30):.4g}Gi"
    if name.endswith("/gpu"):
        return f"{amount / 1000:g}"
    if name == "cpu" and amount >= 10_000:
        return f"{amount / 1000:.4g}"
    return format_amount(name, amount)


def age(created: float, now: float) -> str:
    """
    >>> age(0.0, 100.0), age(1.0, 100.0), age(10.0, 10000.0)
    ('-', '99s', '2h46m')
    """
    if not created:
        return "-"
    seconds = max(0, int(now - created))
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m" if not hours else f"{hours}h{minutes % 60}m"
    return f"{hours}h" if days < 2 else f"{days}d"


def plain_table(columns: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def jobs_table(rows: Iterable[JobRow], now: float, *, namespaces: bool) -> Table:
    columns = ["JOB", "KIND", "QUEUE", "PHASE", "MIN", "PENDING", "RUNNING", "DONE", "FAILED", "PLACE", "AGE"]
    table = plain_table([*(["NAMESPACE"] if namespaces else []), *columns, "WHY"])
    for row in rows:
        cells: list[str | Text] = [
            row.name,
            row.kind,
            row.queue or "-",
            Text(row.phase, PHASE_STYLES.get(row.phase, "")),
            str(row.min_member),
            str(row.pending),
            str(row.running) + (f" (-{row.leaving})" if row.leaving else ""),
            str(row.succeeded),
            str(row.failed),
            _place(row.prospect),
            age(row.created, now),
        ]
        table.add_row(*([row.namespace] if namespaces else []), *cells, Text(row.why))
    return table


def _place(prospect: Prospect | None) -> str:
    if prospect is None:
        return "-"
    return "never" if prospect.never else f"{prospect.place}/{prospect.of}"


def queues_table(rows: Iterable[QueueRow]) -> Table:
    """With fair shares if the policy divides the cluster over the tree, otherwise with weights and deserved amounts."""
    rows = list(rows)
    columns = _FAIR if any(row.fair_share is not None for row in rows) else _WEIGHTED
    shown = {name: cell for name, cell in columns.items() if name != "USAGE" or any(row.usage for row in rows)}
    table = plain_table(tuple(shown))
    for row in rows:
        table.add_row(*(cell(row) for cell in shown.values()))
    return table


def _stated(bounds: Mapping[str, str]) -> str:
    return ", ".join(f"{short(name)} {amount}" for name, amount in bounds.items()) or "-"


def _share(row: QueueRow) -> Text:
    return Text(f"{row.share:.2f}", "red" if row.share > 1.0001 else "")


def _usage(row: QueueRow) -> str:
    return ", ".join(f"{name} {part:.1%}" for name, part in sorted(row.usage.items()) if part) or "-"


Cell = Callable[[QueueRow], str | Text]
# Columns of queues by their headings, in order.
_NAME: Mapping[str, Cell] = {"QUEUE": lambda row: "  " * row.depth + row.name}
_HELD: Mapping[str, Cell] = {"ALLOCATED": lambda row: amounts(row.allocated), "REQUEST": lambda row: amounts(row.request)}
_NOW: Mapping[str, Cell] = {"SHARE": _share, "RUNNING": lambda row: str(row.running), "WAITING": lambda row: str(row.waiting)}
_WEIGHTED: Mapping[str, Cell] = {
    **_NAME,
    "STATE": lambda row: row.state,
    "WEIGHT": lambda row: str(row.weight),
    "QUOTA": lambda row: _stated(row.quota),
    "DESERVED": lambda row: amounts(row.deserved),
    **_HELD,
    **_NOW,
}
_FAIR: Mapping[str, Cell] = {
    **_NAME,
    "PRIORITY": lambda row: str(row.priority),
    "QUOTA": lambda row: _stated(row.quota),
    "LIMIT": lambda row: _stated(row.limit),
    "FAIR SHARE": lambda row: amounts(row.fair_share or {}),
    **_HELD,
    "USAGE": _usage,
    **_NOW,
}


def nodes_table(rows: Iterable[NodeRow], now: float) -> Table:
    table = plain_table(("NODE", "STATUS", "ZONE", "GPU", "CPU", "MEMORY", "PODS", "AGE"))
    for row in rows:
        gpus = [name for name in row.allocatable if name.endswith("/gpu")]
        figures = [_of(row, gpus[0]) if gpus else Text("-")] + [_of(row, name) for name in ("cpu", "memory", "pods")]
        status = Text(row.status, "green" if row.status == "Ready" else "red")
        table.add_row(row.name, status, row.zone or "-", *figures, age(row.created, now))
    return table


def _of(row: NodeRow, name: str) -> Text:
    """Used and allocatable amount; a fuller node has a warmer colour."""
    used, whole = row.used.get(name, 0), row.allocatable.get(name, 0)
    part = used / whole if whole else 0.0
    style = "red" if part > 1 else "yellow" if part >= 0.9 else "green" if part > 0 else "dim"
    return Text(f"{_brief(name, used) if used else '0'}/{_brief(name, whole)}", style)
