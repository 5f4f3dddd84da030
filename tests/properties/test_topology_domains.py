"""Gangs in domains: what is passed over without a trial would have failed, and a bound is kept."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from navarch.actions.allocate_domains import DomainSearch
from navarch.engine.cycle import decide
from navarch.engine.policy import load
from navarch.engine.record import CycleRecord
from navarch.engine.topology.hyper_nodes import hyper_tree
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.objects.topologies import HyperNodeSpec, MemberSpec
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Shape, SubGroupSpec, TaskSpec, TopologyDemand
from navarch.model.status import TaskStatus

PLUGINS = [{"plugins": [{"name": name} for name in ("priority", "gang", "binpack", "network-topology-aware")]}]
COMPATS = ("strict", "volcano")
DEMANDS = st.sampled_from([None, TopologyDemand(highest_tier=1), TopologyDemand(highest_tier=2), TopologyDemand(hard=False)])
"""What a job, or a part of it, may demand."""
Job = tuple[TopologyDemand | None, TopologyDemand | None, int, int, int, int]
JOBS = st.tuples(DEMANDS, DEMANDS, st.integers(1, 5), st.integers(1, 4), st.integers(0, 2), st.integers(0, 2))
"""Demands of the job and of its parts, pods, cpus of each, how many run already, parts."""


def put_job(cluster: Cluster, number: int, nodes: int, job: Job) -> None:
    demand, near, pods, cpu, running, parts = job
    name = f"job-{number}"
    groups = (SubGroupSpec("part", max(pods // parts, 1), min_groups=1, match_label_keys=("part",), topology=near),) if parts else ()
    spec = JobSpec(
        f"ns/{name}", "q", max(pods - 1, 1), "ns", name, phase="Inqueue", topology=demand, sub_groups=groups, created=float(number)
    )
    cluster.put_job(spec)
    shape = Shape(requests=requests_from({"cpu": cpu}))
    for i in range(pods):
        where = f"n{(number * 3 + i) % nodes}" if i < running else ""
        labels = {"part": str(i % parts)} if parts else {}
        status = TaskStatus.RUNNING if where else TaskStatus.PENDING
        uid = f"{name}-{i}"
        cluster.put_task(TaskSpec(uid, "ns", uid, shape, spec.key, where, status, labels=labels))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    cluster = Cluster()
    cluster.put_queue(QueueSpec("q", state="Open"))
    racks = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    nodes = 0
    for r, size in enumerate(racks):
        members = []
        for _ in range(size):
            cpu = draw(st.integers(2, 8))
            cluster.put_node(NodeSpec(f"n{nodes}", allocatable=requests_from({"cpu": cpu, "memory": "8Gi", "pods": 20})))
            members.append(MemberSpec(name=f"n{nodes}"))
            nodes += 1
        cluster.put_object("HyperNode", "", f"rack-{r}", HyperNodeSpec(f"rack-{r}", 1, "rack", tuple(members)))
    for h in range(2):
        inside = tuple(MemberSpec(False, f"rack-{r}") for r in range(len(racks)) if r % 2 == h)
        cluster.put_object("HyperNode", "", f"hall-{h}", HyperNodeSpec(f"hall-{h}", 2, "hall", inside))
    for number, job in enumerate(draw(st.lists(JOBS, min_size=1, max_size=4))):
        put_job(cluster, number, nodes, job)
    return cluster


def decided(cluster: Cluster, compat: str) -> CycleRecord:
    policy = load({"compat": compat, "actions": "allocate", "tiers": PLUGINS}, installed().catalogue(), "test")
    return decide(cluster.snapshot(policy.semantics.node_order), policy, installed(), 100.0)


@settings(max_examples=100, deadline=None)
@given(clusters(), st.sampled_from(COMPATS))
def test_a_domain_that_was_passed_over_would_have_failed(cluster: Cluster, compat: str) -> None:
    found = decided(cluster, compat)
    with patch.object(DomainSearch, "prunes", False):
        tried = decided(cluster, compat)
    assert found.binds == tried.binds
    assert found.nominations == tried.nominations


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_placements_stay_within_the_highest_tier(cluster: Cluster) -> None:
    record = decided(cluster, "strict")
    snapshot = cluster.snapshot()
    tree = hyper_tree(snapshot)
    rows: dict[str, list[int]] = {}
    for bind in record.binds:
        rows.setdefault(bind.job, []).append(snapshot.nodes.names.index(bind.node))
    for spec in snapshot.jobs.specs:
        assert spec is not None
        demand = spec.topology
        if demand is None or not demand.hard or demand.highest_tier is None or spec.key not in rows:
            continue
        held = [snapshot.nodes.names.index(t.node) for t in snapshot.tasks.specs if t is not None and t.job == spec.key and t.node]
        domain = tree.holding([*held, *rows[spec.key]])
        assert tree.tier[domain] <= demand.highest_tier, f"{spec.key} lies in {tree.names[domain]}"
