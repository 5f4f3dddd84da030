"""Shortages: which nodes lack which resources for a task, in KAI's words.

A node that cannot hold the task, even after all releases, names every resource that it lacks now: allocatable minus used and
promised. Other nodes are checked by the limits of the queue, then by the filters. Only the nodes of the attempt count: where a job
must stay within one rack, the other racks do not.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from navarch.engine.job import Job
from navarch.engine.node_functions import TaskClass
from navarch.engine.placement.class_view import ClassView
from navarch.engine.placement.fit_errors import FitErrors
from navarch.engine.points.gang_protocols import NodeBounds
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.model.gpus import GPU_RESOURCES, mig_gpus
from navarch.model.resources import BoolArray, IntArray, format_amount

NO_NODES: Final = "no nodes with enough resources were found"
NO_WORD: Final = "Unable to schedule pod"
"""For a pod that no node refused and no node took."""
_NAMES: Final = {"cpu": "CPU cores", "memory": "memory"}


class Shortages:
    """Made with `Session.shared`. A long backlog of equal tasks asks repeatedly, so answers are cached while no node changes."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._kept: dict[int, tuple[int, FitErrors]] = {}

    def of(self, job: Job, task: int, view: ClassView, within: BoolArray, *, everywhere: bool) -> FitErrors:
        bounds = [(p, allowed) for p in self.session.implementing(NodeBounds) if (allowed := p.within_bounds(job, task)) is not None]
        lasting = everywhere and not view.global_filters and not bounds
        kept = self._kept.get(view.task.number)
        if lasting and kept is not None and kept[0] == view.read:
            return kept[1]
        short = ~view.future & within
        errors = FitErrors(int(within.sum()), message=NO_NODES if short.any() else "")
        _count_short(self.session, view.task, short, errors)
        open_ = view.future & within
        for plugin, allowed in bounds:
            for node in np.flatnonzero(open_ & ~allowed).tolist():
                reason: Reason | None = plugin.bounds_reason(job, task, node)
                if reason is not None:
                    _add(errors, f"node does not have enough capacity. Reason: {reason.code}, Details: {reason.message}", 1)
            open_ &= allowed
        said = view.explain(resources=False, within=open_)
        for text, count in said.nodes.items():
            _add(errors, text, count)
        errors.unresolvable, errors.codes, errors.undone_by = said.unresolvable, said.codes, said.undone_by
        errors.message = _text(errors)
        if lasting:
            self._kept[view.task.number] = view.read, errors
        return errors


def _count_short(session: Session, task: TaskClass, short: BoolArray, errors: FitErrors) -> None:
    """Count what the nodes that are too small lack. A node may lack several resources, or none by name."""
    if not short.any():
        return
    for name, asked, free in _claims(session, task):
        lacking = int((short & (free < asked)).sum())
        if lacking:
            _add(errors, _lacks(name), lacking)
            most = int(free[short].max())
            errors.figures[f"{name} requested"] = format_amount(name, asked)
            errors.figures[f"{name} free on the best node"] = format_amount(name, max(most, 0))
    devices = task.shape.devices
    if session.devices is not None and devices is not None and devices.memory:
        small = short & (session.devices.memory < devices.memory)
        if small.any():
            _add(errors, _lacks("GPU memory"), int(small.sum()))
            errors.figures["GPU memory requested"] = f"{devices.memory}Mi"
            errors.figures["GPU memory of the best node"] = f"{int(session.devices.memory[short].max())}Mi"


def _claims(session: Session, task: TaskClass) -> list[tuple[str, int, IntArray]]:
    """The requests of the task: name, amount, and the amount on each node that is neither used nor promised."""
    nodes, names = session.nodes, session.snapshot.resource_names
    free = nodes.allocatable - nodes.used - nodes.pipelined
    gpus = [dim for dim, name in enumerate(names) if name in GPU_RESOURCES]
    asked_for = [dim for dim in np.flatnonzero(task.request).tolist() if dim not in gpus]
    sliced = any(mig_gpus(names[dim]) for dim in asked_for)
    found = [(names[dim], int(task.request[dim]), free[dim]) for dim in asked_for if dim not in session.claimable_dims]
    devices = task.shape.devices
    asked = int(task.request[gpus].sum())
    if devices is not None and devices.fraction:
        asked += devices.count * devices.fraction
    if asked and gpus and not sliced:
        found.append((names[gpus[0]], asked, free[gpus].sum(axis=0)))
    return found


def _lacks(name: str) -> str:
    if mig_gpus(name):
        return f"node(s) didn't have enough of mig profile: {name}"
    return f"node(s) didn't have enough resources: {'GPUs' if name in GPU_RESOURCES else _NAMES.get(name, name)}"


def _add(errors: FitErrors, text: str, count: int) -> None:
    errors.nodes[text] = errors.nodes.get(text, 0) + count


def _text(errors: FitErrors) -> str:
    """The parts are sorted as texts: "10 x" comes before "2 x"."""
    if not errors.nodes:
        return errors.message or NO_WORD
    return f"{NO_NODES}: " + ". \n".join(sorted(f"{count} {text}" for text, count in errors.nodes.items())) + "."
