"""Plugins from outside of Navarch answer through a check: an answer of the wrong form is refused where it is given.

Without the check a wrong answer fails late and elsewhere: text instead of a Reason refuses a job and fails when its message is read,
a NaN wins every comparison of scores, a mask of the wrong length breaks the engine. `checked` gives a subclass of the plugin that
checks each answer, takes its time (`NAME (asked)` in the timings of a cycle), and hands read-only figures to node functions. Navarch's
own plugins are not checked: their tests do that, and a check costs some 5 us a column.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from navarch.engine.figures import Figures, ReadOnlyFigures
from navarch.engine.gangs.gang_tree import GangTree
from navarch.engine.gangs.sub_jobs import SubJob
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, Rejection, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.gang_protocols import Scenario
from navarch.engine.points.protocols import Change, Vote
from navarch.engine.reasons import Reason

if TYPE_CHECKING:
    from navarch.engine.session import Session

C = TypeVar("C")
F = TypeVar("F", NodeFilter, NodeScorer)
Form = tuple[tuple[type, ...], str]
_FLAG: Form = (bool, np.bool_), "True or False"
_COUNT: Form = (int, np.integer), "a whole number"
_REASON: Form = (Reason, type(None)), "a Reason or None"
_TASKS: Form = (list, tuple, type(None)), "a list of tasks or None"
EXPECTED: dict[str, Form] = {
    "queue_order": _COUNT,
    "victim_queue_order": _COUNT,
    "job_valid": _REASON,
    "job_enqueueable": ((Vote, Reason), "a Vote or a Reason"),
    "job_ready": _FLAG,
    "job_missing": _COUNT,
    "job_pipelined": ((Vote,), "a Vote"),
    "sub_job_ready": _FLAG,
    "sub_job_missing": _COUNT,
    "sub_job_pipelined": ((Vote,), "a Vote"),
    "job_starving": _FLAG,
    "turn_refusal": _REASON,
    "overused": _REASON,
    "allocatable": ((int, np.integer, Reason), "a whole number or a Reason"),
    "preemptive": _REASON,
    "preemptable": _TASKS,
    "reclaimable": _TASKS,
    "unified_evictable": _TASKS,
    "victim_tasks": _TASKS,
    "hyper_node_order": ((list, tuple, np.ndarray), "one number for each domain"),
    "pre_predicate": _REASON,
}
"""Method of a point -> the types of its answer, and their description."""
_SORT_KEYS = ("job_order", "sub_job_order", "task_order")


class PluginMistake(TypeError):
    """An answer that a plugin must not give. The text names the plugin, its file and line, what was found and what is expected."""


def is_foreign(kind: type) -> bool:
    """Whether a class comes from outside of Navarch: a package's entry point or a plugin directory."""
    return is_foreign_module(kind.__module__)


def is_foreign_module(name: str) -> bool:
    return not name.startswith("navarch.")


def checked(kind: type[Plugin]) -> type[Plugin]:
    """The same plugin with checked answers. Made once a class: static answers are cached by the class of a filter or scorer."""
    known: type[Plugin] | None = vars(kind).get("checked_subclass")
    if known is not None:
        return known
    members: dict[str, Any] = {}
    for name, (types, words) in EXPECTED.items():
        if callable(getattr(kind, name, None)):
            members[name] = _checking(kind, name, types, words)
    for name in _SORT_KEYS:
        if callable(getattr(kind, name, None)):
            members[name] = _checking_key(kind, name)
    for name, base in (("node_filters", NodeFilter), ("node_scorers", NodeScorer)):
        if callable(getattr(kind, name, None)):
            members[name] = _checking_functions(kind, name, base)
    made = _subclass(kind, {"__doc__": kind.__doc__, **members})
    type.__setattr__(kind, "checked_subclass", made)
    return made


def _subclass(kind: type[C], members: dict[str, Any]) -> type[C]:
    made: type[C] = type(kind.__name__, (kind,), {"__module__": kind.__module__, "__qualname__": kind.__qualname__, **members})
    return made


@contextmanager
def _asking(plugin: Plugin, *arguments: Any) -> Iterator[None]:
    """The body asks the plugin. Its time is taken, and the job that it is asked about is noted."""
    session = plugin.session
    started = session.stopwatch()
    if session.note_job is not None:
        session.note_job(_job_key(session, arguments) or session.turn)
    try:
        yield
    finally:
        if session.note_job is not None:
            session.note_job(session.turn)
        key = f"{plugin.name} (asked)"
        session.timings[key] = session.timings.get(key, 0.0) + session.stopwatch() - started


