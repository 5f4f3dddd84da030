"""Why a pod stands on its node: what each score gave it there and on the node that would have been next.

The pod is judged as if it still waited, with everything else as it is now. What has come or gone since it was placed may make another
node look better today.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from navarch.engine.node_functions import NodeScorer, TaskClass
from navarch.engine.session import Session
from navarch.explanation.documents import copied
from navarch.explanation.nodes import opened
from navarch.explanation.result import NodeScores, Placement
from navarch.explanation.trials import Trials
from navarch.model.resources import BoolArray, FloatArray
from navarch.model.spec import TaskSpec


def placement_of(trials: Trials, task: TaskSpec) -> Placement | None:
    """None where the pod is not an object of the input."""
    found = trials.input.find("Pod", task.namespace, task.name)
    if not found:
        return None
    pod = copied(found[0])
    pod["spec"].pop("nodeName", None)
    pod["metadata"].pop("deletionTimestamp", None)
    pod["status"] = {"phase": "Pending"}
    run = trials.changed([pod])
    if run is None:
        return None
    row = run.cluster.tasks.rows.of.get(task.uid)
    session = opened(run)
    try:
        node = session.snapshot.nodes.row(task.node)
        return None if row is None or node is None else _placement(session, task, session.class_of(row), node)
    finally:
        session.dissolve()
        run.close()


def _placement(session: Session, task: TaskSpec, kind: TaskClass, node: int) -> Placement:
    view = session.view(kind)
    feasible = view.feasible() & view.idle
    if not feasible[node]:
        words, _ = view.refusal_at(node)
        why = ", ".join(words) or "no room"
        return Placement(task.key, task.node, feasible=int(feasible.sum()), note=f"as things are now its node would refuse it: {why}")
    columns = {scorer.name: _column(session, scorer, kind, feasible) for scorer in session.scorers_for(kind)}
    total = sum(columns.values(), start=np.zeros(len(session.nodes)))
    rest = np.where(feasible, total, -np.inf)
    rank = int((rest > rest[node]).sum()) + 1
    rest[node] = -np.inf
    other = int(np.argmax(rest)) if np.isfinite(rest).any() else -1
    return Placement(
        task.key,
        task.node,
        feasible=int(feasible.sum()),
        rank=rank,
        scores=_at(columns, total, node, session),
        runner_up=_at(columns, total, other, session) if other >= 0 else None,
    )


def _column(session: Session, scorer: NodeScorer, kind: TaskClass, feasible: BoolArray) -> FloatArray:
    scorer.prepare(kind, feasible)
    raw = scorer.raw(kind, session.nodes)
    if scorer.normalises:
        raw = scorer.normalise(kind, raw, float(raw[feasible].min()), float(raw[feasible].max()))
    return scorer.weight * np.asarray(raw, dtype=np.float64)


def _at(columns: Mapping[str, FloatArray], total: FloatArray, node: int, session: Session) -> NodeScores:
    scores = {name: round(float(column[node]), 3) for name, column in sorted(columns.items())}
    return NodeScores(session.nodes.names[node], round(float(total[node]), 3), scores)
