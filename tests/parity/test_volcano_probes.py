"""What Volcano's plugins said before any action ran: node scores, refusals and admissions, asked of our plugins directly.

Scores are over the nodes that pass the predicates, resources aside, and are compared to the last decimals that adding floats in
another order may change.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.parity.shared_cases import Case, shared_directory
from tests.parity.volcano_judge import policy_of

from navarch.dialects.inventory import Inventory
from navarch.dialects.manifests import Document, objects_in
from navarch.engine.session import Session
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.plan import read_policy, settings_for

ELSEWHERE = ("network-topology-aware",)
"""Suites whose plugin is judged by other tests."""


def cases() -> list[Any]:
    shared = shared_directory()
    if shared is None:
        return [pytest.param(None, marks=pytest.mark.skip(reason="no recordings: NAVARCH_SHARED and ../shared are absent"))]
    out = []
    for file in ("probes", "random"):
        for number, line in enumerate((shared / "parity" / "volcano" / f"{file}.jsonl").read_text().splitlines()):
            case = json.loads(line)
            if case["expect"].get("probe") and not any(name in case["suite"] for name in ELSEWHERE):
                out.append(pytest.param(case, id=f"{file}-{number}-{Path(case['suite']).name}"))
    return out


def opened(case: Case) -> Session:
    registry = installed()
    policy = read_policy(policy_of(case), registry)
    documents = [found for each in case["objects"] for found in objects_in(each) if isinstance(found, Document)]
    inventory, cluster = Inventory(documents, settings_for(policy)), Cluster()
    inventory.fill(cluster)
    return Session(cluster.snapshot(policy.semantics.node_order), policy, registry, inventory.newest)


@pytest.mark.parametrize("case", cases())
def test_volcano_probe(case: Case) -> None:
    session, probe = opened(case), case["expect"]["probe"]
    rows = {spec.key: row for row, spec in enumerate(session.snapshot.tasks.specs) if spec is not None}
    for pod in sorted(probe.get("scores", {}).keys() | probe.get("unfit", {}).keys()):
        assert node_answers(session, rows[pod]) == pytest.approx(probe.get("scores", {}).get(pod, {})), pod
    jobs = {job.key: job for job in session.all_jobs()}
    for group, wanted in probe.get("enqueueable", {}).items():
        job = jobs[group]
        admitted = job.spec.min_resources is None or session.job_enqueueable(job) is None
        assert admitted is wanted, group


def node_answers(session: Session, task: int) -> dict[str, float]:
    """Node -> score of the nodes that pass."""
    found = session.class_of(task)
    if session.pre_predicate(found) is not None:
        return {}
    view = session.view(found)
    group = view.feasible()
    totals = view.totals(group)
    return {session.nodes.names[row]: float(totals[row]) for row in np.flatnonzero(group).tolist()}
