"""The domains of a job whose nodes must have the same value of a label (a topology constraint of Kubernetes' groups)."""

from __future__ import annotations

import numpy as np

from navarch.engine.job import Job
from navarch.engine.reasons import Event, Reason
from navarch.engine.topology.domains import NOWHERE, label_tree
from navarch.model.resources import BoolArray
from navarch.model.status import IS_ALLOCATED


def label_domains(job: Job) -> list[BoolArray]:
    """The nodes of each domain, by value of the label: all of them, or the one where the job runs. None, if it runs in several."""
    session, demand = job.session, job.spec.topology
    assert demand is not None and demand.label
    tree = label_tree(session.snapshot, demand.label)
    held = sorted({int(session.node[task]) for task in job.tasks if IS_ALLOCATED[session.status[task]] and session.node[task] >= 0})
    taken = sorted({int(domain) for domain in tree.at_tier(0)[held]}) if held else []
    if len(taken) > 1 or NOWHERE in taken:
        return []
    return [tree.mask(domain) for domain in taken or np.flatnonzero(tree.tier == 0).tolist()]


def no_label_domain(job: Job) -> Reason:
    demand = job.spec.topology
    assert demand is not None
    text = f"no domain of the label {demand.label} can hold the group: no node has it, or its pods are in several"
    return Reason("NoTopologyDomain", text, figures={"label": demand.label}, undone_by=(Event.NODE_ADDED, Event.NODE_CHANGED))
