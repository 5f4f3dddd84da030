"""kube-scheduler's rules at 5,000 nodes: the workloads of scheduler_perf, decided by the preset `kube-scheduler`.

    python -m bench.predicates                      all workloads
    python -m bench.predicates --only affinity      those whose name contains a word
    python -m bench.predicates --small              a tenth of the nodes and pods: does it run at all

Each row is one cycle over all measured pods, in time of the processor, divided by them. Beside it stands the floor of that
project's CI for 1.36 in pods a second: those figures include an API server, etcd and binding, ours are decisions alone, so
the target is ten times the floor. Rows without a floor have none there either.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

from msgspec.structs import replace

from bench import device_claims
from bench.load import HOST, PLAIN, ZONE, Load
from bench.report import Figure, show
from navarch.engine.cycle import decide
from navarch.engine.policy import preset
from navarch.engine.record import CycleRecord
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import (
    LabelSelector,
    NamespaceSpec,
    NodeAffinity,
    NodeTerm,
    PodAffinity,
    PodTerm,
    Requirement,
    Shape,
    SpreadConstraint,
    Taint,
)


def having(key: str, value: str) -> LabelSelector:
    return LabelSelector((Requirement(key, "In", (value,)),))


def near(shape: Shape, **lists: tuple[object, ...]) -> Shape:
    return replace(shape, namespace="ns", pod_affinity=PodAffinity(**lists))  # type: ignore[arg-type]


GREEN, BLUE, RED, YELLOW = ({"color": color} for color in ("green", "blue", "red", "yellow"))
APART = near(PLAIN, anti_required=(PodTerm(HOST, having("color", "green"), ("ns",)),))
TOGETHER = near(PLAIN, required=(PodTerm(ZONE, having("color", "blue"), ("ns",)),))
LIKING = near(PLAIN, preferred=((1, PodTerm(HOST, having("color", "red"), ("ns",))),))
DISLIKING = near(PLAIN, anti_preferred=((1, PodTerm(HOST, having("color", "yellow"), ("ns",))),))
APART_BY_TEAM = near(PLAIN, anti_required=(PodTerm(HOST, having("color", "green"), (), having("team", "devops")),))
IN_ZONE_1 = replace(PLAIN, node_affinity=NodeAffinity(required=(NodeTerm((Requirement(ZONE, "In", ("zone-1", "zone-2")),)),)))


def spreading(*, hard: bool, taints: bool = False) -> Shape:
    rule = SpreadConstraint(5, ZONE, hard, having("color", "blue"), honor_node_taints=taints)
    return replace(PLAIN, namespace="ns", spread=(rule,), has_own_spread=True)


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    floor: float | None
    measured: int
    build: Callable[[int, int], Load]
    """(nodes, measured pods) -> the cluster"""
    limits: str
    nodes: int = 5000
    placed: bool = True
    """Every measured pod finds a node."""
    policy: str = "kube-scheduler"


def daemons(nodes: int, pods: int) -> Load:
    load = Load(nodes)
    for i in range(pods):
        term = NodeTerm(fields=(Requirement("metadata.name", "In", (load.names[i % nodes],)),))
        load.pods(1, replace(PLAIN, node_affinity=NodeAffinity(required=(term,))))
    return load


def tainted(nodes: int, pods: int) -> Load:
    load = Load(nodes)
    for name in load.names[::5]:
        spec = load.cluster.nodes.specs[load.cluster.nodes.rows.of[name]]
        assert spec is not None
        load.cluster.put_node(replace(spec, taints=(Taint("k", "", "NoSchedule"),)))
    return load.pods(pods, spreading(hard=True, taints=True), BLUE)


def by_team(nodes: int, pods: int) -> Load:
    load = Load(nodes)
    for i in range(40):
        load.cluster.put_namespace(NamespaceSpec(f"init-{i}", {"team": "devops"}))
        load.pods(pods // 50, APART_BY_TEAM, GREEN, placed=True, ns=f"init-{i}")
    load.cluster.put_namespace(NamespaceSpec("ns", {"team": "devops"}))
    return load.pods(pods, APART_BY_TEAM, GREEN)


def mixed(nodes: int, pods: int) -> Load:
    load = Load(nodes)
    for shape, labels in ((APART, GREEN), (TOGETHER, BLUE), (LIKING, RED), (DISLIKING, YELLOW)):
        load.pods(min(2 * pods // 5, nodes), shape, labels, placed=True)
    return load.pods(pods, PLAIN)


def sized(cpu: str, memory: str = "500Mi") -> Shape:
    amount = requests_from({"cpu": cpu, "memory": memory})
    return Shape(requests=amount, scoring=(amount[0][1], amount[1][1]), footprint=(amount[0][1], amount[1][1]))


def preempting(nodes: int, pods: int) -> Load:
    return Load(nodes).pods(4 * nodes, sized("900m"), placed=True, priority=0).pods(pods, sized("3"), priority=10)


def preempting_beside(nodes: int, pods: int) -> Load:
    """Ordinary pods that fit beside four low ones a node; one in twenty must preempt."""
    load = Load(nodes).pods(4 * nodes, sized("900m"), placed=True, priority=0)
    return load.pods(pods // 20, sized("3"), priority=10).pods(pods, PLAIN)


def hopeless_beside(nodes: int, pods: int) -> Load:
    """Pods that fit nowhere are tried among pods that do."""
    load = Load(nodes).pods(pods // 100, PLAIN, placed=True)
    for _ in range(20):
        load.pods(pods // 400, sized("9")).pods(pods // 20, PLAIN)
    return load


def among_its_like(shape: Shape, labels: dict[str, str] | None = None, share: float = 1.0) -> Callable[[int, int], Load]:
    """Measured pods, and before them a share as many of the same kind that run already."""

    def build(nodes: int, pods: int) -> Load:
        return Load(nodes).pods(int(share * pods), shape, labels, placed=True).pods(pods, shape, labels)

    return build


JOB_SIZE = 8


def own_rules(key: str, app: str) -> tuple[Shape, ...]:
    """What jobs say of pods with their own label: of eight jobs four by a hard rule, two by a wish, two by spreading."""
    mine = having("app", app)
    term = PodTerm(key, mine, ("ns",))
    hard = near(PLAIN, anti_required=(term,)) if key == HOST else near(PLAIN, required=(term,))
    wish = near(PLAIN, anti_preferred=((100, term),))
    spread = replace(PLAIN, namespace="ns", has_own_spread=True)
    strict, loose = (replace(spread, spread=(SpreadConstraint(1, key, each, mine),)) for each in (True, False))
    return hard, wish, hard, strict, hard, wish, hard, loose


def own_labels(key: str) -> Callable[[int, int], Load]:
    """Jobs of eight pods, each with a label of its own and a rule about it; as many again run already."""

    def build(nodes: int, pods: int) -> Load:
        load = Load(nodes)
        for i in range(2 * pods // JOB_SIZE):
            app = f"job-{i:05d}"
            load.job(app, JOB_SIZE, own_rules(key, app)[i // 2 % 8], {"app": app}, placed=i % 2 == 0)
        return load

    return build


def kept_away(nodes: int, pods: int) -> Load:
    return Load(nodes).pods(pods // 5, APART, GREEN, placed=True).pods(pods, replace(PLAIN, namespace="ns"), GREEN)


HARD, SOFT = spreading(hard=True), spreading(hard=False)
ONE_GATHER = "each placement moves the mask: one gather and one argmax a pod"
RENORMALISED = "scores are normalised again for each pod"
OWN = "a label and a rule for each job: what a rule costs may not grow with the number of jobs"
ALIKE = "one search for devices for all nodes that are alike, then one for each node that changed"
EVERYWHERE = "every node reaches every device: one search a pod, over all devices"
IN_RUNS = "placements do not move their own mask: placed in runs, one statement a pod"
WORKLOADS = (
    Workload("basic", 270, 10_000, among_its_like(PLAIN, share=0.1), IN_RUNS),
    Workload("daemon set, each pod names its node", 390, 10_000, daemons, "a shape for each pod: filters asked of one node"),
    Workload("node affinity", 220, 10_000, among_its_like(IN_ZONE_1, share=0.5), IN_RUNS),
    Workload("anti-affinity by host", 60, 2_000, among_its_like(APART, GREEN, 0.5), ONE_GATHER),
    Workload("pods that others keep away", 540, 5_000, kept_away, IN_RUNS),
    Workload("affinity by zone", 35, 5_000, among_its_like(TOGETHER, BLUE), ONE_GATHER),
    Workload("preferred affinity", 90, 5_000, among_its_like(LIKING, RED), RENORMALISED),
    Workload("preferred anti-affinity", 90, 5_000, among_its_like(DISLIKING, YELLOW), RENORMALISED),
    Workload("anti-affinity across namespaces", 24, 2_000, by_team, ONE_GATHER),
    Workload("mixed: plain pods among all of these", 140, 5_000, mixed, IN_RUNS),
    Workload("spreading, hard", 85, 5_000, among_its_like(HARD, BLUE), ONE_GATHER),
    Workload("spreading, soft", 125, 5_000, among_its_like(SOFT, BLUE), RENORMALISED),
    Workload("spreading over untainted nodes", 68, 4_000, tainted, ONE_GATHER),
    Workload("each job its own label, by host", None, 16_000, own_labels(HOST), OWN, policy="navarch"),
    Workload("each job its own label, by zone", None, 16_000, own_labels(ZONE), OWN, policy="navarch"),
    Workload("each job its own label, by host, pod by pod", None, 16_000, own_labels(HOST), OWN),
    Workload("claims on devices, from a template", 56, 2_500, device_claims.from_template, ALIKE, nodes=500),
    Workload("claims on devices, from a template, 5,000 nodes", None, 5_000, device_claims.from_template, ALIKE),
    Workload("claims on devices that five pods share", None, 2_500, device_claims.shared_by_five, ALIKE, nodes=500),
    Workload("claims on devices, first available", None, 2_500, device_claims.first_available, ALIKE, nodes=500),
    Workload("claims on shared devices, by capacity", None, 2_000, device_claims.consumable, EVERYWHERE, nodes=100),
    Workload("claims on partitions, by counters", None, 2_000, device_claims.partitionable, EVERYWHERE, nodes=100),
    Workload("claims for extended resources, 25 classes", None, 2_500, device_claims.extended, ALIKE, nodes=500),
    Workload("preemption", None, 1_000, preempting, "a search over all nodes for each pod", nodes=1000, placed=False),
    Workload("ordinary pods beside preemptors", 160, 5_000, preempting_beside, "promised nodes are looked at", placed=False),
    Workload("ordinary pods beside hopeless ones", 140, 10_000, hopeless_beside, "explaining what fits nowhere", placed=False),
)


def run(cluster: Cluster, name: str = "kube-scheduler") -> tuple[float, CycleRecord]:
    registry = installed()
    policy = preset(name, registry.catalogue())
    snapshot = cluster.snapshot()
    gc.collect()
    started = process_time()
    record = decide(snapshot, policy, registry, 2e9, report_all=False)
    return process_time() - started, record


def figures(workload: Workload, scale: int) -> Figure:
    pods = max(workload.measured // scale, 100)
    load = workload.build(max(workload.nodes // scale, 50), pods)
    seconds, record = run(load.cluster, workload.policy)
    if workload.placed:
        assert len(record.binds) == pods, f"{workload.name}: {len(record.binds)} of {pods} placed"
    each = seconds / pods * 1e6
    target = None if workload.floor is None else 1e6 / (10 * workload.floor)
    beside = None if workload.floor is None else 1e6 / workload.floor
    note = f"{1e6 / each:,.0f} pods/s; {workload.limits}"
    return Figure(workload.name, each, "us/pod", target, beside, "its floor, server included", note)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args(argv)
    chosen = [workload for workload in WORKLOADS if given.only in workload.name]
    rows = [figures(workload, 10 if given.small else 1) for workload in chosen]
    title = f"predicates: scheduler_perf's workloads, {'a tenth of ' if given.small else ''}5,000 nodes"
    show(title, rows)


if __name__ == "__main__":
    main()
