"""The cluster model: any order of events ends in the same figures, and nothing is left of removed objects."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from msgspec.structs import replace
from tests.worlds.small_cluster import shape, task

from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, NamespaceSpec, NodeSpec, PriorityClassSpec, QueueSpec, QuotaSpec, Shape
from navarch.model.status import TaskStatus

NODE = NodeSpec("n", allocatable=requests_from({"cpu": 8, "memory": "16Gi", "pods": 10}))
JOB = JobSpec("ns/j", "q")
TWO = shape(cpu=2, memory="1Gi")


def figures(cluster: Cluster) -> dict[str, object]:
    snapshot = cluster.snapshot()
    job = snapshot.jobs.keys.index("ns/j") if "ns/j" in snapshot.jobs.keys else None
    return {
        "used": dict(zip(snapshot.nodes.names, snapshot.nodes.used.T.tolist())),
        "counts": None if job is None else snapshot.jobs.counts[job].tolist(),
        "allocated": None if job is None else snapshot.jobs.allocated[:, job].tolist(),
        "where": [(spec.uid, int(snapshot.tasks.node[row])) for row, spec in enumerate(snapshot.tasks.specs) if spec is not None],
    }


def test_the_order_of_events_does_not_matter() -> None:
    events: list[Callable[[Cluster], None]] = [
        lambda c: c.put_node(NODE),
        lambda c: c.put_job(JOB),
        lambda c: c.put_task(task("t", TWO, "ns/j", "n")),
        lambda c: c.put_queue(QueueSpec("q")),
    ]
    ends = []
    for order in permutations(events):
        cluster = Cluster()
        for event in order:
            event(cluster)
        ends.append(figures(cluster))
    assert ends[0]["used"] == {"n": [2000, 1 << 30, 1]}
    assert ends[0]["allocated"] == [2000, 1 << 30, 1]
    assert all(end == ends[0] for end in ends)


@pytest.mark.parametrize(
    ("status", "used", "releasing"),
    [
        (TaskStatus.PENDING, 0, 0),
        (TaskStatus.BOUND, 2000, 0),
        (TaskStatus.BINDING, 2000, 0),
        (TaskStatus.RUNNING, 2000, 0),
        (TaskStatus.UNKNOWN, 2000, 0),
        (TaskStatus.RELEASING, 2000, 2000),
        (TaskStatus.SUCCEEDED, 0, 0),
        (TaskStatus.FAILED, 0, 0),
    ],
)
def test_the_status_of_a_pod_moves_the_figures_of_its_node(status: TaskStatus, used: int, releasing: int) -> None:
    cluster = Cluster()
    cluster.put_node(NODE)
    cluster.put_task(task("t", TWO, "ns/j", "n", status=status))
    nodes = cluster.snapshot().nodes
    assert (nodes.used[0, 0], nodes.releasing[0, 0]) == (used, releasing)


def test_a_pod_put_again_replaces_what_it_was() -> None:
    cluster = Cluster()
    cluster.put_node(NODE)
    cluster.put_job(JOB)
    pod = task("t", TWO, "ns/j")
    for change in ({}, {"node": "n", "status": TaskStatus.RUNNING}, {"node": "n", "status": TaskStatus.SUCCEEDED}):
        cluster.put_task(replace(pod, **change))
    assert len(cluster.tasks.rows) == 1
    snapshot = cluster.snapshot()
    assert not snapshot.nodes.used.any()
    assert snapshot.jobs.counts[0].sum() == 1
    assert snapshot.jobs.counts[0, TaskStatus.SUCCEEDED] == 1


def test_a_pod_that_moves_to_another_group_leaves_the_first() -> None:
    cluster = Cluster()
    cluster.put_job(JOB)
    cluster.put_job(replace(JOB, key="ns/k"))
    cluster.put_task(task("t", TWO, "ns/j"))
    cluster.put_task(task("t", TWO, "ns/k"))
    snapshot = cluster.snapshot()
    counts = dict(zip(snapshot.jobs.keys, snapshot.jobs.counts[:, TaskStatus.PENDING].tolist()))
    assert counts == {"ns/j": 0, "ns/k": 1}


def test_a_pod_without_a_group_only_occupies_its_node() -> None:
    cluster = Cluster()
    cluster.put_node(NODE)
    cluster.put_task(task("t", TWO, node="n"))
    snapshot = cluster.snapshot()
    assert snapshot.nodes.used[0, 0] == 2000
    assert snapshot.tasks.job[0] == -1
    assert not snapshot.jobs.keys


def test_removing_what_is_not_there_changes_nothing() -> None:
    cluster = Cluster()
    cluster.put_node(NODE)
    before = figures(cluster)
    cluster.remove_task("t")
    cluster.remove_node("m")
    cluster.remove_job("ns/j")
    cluster.remove_queue("q")
    cluster.remove_priority_class("p")
    cluster.remove_budget("ns", "b")
    cluster.remove_quota("ns", "q")
    cluster.remove_namespace("ns")
    cluster.remove_object("Thing", "", "t")
    assert figures(cluster) == before
    assert cluster.versions == {}


def test_nothing_is_left_when_everything_has_gone() -> None:
    cluster = Cluster()
    for i in range(20):
        cluster.put_node(replace(NODE, name=f"n{i}"))
        cluster.put_job(replace(JOB, key=f"ns/{i}"))
        cluster.put_task(task(f"t{i}", shape(cpu=i), f"ns/{i}", f"n{i}", status=TaskStatus.RELEASING))
    for i in range(20):
        cluster.remove_node(f"n{i}")
        cluster.remove_job(f"ns/{i}")
        cluster.remove_task(f"t{i}")
    assert not cluster.nodes.used.any()
    assert not cluster.nodes.releasing.any()
    assert not cluster.nodes.scoring.any()
    assert not cluster.jobs.allocated.any()
    assert not cluster.jobs.counts.any()
    assert len(cluster.nodes.rows) == len(cluster.tasks.rows) == len(cluster.jobs.rows) == 0
    snapshot = cluster.snapshot()
    assert snapshot.nodes.names == []
    assert all(spec is None for spec in snapshot.tasks.specs)


def test_pods_of_a_node_that_has_gone_stand_nowhere_but_still_count_for_their_job() -> None:
    cluster = Cluster()
    cluster.put_node(NODE)
    cluster.put_node(replace(NODE, name="m"))
    cluster.put_job(JOB)
    cluster.put_task(task("t", TWO, "ns/j", "n"))
    cluster.remove_node("n")
    snapshot = cluster.snapshot()
    assert snapshot.nodes.names == ["m"]
    assert snapshot.tasks.node.tolist() == [-1]
    assert not snapshot.nodes.used.any()
    assert snapshot.jobs.allocated[0, 0] == 2000


def test_a_name_learned_after_pods_and_nodes_keeps_every_figure() -> None:
    cluster = Cluster()
    cluster.put_node(NODE)
    cluster.put_job(JOB)
    cluster.put_task(task("plain", TWO, "ns/j", "n"))
    cluster.put_task(task("gpu", Shape((("cpu", 1000), ("nvidia.com/gpu", 1000))), "ns/j", "n"))
    cluster.put_queue(QueueSpec("q", capability=(("example.com/licence", 5),)))
    cluster.put_quota(QuotaSpec("ns", "quota", hard=(("example.com/seat", 5),)))
    cluster.put_job(replace(JOB, min_resources=(("example.com/other", 5),)))
    cluster.remove_task("plain")
    snapshot = cluster.snapshot()
    assert snapshot.resource_names[3:] == ("nvidia.com/gpu", "example.com/licence", "example.com/seat", "example.com/other")
    rows = {len(a) for a in (snapshot.nodes.used, snapshot.nodes.allocatable, snapshot.jobs.pending, snapshot.shape_request)}
    assert rows == {7}
    assert snapshot.nodes.used[:, 0].tolist() == [1000, 0, 1, 1000, 0, 0, 0]
    assert snapshot.jobs.min_resources[:, 0].tolist() == [0, 0, 0, 0, 0, 0, 5]


def test_one_absurd_pod_does_not_spoil_the_sums_of_its_job() -> None:
    cluster = Cluster()
    cluster.put_job(JOB)
    for i in range(3):
        cluster.put_task(task(f"t{i}", Shape((("cpu", (1 << 63) - 1),)), "ns/j"))
    cluster.put_task(task("small", shape(cpu=1), "ns/j"))
    assert cluster.snapshot().jobs.pending[0, 0] > 0


def test_kinds_that_only_some_read_have_versions() -> None:
    cluster = Cluster()
    cluster.put_object("PersistentVolume", "", "a", {"x": 1})
    first = cluster.snapshot()
    cluster.put_object("PersistentVolume", "", "b", {"x": 2})
    second = cluster.snapshot()
    assert first.versions["PersistentVolume"] != second.versions["PersistentVolume"]
    assert list(first.objects["PersistentVolume"]) == [("", "a")]
    cluster.remove_object("PersistentVolume", "", "a")
    assert list(cluster.snapshot().objects["PersistentVolume"]) == [("", "b")]


def test_the_small_kinds_are_put_and_removed() -> None:
    cluster = Cluster()
    cluster.put_priority_class(PriorityClassSpec("p", 5))
    cluster.put_namespace(NamespaceSpec("ns"))
    before = cluster.snapshot()
    cluster.remove_priority_class("p")
    cluster.remove_namespace("ns")
    after: Snapshot = cluster.snapshot()
    assert (before.priority_classes["p"].value, "ns" in before.namespaces) == (5, True)
    assert (after.priority_classes, after.namespaces) == ({}, {})
