"""conformance: what the cluster cannot do without is never evicted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, job_in, open_session, row_in, shape, with_nodes

from navarch.plugins.conformance import Conformance


@pytest.mark.parametrize(
    ("fields", "stays"),
    [
        ({}, False),
        ({"priority_class": "system-node-critical"}, True),
        ({"priority_class": "system-cluster-critical"}, True),
        ({"priority_class": "high"}, False),
        ({"namespace": "kube-system"}, True),
        ({"namespace": "kube-system-like"}, False),
    ],
)
def test_critical_pods_are_never_victims(fields: dict[str, str], stays: bool) -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    add_job(cluster, "run", [shape(cpu=1)], node="n")
    add_job(cluster, "want", [shape(cpu=1)])
    spec = cluster.task("run-0")
    assert spec is not None
    cluster.put_task(replace(spec, **fields))
    session = open_session(cluster, Conformance)
    victim, asking = row_in(session, "run-0"), row_in(session, "want-0")
    answers = [
        session.preemptable(asking, [victim]),
        session.reclaimable(asking, [victim]),
        session.unified_evictable(job_in(session, "want"), [victim], reclaim=False),
        session.unified_evictable(job_in(session, "want"), [victim], reclaim=True),
    ]
    assert answers == [[] if stays else [victim]] * 4
