"""The vectorised filters and scores against the slow reference, on random clusters.

Whole pods through all plugins: which nodes pass, what each of the others says, and what the candidates score together; then
victims of preemption; then a few placements in one session, after which counts kept by change must say what a fresh look says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.parity.kube_cases import check_search, session_of
from tests.reference.cluster import Cluster as SlowCluster
from tests.reference.cycle import DEFAULT_ARGS, FILTERS, WEIGHTS, Filtering, totals
from tests.reference.preemption import Candidate as SlowCandidate
from tests.reference.preemption import dry_run
from tests.worlds.random_clusters import Maker

from navarch.actions.kube_scheduler.nominations import Nominations
from navarch.actions.kube_scheduler.preemption import Candidate, PodPreemption
from navarch.engine.node_functions import first_rejection
from navarch.engine.session import Session
from navarch.engine.statement import Statement

PLUGINS: dict[str, dict[str, Any]] = {
    **{kind.__name__: dict(DEFAULT_ARGS.get(kind.__name__, {})) for kind in (*FILTERS, *WEIGHTS)},
}
for kind, weight in WEIGHTS.items():
    PLUGINS[kind.__name__]["weight"] = weight

seeds = st.integers(0, 2**64 - 1)
many = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


def slow(case: dict[str, Any]) -> SlowCluster:
    return SlowCluster(case["nodes"], case["existingPods"], case["objects"])


def fast(case: dict[str, Any]) -> tuple[Session, int]:
    session, row = session_of(case, PLUGINS)
    session.resources_by_filters = True
    return session, row


@many
@example(3029243971)  # a pod that stands somewhere says the same term twice, and both weigh
@given(seeds)
def test_filters_and_scores_are_the_references(seed: int) -> None:
    case = Maker(seed).case(volumes=seed % 2 == 0)
    cluster = slow(case)
    session, row = fast(case)
    task = session.class_of(row)
    filtering = Filtering(cluster, case["pod"])
    rejected = first_rejection(session.filters, task)
    if filtering.rejection is not None and filtering.rejection.code != "Success" and rejected is not None:
        assert [rejected[1].message] == list(filtering.rejection.reasons)
        return
    assert rejected is None and filtering.rejection is None
    view = session.view(task)
    wanted = {name: filtering.check(node) for name, node in cluster.nodes.items()}
    feasible = view.feasible()
    assert dict(zip(session.nodes.names, feasible.tolist(), strict=True)) == {n: s.ok for n, s in wanted.items()}
    for number, name in enumerate(session.nodes.names):
        texts, hopeless = view.refusal_at(number)
        assert sorted(texts) == sorted(wanted[name].reasons)
        assert hopeless == (wanted[name].code == "UnschedulableAndUnresolvable")
    candidates = [node for name, node in cluster.nodes.items() if wanted[name].ok]
    if candidates:
        found = view.totals(feasible)
        problems = [s.problem(task) for s in session.scorers if s.applies(task) and s.problem(task)]
        try:
            expected = totals(cluster, case["pod"], candidates)
        except ValueError as error:
            assert problems == [str(error)]
            return
        assert not problems
        assert {n: found[i] for i, n in enumerate(session.nodes.names) if feasible[i]} == expected


@many
@example(5052)  # a claim of the same name in another namespace leaves with its pod
@example(1177772)  # two pods name the exclusive claim: the first of them may come back
@example(3171192063)  # a pod that is leaving already was never counted, and yet a dry run counts it away
@example(3391199904)  # a pod that comes back in a dry run takes no volume
@given(seeds)
def test_victims_are_the_references(seed: int) -> None:
    case = Maker(seed).case(volumes=seed % 4 == 0)
    case["pod"]["spec"]["priority"] = 7
    cluster = slow(case)
    session, row = fast(case)
    if Filtering(cluster, case["pod"]).rejection is not None:
        return
    preemption = PodPreemption(session, Nominations(session))
    one_by_one = {}
    for number, name in enumerate(session.nodes.names):
        wanted = dry_run(cluster, case["pod"], name)
        found = preemption.dry_run(row, number)
        if isinstance(wanted, SlowCandidate):
            assert isinstance(found, Candidate)
            assert [session.task(v).name for v in found.victims] == [v["metadata"]["name"] for v in wanted.victims]
            assert found.violations == wanted.violations
        else:
            assert not isinstance(found, Candidate)
            assert sorted(found.texts) == sorted(wanted.reasons)
        one_by_one[number] = found
    check_search(preemption, row, one_by_one)


@many
@given(seeds, st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_counts_kept_by_change_are_those_of_a_fresh_look(seed: int, moves: list[int]) -> None:
    """Place copies of the pod one after the other, undo the last, and ask again in a session that starts there."""
    case = Maker(seed).case()
    meta = case["pod"]["metadata"]
    copies = [{**case["pod"], "metadata": {**meta, "name": f"c{i}", "uid": f"uid-c{i}"}} for i in range(len(moves))]
    session, row = session_of(case, PLUGINS, waiting=copies)
    session.resources_by_filters = True
    task = session.class_of(row)
    view = session.view(task)
    if seed % 2:  # counts that exist follow the moves; others are made after them
        view.feasible()
        view.totals(np.ones(len(session.nodes), dtype=bool))
    row_of = {spec.name: number for number, spec in enumerate(session.snapshot.tasks.specs) if spec is not None}
    stood: list[tuple[dict[str, Any], int]] = []
    last: Statement | None = None
    for copy, move in zip(copies, moves, strict=True):
        node, number = move % len(session.nodes), row_of[copy["metadata"]["name"]]
        job = session.job_of(number)
        if job is not None and view.passes(node):
            last = session.statement()
            last.allocate(job, [number], [node], session.class_of(number))
            stood.append((copy, node))
    if last is not None:
        last.discard()
        stood.pop()
    placed = [{**copy, "spec": {**copy["spec"], "nodeName": session.nodes.names[node]}} for copy, node in stood]
    fresh, again = fast({**case, "existingPods": [*case["existingPods"], *placed]})
    other = fresh.view(fresh.class_of(again))
    feasible = view.feasible()
    assert feasible.tolist() == other.feasible().tolist()
    if feasible.any() and not any(s.problem(task) for s in session.scorers if s.applies(task)):
        assert view.totals(feasible)[feasible].tolist() == other.totals(feasible)[feasible].tolist()


@pytest.mark.parametrize("percentage", [0, 5, 50, 100])
def test_sampling_is_bounded(percentage: int) -> None:
    from navarch.actions.kube_scheduler.schedule import nodes_to_find

    for size in (0, 1, 99, 100, 5000, 100_000):
        assert 0 <= nodes_to_find(size, percentage) <= size
