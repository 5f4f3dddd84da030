"""Counts why nodes refuse the tasks of a class, for the text on a pod that found no node.

Each node counts for the first filter that refuses it, resources before filters, as in kube-scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from navarch.engine.node_functions import Refusal
from navarch.engine.placement.fit_errors import ROOM, FitErrors
from navarch.engine.placement.shards import NO_NODE_IN_SHARD
from navarch.engine.reasons import Event
from navarch.model.gpus import GPU_RESOURCES
from navarch.model.resources import CPU, MEMORY, BoolArray

if TYPE_CHECKING:
    from navarch.engine.placement.class_view import ClassView
    from navarch.engine.session import Session


def count_refusals(view: ClassView, *, resources: bool, within: BoolArray | None) -> FitErrors:
    """`resources`: lacking resources count too. `within`: the nodes that count; None: all. None outside of a hard shard counts."""
    session, task = view.session, view.task
    if session.shard is not None and session.shard_is_hard:
        within = session.shard if within is None else within & session.shard
        if session.shard_problems:
            return _no_shard(session)
    open_ = np.ones(len(session.nodes), dtype=bool) if within is None else within.copy()
    unresolvable = np.zeros(len(session.nodes), dtype=bool)
    counts: dict[str, int] = {}
    codes: dict[str, None] = {}
    undone_by = dict.fromkeys(ROOM)
    refused = np.zeros(len(session.nodes), dtype=bool)
    if resources:
        short = _insufficient(view)
        asked = open_
        if session.semantics.refusals_tell_all:
            asked = open_ & view.static  # free resources do not help a node that labels or taints exclude
        for refusal in short:
            _count(refusal, asked, counts, codes, unresolvable)
        for refusal in short:
            refused |= refusal.refused
            open_ = open_ & ~(refusal.refused & asked)
    for f in session.filters_for(task):
        if not open_.any():
            break
        refusals = list(f.explain(task, session.nodes))
        for refusal in refusals:
            if _count(refusal, open_, counts, codes, unresolvable):
                undone_by.update(dict.fromkeys(f.undone_by))
        for refusal in refusals:
            refused |= refusal.refused
            open_ &= ~(refusal.refused if f.has_last_word else refusal.refused & refusal.unresolvable)
    if within is not None:
        refused &= within
    return FitErrors(int(refused.sum()), dict(sorted(counts.items())), unresolvable, tuple(codes), undone_by=tuple(undone_by))


def _no_shard(session: Session) -> FitErrors:
    nowhere = np.ones(len(session.nodes), dtype=bool)
    text, undone_by = ". ".join(session.shard_problems), (Event.NODE_ADDED, Event.NODE_CHANGED)
    return FitErrors(0, unresolvable=nowhere, codes=(NO_NODE_IN_SHARD,), message=text, undone_by=undone_by)


def _count(refusal: Refusal, open_: BoolArray, counts: dict[str, int], codes: dict[str, None], unresolvable: BoolArray) -> bool:
    """Whether it refuses any of them."""
    hit = refusal.refused & open_
    number = int(hit.sum())
    if not number:
        return False
    counts[refusal.message] = counts.get(refusal.message, 0) + number
    codes[refusal.code or refusal.message] = None
    unresolvable |= hit & refusal.unresolvable
    return True


def _insufficient(view: ClassView) -> list[Refusal]:
    """The first resource that a node lacks, in the order cpu, memory, others by name."""
    nodes, names = view.session.nodes, view.session.snapshot.resource_names
    free = nodes.future_idle
    order = sorted(view.dims.tolist(), key=lambda d: (d not in (CPU, MEMORY), d if d in (CPU, MEMORY) else 0, names[d]))
    out: list[Refusal] = []
    seen = np.zeros(len(nodes), dtype=bool)
    for dim in order:
        short = (free[dim] < view.task.request[dim]) & ~seen
        if dim in view.session.claimable_dims:
            short &= nodes.allocatable[dim] > 0
        seen |= short
        if short.any():
            out.append(Refusal(f"Insufficient {names[dim]}", short, code="InsufficientResources"))
    if view.devices is not None:
        short = ~(view.devices.fits(view.task, free, slice(None)) | seen)
        if short.any():
            out.append(
                Refusal(
                    f"Insufficient {names[view.devices.dims[0]] if view.devices.dims else GPU_RESOURCES[0]}",
                    short,
                    code="InsufficientResources",
                )
            )
    return out
