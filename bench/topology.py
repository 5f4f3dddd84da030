"""Gangs that must lie close together: 5,000 nodes in 5 zones, 50 blocks and 200 racks, on one core.

    python -m bench.topology

A 512-pod gang that takes a whole node a pod fits in no rack and no block; sums say so before anything is tried. Beside it stands
the same search without them, which tries every domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from msgspec.structs import replace

from bench.decide import NODE, add_gang, cluster_of, policy, run
from bench.report import Figure, best_of, show
from navarch.actions.allocate_domains import DomainSearch
from navarch.engine.topology.hyper_nodes import tree_of_hyper_nodes
from navarch.model.cluster import Cluster
from navarch.model.objects.topologies import HyperNodeSpec, LevelSpec, MemberSpec, TopologySpec
from navarch.model.resources import requests_from
from navarch.model.spec import NodeSpec, QueueShare, QueueSpec, Shape, SubGroupSpec, TopologyDemand

NODES, RACK, BLOCK, ZONE = 5_000, 25, 100, 1_000
LEVELS = (("rack", RACK), ("block", BLOCK), ("zone", ZONE))
WHOLE = Shape(requests=requests_from({"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "8"}))
VOLCANO = {
    "compat": "volcano",
    "actions": ["allocate"],
    "tiers": [{"plugins": [{"name": n} for n in ("gang", "predicates", "binpack", "network-topology-aware")]}],
}
KAI = {
    "compat": "kai",
    "actions": "allocate",
    "tiers": [{"plugins": [{"name": n} for n in ("predicates", "proportion", "nodeplacement", "topology")]}],
}


def hyper_nodes() -> dict[str, HyperNodeSpec]:
    found = {}
    for tier, (level, size) in enumerate(LEVELS, start=1):
        below = LEVELS[tier - 2] if tier > 1 else ("node", 1)
        for i in range(NODES // size):
            inside = range(i * size // below[1], (i + 1) * size // below[1])
            name = f"{level}-{i:04d}"
            members = tuple(MemberSpec(tier == 1, f"node-{j:06d}" if tier == 1 else f"{below[0]}-{j:04d}") for j in inside)
            found[name] = HyperNodeSpec(name, tier, level, members)
    return found


def labelled(cluster: Cluster) -> None:
    for i in range(NODES):
        labels = {level: f"{level}-{i // size:04d}" for level, size in LEVELS}
        cluster.put_node(NodeSpec(f"node-{i:06d}", allocatable=NODE, labels=labels))
    spec = TopologySpec("net", tuple(LevelSpec(level) for level, _ in reversed(LEVELS)))
    cluster.put_object("Topology", "", "net", spec)


def with_demand(cluster: Cluster, key: str, demand: TopologyDemand, groups: tuple[SubGroupSpec, ...] = ()) -> None:
    spec = cluster.jobs.specs[cluster.jobs.rows.of[key]]
    assert spec is not None
    cluster.put_job(replace(spec, topology=demand, sub_groups=groups))


def gang(demand: TopologyDemand, busy: int = 0, groups: int = 0) -> Cluster:
    """An empty cluster but for `busy` pods spread over its nodes, and a gang of 512."""
    cluster = cluster_of(NODES)
    for name, spec in hyper_nodes().items():
        cluster.put_object("HyperNode", "", name, spec)
    if demand.topology:
        labelled(cluster)
        unlimited = {name: QueueShare(-1, -1, 1) for name in ("cpu", "memory", "gpu")}
        cluster.put_queue(QueueSpec("department", dialect="kai", shares=unlimited))
        cluster.put_queue(QueueSpec("default", dialect="kai", parent="department", shares=unlimited))
    if busy:
        add_gang(cluster, "busy", busy, WHOLE, node=[f"node-{i * 7 % NODES:06d}" for i in range(busy)])
    add_gang(cluster, "big", 512, WHOLE)
    policies = ()
    if groups:
        near = TopologyDemand(highest_tier=1)
        policies = (SubGroupSpec("part", 512 // groups, min_groups=groups, match_label_keys=("part",), topology=near),)
        for task in [t for t in cluster.tasks.specs if t is not None and t.job == "ns/big"]:
            part = int(task.name.rpartition("-")[2]) * groups // 512
            cluster.put_task(replace(task, labels={"part": str(part)}))
    with_demand(cluster, "ns/big", demand, policies)
    return cluster


def decided(cluster: Cluster, document: dict[str, object], runs: int = 3) -> float:
    times = []
    for _ in range(runs):
        seconds, record = run(cluster, policy(document))
        assert len(record.binds) == 512, f"{len(record.binds)} of 512 placed"
        times.append(seconds)
    return min(times)


def untested(cluster: Cluster, document: dict[str, object]) -> float:
    """The same when every domain is tried."""
    with patch.object(DomainSearch, "prunes", False):
        return decided(cluster, document, 1)


def figures() -> list[Figure]:
    out = []
    zone = TopologyDemand(highest_tier=3)
    cluster = gang(zone, busy=2_000)
    beside = untested(cluster, VOLCANO)
    seconds = decided(cluster, VOLCANO)
    out.append(Figure("512 pods within one HyperNode of tier 3, 5,000 nodes", seconds, "s", 1.0, beside, "every domain tried"))
    soft = gang(TopologyDemand(hard=False), busy=2_000)
    out.append(Figure("  soft: as close as can be", decided(soft, VOLCANO), "s", 1.0))
    parts = gang(zone, busy=1_000, groups=32)
    out.append(Figure("  in 32 sub-groups of 16, each in one rack", decided(parts, VOLCANO), "s", 1.0))
    kai = gang(TopologyDemand(topology="net", required="zone", preferred="rack"), busy=2_000)
    out.append(Figure("512 pods, zone required, rack preferred", decided(kai, KAI), "s", 1.0))
    nodes, specs = [spec for spec in cluster.nodes.specs if spec is not None], hyper_nodes()
    build = best_of(3, lambda: tree_of_hyper_nodes(specs, nodes))
    out.append(Figure("building the tree of 255 HyperNodes", build, "s"))
    return out


def main(arguments: Sequence[str]) -> None:
    show("bench/topology", figures())


if __name__ == "__main__":
    main(())
