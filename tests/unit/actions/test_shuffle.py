"""shuffle: running tasks that plugins would rather see elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from tests.worlds.small_cluster import add_job, decided, evicted, shape, task, with_nodes

from navarch.engine.plugin import Plugin
from navarch.model.cluster import Cluster

offered: list[list[str]] = []


class Mover(Plugin):
    name = "mover"

    def victim_tasks(self, candidates: Sequence[int]) -> list[int] | None:
        offered.append([self.session.task(t).uid for t in candidates])
        return [t for t in candidates if self.session.task(t).uid.endswith("-1")]


def world() -> Cluster:
    offered.clear()
    cluster = with_nodes(("a", {"cpu": 8}), ("gone", {"cpu": 8}))
    add_job(cluster, "z", [shape(cpu=1)] * 2, node="a")
    add_job(cluster, "b", [shape(cpu=1)] * 2, node="a")
    add_job(cluster, "lost", [shape(cpu=1)] * 2, node="gone")
    add_job(cluster, "wait", [shape(cpu=1)] * 2)
    cluster.put_task(task("foreign-1", shape(cpu=1), node="a"))
    cluster.remove_node("gone")
    return cluster


def test_named_tasks_are_evicted_and_only_running_ones_of_jobs_on_living_nodes_are_offered() -> None:
    record = decided(world(), Mover, actions=("shuffle",))
    assert offered == [["b-0", "b-1", "z-0", "z-1"]]
    assert evicted(record) == ["b-1", "z-1"]
    assert {(e.reason, e.action, e.for_) for e in record.evictions} == {("shuffle", "shuffle", "")}


def test_nothing_happens_without_a_plugin_that_names_victims() -> None:
    assert evicted(decided(world(), actions=("shuffle",))) == []
