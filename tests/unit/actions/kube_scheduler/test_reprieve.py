"""Which pods stay where only resources decide: the order of importance on a node, whatever order pods came in."""

from __future__ import annotations

from msgspec.structs import replace
from tests.worlds.small_cluster import add_job, shape, with_nodes

from navarch.engine.cycle import decide
from navarch.engine.policy import preset
from navarch.installed import installed


def left(started: dict[str, float | None], wanted: int) -> set[str]:
    """Pods of one CPU each, with their start times: the victims for a pod that requests so many CPUs."""
    cluster = with_nodes(("n1", {"cpu": len(started)}))
    for name, moment in started.items():
        add_job(cluster, name, [shape(cpu=1)], node="n1")
        spec = cluster.task(f"{name}-0")
        assert spec is not None
        cluster.put_task(replace(spec, started=moment))
    add_job(cluster, "high", [shape(cpu=wanted)], priority=5)
    policy = preset("kube-scheduler", installed().catalogue())
    record = decide(cluster.snapshot(policy.semantics.node_order), policy, installed(), now=1000.0)
    return {eviction.uid.removesuffix("-0") for eviction in record.evictions}


def test_the_pod_that_started_last_is_evicted_first() -> None:
    assert left({"a": 30.0, "b": 10.0, "c": 20.0, "d": 40.0}, 2) == {"a", "d"}


def test_pods_that_have_not_started_are_evicted_before_running_ones() -> None:
    assert left({"a": None, "b": 10.0, "c": 20.0, "d": None}, 2) == {"a", "d"}


def test_among_equal_pods_the_last_by_name_is_evicted() -> None:
    assert left({"c": 20.0, "z": 10.0, "a": 20.0, "d": 20.0, "b": 20.0}, 2) == {"c", "d"}
