"""`check_plugin`: finds mistakes in a plugin before it runs in a cluster.

It checks the class (name, arguments, methods with misspelt names of extension points, signatures) and then runs it on a small random
cluster. Node functions must return one value for each node, and the same value for one row as for all rows. They must keep the
promise of their scope, and read only fields of a pod that distinguish task classes (`undeclared_reads`). Orders must compare. Two
equal sessions must decide equally, and so must a session that goes on in a further cycle and a new one (`next_cycle_check`).

    problems = check_plugin(MyPlugin)
    assert not problems, "\\n".join(problems)
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.checked_plugins import PluginMistake, checked
from navarch.engine.points.declaration import declaration_problems
from navarch.engine.points.protocols import implemented_points
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.registry import RegistrationError, Registry
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus
from navarch.testing.next_cycle_check import check_next_cycle
from navarch.testing.undeclared_reads import Reads, RecordingLabels, RecordingSession, check_reading


def check_plugin(plugin: type[Plugin], arguments: Mapping[str, object] | None = None, seed: int = 0) -> list[str]:
    """All problems, as sentences; an empty list if there are none."""
    problems = list(_look_at(plugin))
    if problems:
        return problems
    try:
        first = _decide(plugin, arguments or {}, seed)
        second = _decide(plugin, arguments or {}, seed)
    except PluginMistake as mistake:
        return [str(mistake)]
    except (Exception, SystemExit) as error:  # any exception of the plugin is a problem to report
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}, in {last.name}"
        return [f"it fails on a small cluster: {type(error).__name__}: {error} ({where})"]
    problems = first[0]
    if first[1] != second[1]:
        problems.append("two sessions over the same cluster give different answers: is there a clock, a set or a random number?")
    return problems or check_next_cycle(plugin, arguments or {}, seed)


def _look_at(plugin: type[Plugin]) -> Iterable[str]:
    try:
        Registry([plugin])
    except (RegistrationError, AttributeError) as error:
        yield str(error)
        return
    yield from declaration_problems(plugin)


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
    session = RecordingSession(_world(seed, reads).snapshot(), policy, Registry([checked(plugin)]), now=0.0)
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
            _ask_points(one, implemented_points(plugin), job, session.class_of(next(iter(job.tasks))))
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


_ASKED: dict[str, Callable[[Any, Job, TaskClass], object]] = {
    "job_valid": lambda plugin, job, task: plugin.job_valid(job),
    "job_enqueueable": lambda plugin, job, task: plugin.job_enqueueable(job),
    "job_ready": lambda plugin, job, task: plugin.job_ready(job),
    "job_pipelined": lambda plugin, job, task: plugin.job_pipelined(job),
    "job_starving": lambda plugin, job, task: plugin.job_starving(job),
    "overused": lambda plugin, job, task: plugin.overused(job.queue),
    "allocatable": lambda plugin, job, task: plugin.allocatable(job.queue, task, 1),
    "preemptive": lambda plugin, job, task: plugin.preemptive(job.queue, task),
    "pre_predicate": lambda plugin, job, task: plugin.pre_predicate(task),
}


def _ask_points(plugin: Plugin, points: tuple[str, ...], job: Job, task: TaskClass) -> None:
    """Ask the points that need no particular situation. An answer of the wrong form raises PluginMistake (`checked_plugins`)."""
    for point, ask in _ASKED.items():
        if point in points:
            ask(plugin, job, task)


def _ask(function: NodeFilter | NodeScorer, task: TaskClass, at: Figures) -> Any:
    return function.mask(task, at) if isinstance(function, NodeFilter) else function.raw(task, at)


def _whole(session: Session, function: NodeFilter | NodeScorer, task: TaskClass) -> Any:
    return _ask(function, task, session.nodes) if function.applies(task) else None


def _check_function(session: Session, function: NodeFilter | NodeScorer, task: TaskClass, picture: list[Any]) -> list[str]:
    ask = partial(_ask, function, task)
    problems: list[str] = []
    nodes, where = session.nodes, f"{function.name} ({function.scope.value})"
    whole = ask(nodes)
    picture.append(whole.tolist())
    if function.scope is Scope.GLOBAL:
        return []
    rows = np.array([5, 2], dtype=np.intp)
    part = ask(nodes.at(rows))
    if not np.array_equal(part, whole[rows], equal_nan=True):
        problems.append(f"{where} answers differently for a row alone than among all rows; use only `at` and static data by `at.rows`")
    if function.scope is Scope.ROW:
        ladder = nodes.ladder(rows, np.zeros(2, dtype=np.int64), 3, task.request, task.footprint, pipelined=False)
        ask(ladder)  # an answer of another length raises PluginMistake
    else:
        everywhere, one = np.arange(len(nodes), dtype=np.intp), np.ones(len(nodes), dtype=np.int64)
        nodes.place(everywhere, one, task.request, task.footprint, 1, pipelined=False)
        if not np.array_equal(np.asarray(ask(nodes)), whole, equal_nan=True):
            problems.append(f"{where} changes with a node's figures: its scope is row, not static")
        nodes.place(everywhere, one, task.request, task.footprint, -1, pipelined=False)
    return problems