def _job_key(session: Session, arguments: Sequence[Any]) -> str:
    """The key of the first job among the arguments of a method; empty: none."""
    for value in arguments:
        if isinstance(value, SubJob | GangTree | Scenario | Change):
            value = value.job
        if isinstance(value, Job):
            return value.key
        row = value.task if isinstance(value, TaskClass) else value
        if isinstance(row, int) and 0 <= row < len(session.snapshot.tasks.job) and (job := session.job_of(row)) is not None:
            return job.key
    return ""


def place_of_code(function: Callable[..., Any]) -> str:
    """File and line of a method."""
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def _mistake(kind: type[Plugin], name: str, found: str, expected: str, method: Callable[..., Any]) -> PluginMistake:
    return PluginMistake(f"plugin {kind.name} ({place_of_code(method)}): {name} answers with {found}; expected {expected}")


def _shown(answer: object) -> str:
    text = repr(answer)
    return f"{type(answer).__name__} {text if len(text) <= 80 else text[:77] + '...'}"


def _checking(kind: type[Plugin], name: str, types: tuple[type, ...], words: str) -> Callable[..., Any]:
    method = getattr(kind, name)

    @wraps(method)
    def ask(self: Plugin, *arguments: Any, **named: Any) -> Any:
        with _asking(self, *arguments):
            answer = method(self, *arguments, **named)
        if not isinstance(answer, types) or (bool not in types and isinstance(answer, bool)):
            raise _mistake(kind, name, _shown(answer), words, method)
        return answer

    return ask


def _checking_key(kind: type[Plugin], name: str) -> Callable[..., Any]:
    """A sort key must compare with itself; NaN does not, and makes an order of chance."""
    method = getattr(kind, name)

    @wraps(method)
    def ask(self: Plugin, *arguments: Any) -> Any:
        with _asking(self, *arguments):
            key = method(self, *arguments)
        if not _compares(key):
            raise _mistake(kind, name, _shown(key), "a value that can be compared (a number, text or a tuple)", method)
        return key

    return ask


def _compares(key: Any) -> bool:
    try:
        return bool(not key < key and key == key)
    except TypeError:
        return False


def _checking_functions(kind: type[Plugin], name: str, base: type[F]) -> Callable[..., list[F]]:
    method = getattr(kind, name)
    classes: dict[type[F], type[F]] = {}

    @wraps(method)
    def ask(self: Plugin) -> list[F]:
        functions = method(self)
        if not isinstance(functions, Sequence) or not all(isinstance(each, base) for each in functions):
            raise _mistake(kind, name, _shown(functions), f"a list of {base.__name__}", method)
        for each in functions:
            each.navarch_plugin = self
            if type(each) not in classes.values():
                if type(each) not in classes:
                    classes[type(each)] = _checked_function(type(each), kind)
                each.__class__ = classes[type(each)]
        return list(functions)

    return ask


def _checked_function(kind: type[F], plugin: type[Plugin]) -> type[F]:
    """The same filter or scorer with checked answers and read-only figures."""
    name = "mask" if issubclass(kind, NodeFilter) else "raw"
    members: dict[str, Any] = {"__slots__": (), "navarch_plugin": None, name: _checking_column(kind, plugin, name)}
    if name == "mask":
        members["reject"] = _checking_reject(kind, plugin)
    return _subclass(kind, members)


def _checking_column(kind: type[NodeFilter] | type[NodeScorer], plugin: type[Plugin], name: str) -> Callable[..., Any]:
    method = getattr(kind, name)
    wanted = np.bool_ if name == "mask" else np.number
    words = f"a numpy array of {'booleans' if name == 'mask' else 'finite numbers'}, one for each of"

    @wraps(method)
    def ask(self: Any, task: TaskClass, at: Figures) -> Any:
        with _asking(self.navarch_plugin, task):
            answer, columns = method(self, task, ReadOnlyFigures(at)), at.used.shape[1]
        found = _shown(answer)
        if isinstance(answer, np.ndarray):
            found = f"{answer.dtype} {answer.shape}"
            if answer.shape == (columns,) and np.issubdtype(answer.dtype, wanted):
                if name == "mask" or np.isfinite(answer).all():
                    return answer
                found = "numbers that are not finite"
        raise _mistake(plugin, f"{self.name}.{name}", found, f"{words} {columns} nodes", method)

    return ask


def _checking_reject(kind: type[Any], plugin: type[Plugin]) -> Callable[..., Any]:
    method = kind.reject

    @wraps(method)
    def ask(self: Any, task: TaskClass) -> Rejection | None:
        answer = method(self, task)
        if not isinstance(answer, Rejection | None):
            raise _mistake(plugin, f"{self.name}.reject", _shown(answer), "a Rejection or None", method)
        return answer

    return ask
