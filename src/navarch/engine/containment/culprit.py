"""The job or the node at hand when something raised, read from the traceback.

Plugins, actions and the engine hand jobs on as arguments and locals: the innermost frame that holds one names the job. So a
cycle without failures pays nothing for it, and code that is not called through the plugin runner (a filter, a loop in
`open` or `close`) is covered like all other. A node is to blame if a frame further inside than that of the job holds its spec: such
code reads the node alone. Where both are at hand in one frame, the job is to blame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from navarch.engine.gangs.gang_tree import GangTree
from navarch.engine.gangs.sub_jobs import SubJob
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.checked_plugins import is_foreign, is_foreign_module
from navarch.engine.points.gang_protocols import Scenario
from navarch.engine.points.protocols import PREFERENCES, Change, implemented_points
from navarch.engine.queue import Queue
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, NodeSpec, TaskSpec

_MOST_FRAMES = 200
"""Frames that are read at either end: an endless recursion has thousands of equal ones between them."""
_LONGEST = 300
_FIRST = ("job", "best", "preemptor", "sub_job", "task", "change")
"""Names that say most; other locals follow in the order in which the function assigned them."""


class Culprit(Struct, frozen=True):
    """`rows` are job rows; empty: no job was at hand. `shape` is set where the failure concerns every task of a shape."""

    rows: tuple[int, ...]
    where: str
    """The plugin that failed, or the module."""
    shape: int = -1
    queue: str = ""
    node: str = ""
    """The node that was at hand further inside than any job; empty: none."""
    preference_of: str = ""
    """The plugin from outside of Navarch whose order or score failed: the cycle can do without it."""
    plugin: str = ""
    """The plugin in whose code it was raised; empty: none."""


def where_failed(error: BaseException) -> str:
    """The plugin, filter or score that raised this, or the module. File and line follow if it comes from outside of Navarch."""
    return _where(_frames(error))


def error_text(error: BaseException) -> str:
    """One line without addresses in memory, so that a replay says the same."""
    text = " ".join(str(error).split()).partition(" at 0x")[0]
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _frames(error: BaseException) -> list[FrameType]:
    """The innermost frame first."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)][::-1]
    if len(frames) > 2 * _MOST_FRAMES:
        frames[_MOST_FRAMES:-_MOST_FRAMES] = []
    return frames


def find_culprit(error: BaseException, snapshot: Snapshot) -> Culprit:
    frames = _frames(error)
    where, preference, plugin = _where(frames), _preference(frames), _plugin(frames)
    node = ""
    for frame in frames:
        values = list(_locals(frame))
        for value in values:
            found = _of(value, snapshot, where)
            if found is not None:
                return replace(found, node=node, preference_of=preference, plugin=plugin)
        node = node or _node(values, snapshot)
    return Culprit((), where, node=node, preference_of=preference, plugin=plugin)


def _node(values: list[Any], snapshot: Snapshot) -> str:
    """The name of the node whose spec, labels or annotations are among the values."""
    for value in values:
        if isinstance(value, NodeSpec):
            return value.name
        if isinstance(value, Mapping) and value:
            for spec in snapshot.nodes.specs:
                if value is spec.labels or value is spec.annotations:
                    return spec.name
    return ""


def _locals(frame: FrameType) -> Iterator[Any]:
    held = frame.f_locals
    yield from (held[name] for name in _FIRST if name in held)
    yield from (value for name, value in held.items() if name not in _FIRST)


def _of(value: Any, snapshot: Snapshot, where: str) -> Culprit | None:
    if isinstance(value, SubJob | GangTree | Scenario | Change):
        value = value.job
    if isinstance(value, Job):
        return Culprit((value.row,), where)
    if isinstance(value, TaskClass):
        row = int(snapshot.tasks.job[value.task])
        return Culprit((row,), where, shape=value.shape_number) if row >= 0 else None
    if isinstance(value, JobSpec | TaskSpec):
        key = value.key if isinstance(value, JobSpec) else value.job
        return Culprit((snapshot.jobs.keys.index(key),), where) if key in snapshot.jobs.keys else None
    if isinstance(value, Queue):
        number = snapshot.jobs.queue_names.index(value.name) if value.name in snapshot.jobs.queue_names else -1
        rows = (snapshot.jobs.queue == number).nonzero()[0].tolist() if number >= 0 else []
        return Culprit(tuple(rows), where, queue=value.name) if rows else None
    return None


def _plugin(frames: list[FrameType]) -> str:
    """The name of the plugin that failed, or whose filter or score did; empty: none is known."""
    for frame in frames:
        owner = frame.f_locals.get("self")
        if isinstance(owner, NodeFilter | NodeScorer):
            owner = getattr(owner, "navarch_plugin", None)
        if isinstance(owner, Plugin):
            return owner.name
    return ""


def _where(frames: list[FrameType]) -> str:
    for frame in frames:
        owner = frame.f_locals.get("self")
        if isinstance(owner, Plugin | NodeFilter | NodeScorer):
            kind = "plugin" if isinstance(owner, Plugin) else "filter" if isinstance(owner, NodeFilter) else "score"
            line = next((each for each in frames if is_foreign_module(str(each.f_globals.get("__name__", "")))), None)
            place = f" ({Path(line.f_code.co_filename).name}:{line.f_lineno})" if line is not None and is_foreign(type(owner)) else ""
            return f"{kind} {owner.name}{place}"
    return next((str(frame.f_globals.get("__name__", "")) for frame in frames), "")


def _preference(frames: list[FrameType]) -> str:
    """The plugin from outside of Navarch in whose order or score the failure happened; empty: somewhere else."""
    for frame in frames:
        owner = frame.f_locals.get("self")
        if isinstance(owner, NodeScorer) and is_foreign(type(owner)):
            plugin = getattr(owner, "navarch_plugin", None)
            return plugin.name if isinstance(plugin, Plugin) else ""
        if isinstance(owner, Plugin) and is_foreign(type(owner)):
            expresses = implemented_points(type(owner))
            only = frame.f_code.co_name in PREFERENCES or all(point in PREFERENCES for point in expresses)
            return owner.name if only else ""
    return ""
