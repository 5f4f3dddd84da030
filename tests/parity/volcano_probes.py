"""Reading what plugins answer before any action runs, and comparing it with a recorded probe.

A probe holds, for each pending pod, the score of every node that passes the filters and the text of every refusal; for each group
the order of its pending pods; and whether a group may be admitted. `<field>Varies` holds three readings of a field that depended on
the iteration order of a map: those are compared by their ranges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.parity.recorded import Case
from tests.parity.volcano_inputs import cycles_of

from navarch.engine.session import Session
from navarch.model.status import TaskStatus

Policy = dict[str, Any]


def session_of(case: Case, policy: Policy) -> Session:
    run = cycles_of(case, policy)
    chosen = run.rules.policy
    return Session(run.cluster.snapshot(chosen.semantics.node_order), chosen, run.rules.registry, run.now)


def plugin_alone(policy: Policy, name: str) -> Policy:
    """The policy with no other plugin than this one."""
    options = [option for tier in policy["tiers"] for option in tier["plugins"] if option["name"] == name]
    return {**policy, "tiers": [{"plugins": options}]}


def task_rows(session: Session) -> dict[str, int]:
    return {spec.key: row for row, spec in enumerate(session.snapshot.tasks.specs) if spec is not None}


def check_probe(session: Session, probe: Case) -> None:
    """Assert that the session gives the recorded answers."""
    rows = task_rows(session)
    for pod in sorted(probe.get("scores", {}).keys() | probe.get("unfit", {}).keys()):
        if "scoresVaries" not in probe:
            assert scores_of(session, rows[pod]) == pytest.approx(probe.get("scores", {}).get(pod, {}), rel=1e-12, abs=1e-6), pod
        check_refusals(session, rows[pod], probe.get("unfit", {}).get(pod, {}))
    for readings in zip(*(_flat(reading) for reading in probe.get("scoresVaries", ())), strict=True):
        (pod, node), values = readings[0][0], [value for _, value in readings]
        slack = _spread(probe["scoresVaries"])
        found = scores_of(session, rows[pod])[node]
        assert min(values) - slack <= found <= max(values) + slack, (pod, node)
    for group, order in probe.get("taskOrder", {}).items():
        job = next(job for job in session.all_jobs() if job.key == group)
        pending = session.sorted_tasks(list(job.tasks_in(TaskStatus.PENDING)))
        assert [session.task(row).name for row in pending] == order, group
    jobs = {job.key: job for job in session.all_jobs()}
    for group, admitted in probe.get("enqueueable", {}).items():
        assert (session.job_enqueueable(jobs[group]) is None) == admitted, group


def scores_of(session: Session, row: int) -> dict[str, float]:
    """Node -> score, over the nodes that pass every filter; resources aside."""
    view = session.view(session.class_of(row))
    feasible = view.feasible()
    totals = view.totals(feasible)
    return {session.nodes.names[node]: float(totals[node]) for node in np.flatnonzero(feasible).tolist()}


def check_refusals(session: Session, row: int, wanted: dict[str, str]) -> None:
    """Assert that each of these nodes is refused, and that the first reason is the recorded one."""
    task = session.class_of(row)
    for node, text in wanted.items():
        at = session.nodes.names.index(node)
        refusals = [r for f in session.filters_for(task) for r in f.explain(task, session.nodes) if r.refused[at]]
        assert refusals, f"{session.task(row).key} on {node}: {text}"
        assert text.endswith(refusals[0].message), f"{session.task(row).key} on {node}: {refusals[0].message!r}, wanted {text!r}"


def _flat(reading: dict[str, dict[str, float]]) -> list[tuple[tuple[str, str], float]]:
    return [((pod, node), score) for pod, nodes in sorted(reading.items()) for node, score in sorted(nodes.items())]


def _spread(readings: list[dict[str, dict[str, float]]]) -> float:
    """Three readings do not show the whole range: what one of them may miss is at most the widest range that was seen."""
    columns = zip(*([score for _, score in _flat(reading)] for reading in readings), strict=True)
    return max(float(max(column) - min(column)) for column in columns)
