"""What each plugin of Volcano answered before any action ran: node scores, refusals of nodes, admissions.

A decision can be right for the wrong reason. These are the reasons: every score of every pod on every node that passes the
filters, as the sum of all plugins (recorded to six digits), and the text with which a node was refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.parity.recorded import recorded_cases
from tests.parity.volcano_judge import policy_of

from navarch.engine.session import Session
from navarch.installed import installed
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.plan import read_policy, settings_for

Case = dict[str, Any]
CASES = [
    case
    for name in ("probes", "random")
    for case in recorded_cases(f"volcano/{name}.jsonl", lambda case: bool(case["expect"].get("probe")))
]


def session_of(case: Case) -> Session:
    registry = installed()
    policy = read_policy(policy_of(case), registry)
    inventory = Inventory([Document(manifest) for manifest in case["objects"]], settings_for(policy))
    assert not inventory.mistakes
    cluster = inventory.cluster
    return Session(cluster.snapshot(policy.semantics.node_order), policy, registry, inventory.newest)


def task_rows(session: Session) -> dict[str, int]:
    return {spec.key: row for row, spec in enumerate(session.snapshot.tasks.specs) if spec is not None}


@pytest.mark.parametrize("case", CASES)
def test_answers_at_the_start_of_the_cycle(case: Case) -> None:
    probe = case["expect"]["probe"]
    session = session_of(case)
    rows, names = task_rows(session), session.nodes.names
    for pod in sorted(probe.get("scores", {}).keys() | probe.get("unfit", {}).keys()):
        view = session.view(session.class_of(rows[pod]))
        feasible = view.feasible()
        totals = view.totals(feasible)
        found = {names[row]: float(totals[row]) for row in np.flatnonzero(feasible).tolist()}
        assert found == pytest.approx(probe.get("scores", {}).get(pod, {}), rel=1e-12, abs=1e-6), pod
        for node, text in probe.get("unfit", {}).get(pod, {}).items():
            row = names.index(node)
            refusals = [r for f in session.filters for r in f.explain(view.task, session.nodes) if r.refused[row]]
            assert refusals, f"{pod} on {node}: {text}"
            assert text.endswith(refusals[0].message), f"{pod} on {node}: {refusals[0].message!r}, wanted {text!r}"
    jobs = {job.key: job for job in session.all_jobs()}
    for group, admitted in probe.get("enqueueable", {}).items():
        assert (session.job_enqueueable(jobs[group]) is None) == admitted, group
