"""The columns of jobs, queues and nodes, the most useful first; `columns` fits them to the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navarch.cli.tables.columns import Column, Sentence, TableForm
from navarch.engine.reasons import without_next_step
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


def jobs_form(now: float, *, namespaces: bool, starts: bool = False) -> TableForm[JobRow]:
    """`starts`: with the time until a job starts: passed with a chance of 50 and of 90 percent."""
    columns: tuple[Column[JobRow], ...] = (
        Column[JobRow]("JOB", lambda row: row.name),
        Column[JobRow]("PHASE", lambda row: row.phase, lambda row: PHASE_STYLES.get(row.phase, "")),
        Column[JobRow](
            "RUNNING", lambda row: str(row.running) + (f" (-{row.leaving})" if row.leaving else ""), value=lambda row: row.running
        ),
        Column[JobRow]("PENDING", lambda row: str(row.pending), value=lambda row: row.pending),
        Column[JobRow]("MIN", lambda row: str(row.min_member), value=lambda row: row.min_member),
        Column[JobRow]("GPUS", lambda row: f"{row.gpus:g}", if_used=True, value=lambda row: row.gpus),
        Column[JobRow]("QUEUE", lambda row: row.queue or "-"),
        Column[JobRow](
            "PLACE",
            lambda row: _place(row.prospect),
            value=lambda row: (row.prospect.place, row.prospect.of) if row.prospect else None,
        ),
        Column[JobRow](
            "TIME", lambda row: _time(row, now), if_used=True, value=lambda row: None if row.started is None else now - row.started
        ),
        Column[JobRow]("NODES", lambda row: str(row.nodes), if_used=True, value=lambda row: row.nodes),
        Column[JobRow]("USER", lambda row: row.user or "-", if_used=True),
        Column[JobRow]("AGE", lambda row: age(row.created, now), value=lambda row: now - row.created if row.created else None),
        Column[JobRow]("PRIORITY", lambda row: str(row.priority), value=lambda row: row.priority),
        Column[JobRow]("KIND", lambda row: row.kind),
        Column[JobRow]("DONE", lambda row: str(row.succeeded), if_used=True, value=lambda row: row.succeeded),
        Column[JobRow](
            "FAILED", lambda row: str(row.failed), lambda row: "red" if row.failed else "", if_used=True, value=lambda row: row.failed
        ),
        Column[JobRow]("GROUP", lambda row: row.group or "-", wide=True),
    )
    if starts:
        start = Column[JobRow]("START", lambda row: _start(row, now), value=lambda row: row.start.p50 if row.start else None)
        columns = (*columns[:8], start, *columns[8:])
    where = (Column[JobRow]("NAMESPACE", lambda row: row.namespace),) if namespaces else ()
    return TableForm((*where, *columns), Sentence("WHY", lambda row: without_next_step(row.why), lambda row: row.messages or row.why))


def _start(row: JobRow, now: float) -> str:
    if row.start is None:
        return "?" if row.start_unknown else "-"
    soon, late = (age(now, now + max(0.0, time - now)) for time in (row.start.p50, row.start.p90))
    return soon if soon == late else f"{soon} - {late}"


def _time(row: JobRow, now: float) -> str:
    """How long it has run, of how long it may."""
    if row.started is None:
        return "-"
    most = age(now, now + row.limit) if row.limit is not None else ""
    return age(row.started, now) + (f"/{most}" if most else "")


def _place(prospect: Prospect | None) -> str:
    if prospect is None:
        return "-"
    return "never" if prospect.never else f"{prospect.place}/{prospect.of}"


def queues_form(rows: Sequence[QueueRow]) -> TableForm[QueueRow]:
    """With fair shares if the policy divides the cluster over the tree, otherwise with weights and deserved amounts."""
    columns = _FAIR if any(row.fair_share is not None for row in rows) else _WEIGHTED
    return TableForm([each for each in columns if each.heading != "USAGE" or any(row.usage for row in rows)])


def _stated(bounds: Mapping[str, str]) -> str:
    return ", ".join(f"{short(name)} {amount}" for name, amount in bounds.items()) or "-"


def _usage(row: QueueRow) -> str:
    return ", ".join(f"{name} {part:.1%}" for name, part in sorted(row.usage.items()) if part) or "-"


_NOW = (
    Column[QueueRow]("QUEUE", lambda row: "  " * row.depth + row.name),
    Column[QueueRow](
        "SHARE", lambda row: f"{row.share:.2f}", lambda row: "red" if row.share > 1.0001 else "", value=lambda row: row.share
    ),
    Column[QueueRow]("RUNNING", lambda row: str(row.running), value=lambda row: row.running),
    Column[QueueRow]("WAITING", lambda row: str(row.waiting), value=lambda row: row.waiting),
    Column[QueueRow]("ALLOCATED", lambda row: amounts(row.allocated)),
)
_REQUEST = Column[QueueRow]("REQUEST", lambda row: amounts(row.request))
_QUOTA = Column[QueueRow]("QUOTA", lambda row: _stated(row.quota))
_WEIGHTED = (
    *_NOW,
    Column[QueueRow]("DESERVED", lambda row: amounts(row.deserved)),
    _REQUEST,
    Column[QueueRow]("WEIGHT", lambda row: str(row.weight), value=lambda row: row.weight),
    Column[QueueRow]("STATE", lambda row: row.state),
    _QUOTA,
)
_FAIR = (
    *_NOW,
    Column[QueueRow]("FAIR SHARE", lambda row: amounts(row.fair_share or {})),
    _REQUEST,
    _QUOTA,
    Column[QueueRow]("LIMIT", lambda row: _stated(row.limit)),
    Column[QueueRow]("PRIORITY", lambda row: str(row.priority), value=lambda row: row.priority),
    Column[QueueRow]("USAGE", _usage),
)


def nodes_form(now: float) -> TableForm[NodeRow]:
    return TableForm(
        (
            Column[NodeRow]("NODE", lambda row: row.name),
            Column[NodeRow]("STATUS", lambda row: row.status, lambda row: "green" if row.status == "Ready" else "red"),
            Column[NodeRow](
                "GPU",
                lambda row: _of(row, _gpu(row)),
                lambda row: _fullness(row, _gpu(row)),
                value=lambda row: row.used.get(_gpu(row), 0),
            ),
            Column[NodeRow](
                "CPU", lambda row: _of(row, "cpu"), lambda row: _fullness(row, "cpu"), value=lambda row: row.used.get("cpu", 0)
            ),
            Column[NodeRow](
                "MEMORY",
                lambda row: _of(row, "memory"),
                lambda row: _fullness(row, "memory"),
                value=lambda row: row.used.get("memory", 0),
            ),
            Column[NodeRow](
                "PODS", lambda row: _of(row, "pods"), lambda row: _fullness(row, "pods"), value=lambda row: row.used.get("pods", 0)
            ),
            Column[NodeRow]("ZONE", lambda row: row.zone or "-"),
            Column[NodeRow]("AGE", lambda row: age(row.created, now), value=lambda row: now - row.created if row.created else None),
            Column[NodeRow]("OTHER", _others, wide=True),
        )
    )


def _gpu(row: NodeRow) -> str:
    return next((name for name in row.allocatable if name.endswith("/gpu")), "")


def _others(row: NodeRow) -> str:
    """Resources that have no column of their own."""
    known = {"cpu", "memory", "pods", "ephemeral-storage", _gpu(row)}
    names = [name for name, amount in sorted(row.allocatable.items()) if name not in known and amount]
    return ", ".join(f"{name} {_of(row, name)}" for name in names) or "-"


def _of(row: NodeRow, name: str) -> str:
    """Used and allocatable amount."""
    used, whole = row.used.get(name, 0), row.allocatable.get(name, 0)
    return f"{_brief(name, used) if used else '0'}/{_brief(name, whole)}" if name else "-"


def _fullness(row: NodeRow, name: str) -> str:
    """A fuller node has a warmer colour."""
    used, whole = row.used.get(name, 0), row.allocatable.get(name, 0)
    part = used / whole if whole else 0.0
    return "red" if part > 1 else "yellow" if part >= 0.9 else "green" if part > 0 else "dim"
