"""`check_plugin`: finds mistakes in a plugin before it runs in a cluster.

It checks the class (name, arguments, methods with misspelt names of extension points, signatures) and then runs it on a small random
cluster. Node functions must return one value for each node, and the same value for one row as for all rows. They must keep the
promise of their scope, and read only fields of a pod that distinguish task classes (`undeclared_reads`). Orders must compare. Two
equal sessions must decide equally.

    problems = check_plugin(MyPlugin)
    assert not problems, "\\n".join(problems)
"""

from __future__ import annotations

import difflib
import inspect
import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import POINTS, implemented_points, methods
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.registry import RegistrationError, Registry
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus
from navarch.testing.answers import check_answers
from navarch.testing.undeclared_reads import Reads, RecordingLabels, RecordingSession, check_reading

_OWN = frozenset({"open", "after_open", "close"})


def check_plugin(plugin: type[Plugin], arguments: Mapping[str, object] | None = None, seed: int = 0) -> list[str]:
    """All problems, as sentences; an empty list if there are none."""
    problems = list(_look_at(plugin))
    if problems:
        return problems
    try:
        first = _decide(plugin, arguments or {}, seed)
        second = _decide(plugin, arguments or {}, seed)
    except Exception as error:  # any exception of the plugin is a problem to report
        return [f"it fails on a small cluster: {type(error).__name__}: {error}"]
    problems = first[0]
    if first[1] != second[1]:
        problems.append("two sessions over the same cluster give different answers: is there a clock, a set or a random number?")
    return problems


def _look_at(plugin: type[Plugin]) -> Iterable[str]:
    try:
        Registry([plugin])
    except (RegistrationError, AttributeError) as error:
        yield str(error)
        return
    known = {method: protocol for protocol in POINTS.values() for method in methods(protocol)}
    for name, value in vars(plugin).items():
        if name.startswith("_") or not callable(value) or name in _OWN:
            continue
        protocol = known.get(name)
        if protocol is None:
            near = difflib.get_close_matches(name, known, 1, 0.8)
            if near:
                yield f"method {name!r} is no extension point; did you mean {near[0]!r}?"
        else:
            yield from _compare(name, value, getattr(protocol, name))
    for argument in plugin.arguments:
        if argument.kind == "duration":
            if not isinstance(argument.default, int | float | None):
                yield f"argument {argument.name!r}: its default does not fit its kind: found {argument.default!r}, expected seconds"
        elif argument.default is not None:
            try:
                argument.read(argument.default)
            except ValueError as error:
                yield f"argument {argument.name!r}: its default does not fit its kind: {error}"


