"""A cluster model that lives for months forgets the labels of removed pods."""

from __future__ import annotations

import pytest
from tests.worlds.small_cluster import shape, with_nodes

from navarch.model.cluster import Cluster
from navarch.model.spec import TaskSpec
from navarch.model.tables import identities


def put(cluster: Cluster, number: int) -> None:
    cluster.put_task(TaskSpec(uid=str(number), namespace="ns", name=f"p{number}", shape=shape(cpu=1), labels={"job": str(number)}))


def labels_of(cluster: Cluster) -> dict[str, str]:
    snapshot = cluster.snapshot()
    rows = cluster.tasks.rows.of
    return {uid: dict(snapshot.identities[snapshot.tasks.labels[row]][1])["job"] for uid, row in rows.items()}


def test_label_sets_out_of_use_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "FORGET_AT", 10)
    cluster = with_nodes()
    kept = cluster.snapshot().identities
    for number in range(100):
        put(cluster, number)
        if number >= 5:
            cluster.remove_task(str(number - 5))
        assert all(uid == job for uid, job in labels_of(cluster).items())
    assert len(cluster.identities.pairs) < 30
    assert cluster.identities.pairs is not kept


def test_a_snapshot_keeps_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "FORGET_AT", 3)
    cluster = with_nodes()
    for number in range(10):
        put(cluster, number)
    before = cluster.snapshot()
    row = cluster.tasks.rows.of["9"]
    for number in range(9):
        cluster.remove_task(str(number))
    after = cluster.snapshot()
    assert before.identities[before.tasks.labels[row]] == after.identities[after.tasks.labels[row]]
    assert len(after.identities) == 1
