"""Numa: what a kubelet would refuse is refused, few zones are better, and the ledger of zones is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.worlds.plugin_session import World, job_of, place

from navarch.engine.session import Session
from navarch.model.objects.numa import NodeNumaSpec, NumaZoneSpec
from navarch.model.resources import requests_from
from navarch.model.spec import ContainerSpec, Shape
from navarch.plugins.kai.numa import CANNOT_ALIGN, Numa
from navarch.plugins.kai.numa_zones import needs_of


def zones(*amounts: dict[str, Any], free: int | None = None) -> tuple[NumaZoneSpec, ...]:
    out = []
    for i, each in enumerate(amounts):
        available = each if free is None else {**each, "cpu": free}
        out.append(NumaZoneSpec(f"zone-{i}", i, requests_from(each), requests_from(available)))
    return tuple(out)


def world(policy: str, scope: str = "pod", *amounts: dict[str, Any], **given: Any) -> World:
    made = World().queue("q").node("n", cpu=64, memory="64Gi", gpu=8).node("plain", cpu=64, memory="64Gi")
    spec = NodeNumaSpec("n", policy, scope, zones(*(amounts or ({"cpu": 4}, {"cpu": 4})), **given))
    made.cluster.put_object("NodeResourceTopology", "", "n", spec)
    return made.job("new")


def feasible(session: Session, job: str = "new") -> list[str]:
    view = session.view(session.class_of(job_of(session, job).tasks[0]))
    return [session.nodes.names[row] for row in np.flatnonzero(view.feasible()).tolist()]


def scores(session: Session, job: str = "new") -> dict[str, float]:
    view = session.view(session.class_of(job_of(session, job).tasks[0]))
    return dict(zip(session.nodes.names, view.totals(np.ones(len(session.nodes), dtype=bool)).tolist()))


def pods(made: World, cpu: Any, qos: str = "Guaranteed", **given: Any) -> Session:
    return made.pods("new", 3, cpu=cpu, qos=qos, **given).session(Numa)


@pytest.mark.parametrize(
    ("policy", "cpu", "qos", "fits"),
    [
        ("single-numa-node", 4, "Guaranteed", True),
        ("single-numa-node", 5, "Guaranteed", False),
        ("single-numa-node", 5, "Burstable", True),
        ("single-numa-node", "4500m", "Guaranteed", True),
        ("restricted", 8, "Guaranteed", True),
        ("restricted", 9, "Guaranteed", False),
        ("best-effort", 9, "Guaranteed", True),
        ("none", 9, "Guaranteed", True),
    ],
)
def test_a_node_refuses_what_its_policy_cannot_align(policy: str, cpu: Any, qos: str, fits: bool) -> None:
    assert feasible(pods(world(policy), cpu, qos)) == ["n", "plain"][0 if fits else 1 :]


def test_the_refusal_says_why() -> None:
    session = pods(world("single-numa-node"), 5)
    errors = session.view(session.class_of(job_of(session, "new").tasks[0])).explain()
    assert errors.nodes == {CANNOT_ALIGN: 1}


def test_fewer_zones_score_higher() -> None:
    assert scores(pods(world("restricted"), 3)) == {"n": 100.0, "plain": 50.0}, "a node that reports none: as the worst could be"
    assert scores(pods(world("restricted"), 8)) == {"n": 50.0, "plain": 50.0}
    assert scores(pods(world("none"), 3)) == {"n": 50.0, "plain": 50.0}
    assert scores(pods(world("single-numa-node"), 5))["n"] == 0.0
    assert scores(pods(world("best-effort"), "2500m"))["n"] == 100.0, "nothing of it is aligned"


def test_placements_take_from_zones_at_once_and_give_back() -> None:
    session = pods(world("single-numa-node"), 3)
    place(session, "new", "n")
    place(session, "new", "n", pipelined=True)
    assert feasible(session) == ["plain"]
    tasks = job_of(session, "new").tasks
    assert [session.zones[task] for task in tasks[:2]] == [(0,), (1,)]
    statement = session.statement()
    statement.evict(tasks[0])
    assert feasible(session) == ["n", "plain"], "an eviction frees the zone at once"
    statement.discard()
    assert feasible(session) == ["plain"]


def test_running_pods_hold_what_was_observed_of_them() -> None:
    held = (("zone-0", requests_from({"cpu": 3})),)
    made = world("single-numa-node", free=0).job("old").pods("old", 1, "n", cpu=3, numa_placement=held)
    session = pods(made, 4)
    place(session, "new", "n")
    assert session.zones[job_of(session, "new").tasks[0]] == (1,)
    believed = made.session(Numa, arguments={"reconstructAvailable": False})
    assert feasible(believed) == ["plain"], "the node reports that nothing is free"


def test_a_moved_pod_is_told_from_one_that_stays() -> None:
    held = (("zone-1", requests_from({"cpu": 3})),)
    made = world("single-numa-node").job("old").pods("old", 1, "n", cpu=3, qos="Guaranteed", numa_placement=held)
    session = pods(made, 3)
    (plugin,) = [p for p in session.plugins if isinstance(p, Numa)]
    task = job_of(session, "old").tasks[0]
    session.statement().evict(task)
    assert not plugin.same_place(task, 0), "it would get zone 0 now"
    place(session, "new", "n")
    assert plugin.same_place(task, 0)


def test_a_best_effort_node_takes_from_the_zone_that_covers_most_first() -> None:
    session = pods(world("best-effort", "pod", {"cpu": 2}, {"cpu": 4}), 5)
    place(session, "new", "n")
    task = job_of(session, "new").tasks[0]
    assert session.numa_placements[task] == (("zone-0", (("cpu", 1000),)), ("zone-1", (("cpu", 4000),)))
    assert scores(session)["n"] == 0.0, "all zones together have less than the pod asks for"
    place(session, "new", "n")
    assert job_of(session, "new").tasks[1] not in session.zones, "nothing is predicted where it cannot be aligned"


def test_a_node_that_does_not_align_what_the_pod_asks_for_counts_as_spread() -> None:
    made = world("single-numa-node").pods("new", 1, cpu=1, gpu=1, qos="Burstable")
    gpus = NodeNumaSpec("plain", "single-numa-node", "pod", zones(*[{"nvidia.com/gpu": 4}] * 4))
    made.cluster.put_object("NodeResourceTopology", "", "plain", gpus)
    assert scores(made.session(Numa)) == {"n": 50.0, "plain": 100.0}, "n does not report GPUs by zone"


def test_devices_are_aligned_for_every_pod_and_ignored_resources_for_none() -> None:
    made = world("single-numa-node", "pod", {"cpu": 4, "nvidia.com/gpu": 1}, {"cpu": 4, "nvidia.com/gpu": 1})
    made.pods("new", 1, cpu=1, gpu=2, qos="Burstable")
    assert feasible(made.session(Numa)) == ["plain"]
    assert feasible(made.session(Numa, arguments={"ignoreList": "nvidia.com/gpu"})) == ["n", "plain"]


def test_restricted_wants_one_width_for_all_resources() -> None:
    made = world("restricted", "pod", {"cpu": 4, "memory": "4Gi"}, {"cpu": 4, "memory": "4Gi"})
    assert feasible(pods(made, 6, memory="1Gi")) == ["plain"], "cpu would need two zones, memory one"


def test_containers_are_aligned_one_after_the_other_where_the_scope_says_so() -> None:
    parts = tuple(ContainerSpec(phase, requests_from({"cpu": cpu})) for phase, cpu in (("init", 4), ("main", 4), ("main", 4)))
    assert feasible(pods(world("single-numa-node", "container"), 8, parts=parts)) == ["n", "plain"]
    assert feasible(pods(world("single-numa-node", "pod"), 8, parts=parts)) == ["plain"]


def test_the_resources_of_a_pod_that_are_aligned() -> None:
    def containers(*given: tuple[str, Any]) -> Shape:
        parts = tuple(ContainerSpec(phase, requests_from({"cpu": cpu})) for phase, cpu in given)
        return Shape(requests=requests_from({"cpu": 99, "memory": 1}), parts=parts, qos="Guaranteed")

    shape = containers(("init", 3), ("sidecar", 1), ("init", 6), ("main", 2), ("main", "500m"))
    ((passing, need),) = needs_of(shape, "pod", ["cpu", "memory"])
    assert (passing, need.tolist()) == (False, [7000, 1]), "the second init container runs beside the sidecar"
    found = [(passing, int(need[0])) for passing, need in needs_of(shape, "container", ["cpu"])]
    assert found == [(True, 3000), (True, 6000), (False, 1000), (False, 2000), (False, 0)]