def _compare(name: str, mine: Callable[..., Any], wanted: Callable[..., Any]) -> Iterable[str]:
    have, need = inspect.signature(mine).parameters, inspect.signature(wanted).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in have.values()):
        return
    required = [p for p in have.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    if len(have) < len(need) or len(required) > len(need):
        yield f"{name} takes {', '.join(list(have)[1:]) or 'nothing'}; expected {', '.join(list(need)[1:])}"


def _world(seed: int, reads: Reads) -> Cluster:
    """Two waiting jobs of different queues have the same shape."""
    rng = random.Random(seed)
    cluster = Cluster()
    for name in ("default", "other"):
        cluster.put_queue(QueueSpec(name, state="Open", weight=rng.randint(1, 4)))
    for i in range(7):
        amounts = {"cpu": rng.choice((4, 8, 16)), "memory": f"{rng.choice((8, 32))}Gi", "pods": rng.choice((3, 110))}
        cluster.put_node(NodeSpec(f"n{i}", allocatable=requests_from(amounts), labels={"kubernetes.io/hostname": f"n{i}"}))
    for j in range(6):
        running = j < 3
        key = f"ns/job{j}"
        phase = "Running" if running else "Inqueue"
        cluster.put_job(
            JobSpec(key, ("default", "other")[j % 2], min_member=2, namespace="ns", name=f"job{j}", phase=phase, priority=j)
        )
        if j != 4:
            shape = Shape(requests=requests_from({"cpu": f"{rng.choice((500, 1000, 2000))}m", "memory": f"{rng.choice((1, 3))}Gi"}))
        for t in range(3):
            cluster.put_task(
                TaskSpec(
                    uid=f"{j}-{t}",
                    namespace="ns",
                    name=f"job{j}-worker-{t}",
                    shape=shape,
                    job=key,
                    node=f"n{rng.randrange(7)}" if running else "",
                    status=TaskStatus.RUNNING if running else TaskStatus.PENDING,
                    labels=RecordingLabels("label", {"job": f"job{j}"}, reads),
                    annotations=RecordingLabels("annotation", {}, reads),
                )
            )
    return cluster


def _decide(plugin: type[Plugin], arguments: Mapping[str, object], seed: int) -> tuple[list[str], list[Any]]:
    """The problems, and a value that is equal for equal answers."""
    policy = Policy(("allocate",), ((PluginOption(plugin.name, arguments=arguments),),), dialect=plugin.dialect or "navarch")
    reads: Reads = set()
    session = RecordingSession(_world(seed, reads).snapshot(), policy, Registry([plugin]), now=0.0)
    problems: list[str] = []
    picture: list[Any] = []
    waiting = [t for job in session.all_jobs() for t in job.tasks_in(TaskStatus.PENDING)]
    functions: list[NodeFilter | NodeScorer] = [*session.filters, *session.scorers]
    session.make_classes(waiting, reads)
    for function in functions:
        problems += check_reading(session, function, waiting, partial(_whole, session, function), reads)
        for task in {session.class_of(t).number: session.class_of(t) for t in waiting}.values():
            if function.applies(task):
                problems += _check_function(session, function, task, picture)
    for job in session.all_jobs():
        for one in session.plugins:
            problems += check_answers(one, implemented_points(plugin), job, session.class_of(next(iter(job.tasks))))
    if problems:
        return list(dict.fromkeys(problems)), picture
    for job in session.all_jobs():
        picture.append(repr(session.job_order(job)))
        picture += [session.job_ready(job), session.job_pipelined(job), repr(session.job_valid(job))]
    sorted(session.all_jobs(), key=session.job_order)
    queues = list(session.queues.values())
    if session.queue_order(queues[0], queues[1]) != -session.queue_order(queues[1], queues[0]):
        problems.append("queue_order is not antisymmetric: swapping its arguments must swap the sign")
    statement = session.statement()
    for row in waiting[:3]:
        mine, task = session.job_of(row), session.class_of(row)
        assert mine is not None
        nodes, pipelined = session.view(task).choose(1)
        if nodes:
            (statement.pipeline if pipelined else statement.allocate)(mine, [row], nodes, task)
        picture.append(nodes)
    statement.discard()
    for one in session.plugins:
        one.close()
    return list(dict.fromkeys(problems)), picture


def _ask(function: NodeFilter | NodeScorer, task: TaskClass, at: Figures) -> Any:
    return function.mask(task, at) if isinstance(function, NodeFilter) else function.raw(task, at)


def _whole(session: Session, function: NodeFilter | NodeScorer, task: TaskClass) -> Any:
    return _ask(function, task, session.nodes) if function.applies(task) else None


def _check_function(session: Session, function: NodeFilter | NodeScorer, task: TaskClass, picture: list[Any]) -> list[str]:
    ask = partial(_ask, function, task)
    problems: list[str] = []
    nodes, where = session.nodes, f"{function.name} ({function.scope.value})"
    whole = np.asarray(ask(nodes))
    picture.append(whole.tolist())
    if whole.shape != (len(nodes),):
        return [f"{where} answers with shape {whole.shape} for {len(nodes)} nodes; expected one value a node"]
    wanted = np.bool_ if isinstance(function, NodeFilter) else np.number
    if not np.issubdtype(whole.dtype, wanted):
        return [f"{where} answers with {whole.dtype}; expected {'booleans' if wanted is np.bool_ else 'numbers'}"]
    if function.scope is Scope.GLOBAL:
        return []
    rows = np.array([5, 2], dtype=np.intp)
    part = np.asarray(ask(nodes.at(rows)))
    if part.shape != (2,) or not np.array_equal(part, whole[rows], equal_nan=True):
        problems.append(f"{where} answers differently for a row alone than among all rows; use only `at` and static data by `at.rows`")
    if function.scope is Scope.ROW:
        ladder = nodes.ladder(rows, np.zeros(2, dtype=np.int64), 3, task.request, task.footprint, pipelined=False)
        if np.asarray(ask(ladder)).shape != (6,):
            problems.append(f"{where} does not answer one value a column for imagined rows (a ladder)")
    else:
        nodes.used += task.request[:, None]
        if not np.array_equal(np.asarray(ask(nodes)), whole, equal_nan=True):
            problems.append(f"{where} changes with a node's figures: its scope is row, not static")
        nodes.used -= task.request[:, None]
    return problems
