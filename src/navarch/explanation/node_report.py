"""Why a node takes nothing more: what is free there, and what each kind of waiting pod is refused for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from navarch.engine.session import Session
from navarch.explanation.nodes import opened
from navarch.explanation.result import NodeExplanation, WaitingShape
from navarch.explanation.trials import Run
from navarch.model.resources import format_amount
from navarch.views.useless_room import waiting_kinds


def explain_node(run: Run, name: str) -> NodeExplanation:
    session = opened(run)
    try:
        return node_explained(session, name)
    finally:
        session.dissolve()


def node_explained(session: Session, name: str) -> NodeExplanation:
    """The same in a session that no action has changed. The node has to be there."""
    row = session.snapshot.nodes.row(name)
    assert row is not None
    spec, names = session.nodes.specs[row], session.snapshot.resource_names
    free = session.nodes.idle[:, row].tolist()
    found = NodeExplanation(
        node=name,
        ready=spec.ready,
        unschedulable=spec.unschedulable,
        taints=[f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}" for taint in spec.taints],
        pods=int((session.node == row).sum()),
        free={each: format_amount(each, amount) for each, amount in zip(names, free) if amount > 0},
    )
    declared = dict(spec.allocatable)
    if declared and not session.nodes.allocatable[:, row].any():
        used = dict(zip(names, session.nodes.used[:, row].tolist()))
        over = [each for each, amount in sorted(declared.items()) if used.get(each, 0) > amount]
        found.notes.append(f"its pods request more {', '.join(over)} than it has, so the policy leaves it out")
    asked_for, fits = np.zeros(len(names), dtype=bool), np.zeros(len(names), dtype=bool)
    for task, jobs, pods in waiting_kinds(session, None):
        refused = _refusals(session, task, row)
        request = session.class_of(task).request
        asked_for |= request > 0
        if not refused:
            fits |= request > 0
        asked = {each: format_amount(each, amount) for each, amount in zip(names, request.tolist()) if amount and each != "pods"}
        found.waiting.append(WaitingShape(jobs, pods, asked, refused))
    useless = asked_for & ~fits
    found.useless = {each: amount for each, amount in found.free.items() if each != "pods" and useless[names.index(each)]}
    return found


def _refusals(session: Session, task: int, row: int) -> Sequence[str]:
    kind = session.class_of(task)
    view = session.view(kind)
    if not view.passes(row):
        return view.refusal_at(row)[0] or ["refused"]
    if view.idle[row]:
        return []
    free = session.nodes.idle[:, row]
    short = np.flatnonzero(kind.request > np.maximum(free, 0)).tolist()
    return [f"Insufficient {session.snapshot.resource_names[each]}" for each in short] or ["no room on its shared devices"]
