"""KAI's own scale cases, decided by Navarch in one cycle each, beside the times that KAI publishes for them.

    python -m bench.solver                  every case, in strict mode and with KAI's own search
    python -m bench.solver --only reclaim   cases whose name contains the word
    python -m bench.solver --compat kai     only with KAI's own search, scenario by scenario

KAI's figures are end to end on 500 emulated nodes (docs/scale-tests of its repository, 2026-07-03): its cycles and the API
server's work. Ours are seconds of one core for the decision alone, from snapshot to record; the two are not the same thing, so
the ratio only says what a decision no longer costs. Nodes have 8 GPUs, 32 cpus and 256 GiB.

Worlds are those of test/e2e/scale there. For consolidation the cluster is filled with single-GPU jobs, five of the eight on
every node are deleted, and 41 gangs of 10 pods with 6 GPUs come (as many as the free GPUs are worth); any number of jobs may move.
KAI's time is that until all of them run; ours is one cycle, which serves all of them.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from time import process_time

from bench.report import Figure, show
from navarch.engine.cycle import decide
from navarch.engine.policy import PRESETS, load
from navarch.engine.policy.values import Policy
from navarch.engine.record import CycleRecord
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.objects.topologies import LevelSpec, TopologySpec
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueShare, QueueSpec, Shape, TaskSpec, TopologyDemand
from navarch.model.status import TaskStatus

NODES, GPUS = 500, 8
NODE = requests_from({"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(GPUS)})
TARGET = 1.0
GANGS = 5 * NODES // (6 * 10)
"""Gangs of 10 pods with 6 GPUs that five free GPUs a node are worth."""


@dataclass(slots=True)
class World:
    cluster: Cluster
    serial: int = 0

    def queue(self, name: str, parent: str = "", quota: float = -1.0, weight: float = 1.0) -> None:
        free = QueueShare(-1.0, -1.0, 1.0)
        shares = {"cpu": free, "memory": free, "gpu": QueueShare(quota, -1.0, weight)}
        self.serial += 1
        spec = QueueSpec(name, parent=parent, priority=100, state="Open", shares=shares, created=float(self.serial))
        self.cluster.put_queue(spec)

    def job(self, name: str, queue: str, size: int, gpus: int, nodes: list[str] | None = None, **more: object) -> None:
        """A gang; with `nodes` it runs, one pod on each."""
        self.serial += 1
        spec = JobSpec(
            f"ns/{name}", queue, size, "ns", name, name, "kai", priority=50, preemptable=True, created=float(self.serial),
            phase="Inqueue", **more,  # type: ignore[arg-type]
        )  # fmt: skip
        self.cluster.put_job(spec)
        requests = requests_from({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": str(gpus)})
        shape = Shape(requests=requests)
        for i in range(size):
            where = nodes[i] if nodes else ""
            status = TaskStatus.RUNNING if nodes else TaskStatus.PENDING
            pod = f"{name}-{i}"
            self.cluster.put_task(
                TaskSpec(pod, "ns", pod, shape, spec.key, where, status, created=float(self.serial), phase=status.name.capitalize())
            )


def world(nodes: int = NODES, labels: Callable[[int], dict[str, str]] = lambda i: {}) -> World:
    made = World(Cluster())
    for i in range(nodes):
        made.cluster.put_node(NodeSpec(f"node-{i:04d}", allocatable=NODE, labels=labels(i)))
    return made


def names(first: int, count: int) -> list[str]:
    return [f"node-{i:04d}" for i in range(first, first + count)]


def four_queues(made: World) -> list[str]:
    quota = NODES * GPUS / 4
    for d in range(2):
        made.queue(f"department-{d}", quota=2 * quota)
    for q in range(4):
        made.queue(f"queue-{q}", f"department-{q % 2}", quota=quota)
    return [f"queue-{q}" for q in range(4)]


def full(made: World, queue: str, taken: int = GPUS) -> None:
    """So many GPUs of every node are taken by a job of one pod each."""
    for i in range(NODES * taken):
        made.job(f"running-{i:05d}", queue, 1, 1, names(i % NODES, 1))


def fill() -> World:
    made = world()
    queues = four_queues(made)
    for i in range(NODES * GPUS):
        made.job(f"job-{i:05d}", queues[i % 4], 1, 1)
    return made


def big_gang() -> World:
    """512 pods on 512 nodes in 4 zones of 8 blocks of 8 racks of 2 nodes; racks are preferred."""
    made = world(512, lambda i: {"zone": f"z{i // 128}", "block": f"b{i // 16}", "rack": f"r{i // 2}"})
    made.queue("department", quota=-1)
    made.queue("queue", "department", quota=-1)
    topology = TopologySpec("racks", (LevelSpec("zone"), LevelSpec("block"), LevelSpec("rack")))
    made.cluster.put_object("Topology", "", "racks", topology)
    made.job("gang", "queue", 512, 2, topology=TopologyDemand("racks", preferred="rack", hard=False))
    return made


def two_queues(quota_of_holder: float = 0.0, taken: int = GPUS) -> World:
    made = world()
    made.queue("department", quota=-1)
    made.queue("holder", "department", quota=quota_of_holder)
    made.queue("claimant", "department", quota=NODES * GPUS - quota_of_holder, weight=0.0)
    full(made, "holder", taken)
    return made


def reclaim_one() -> World:
    made = two_queues()
    made.job("waiting", "claimant", 1, 1)
    return made


def reclaim_gang() -> World:
    made = two_queues()
    made.job("waiting", "claimant", 250, GPUS)
    return made


def reclaim_all() -> World:
    made = two_queues()
    made.job("waiting", "claimant", 500, GPUS)
    return made


def unschedulable() -> World:
    """The gang would need one GPU more than the holder can be made to give."""
    made = two_queues(NODES * GPUS - 80 + 1)
    made.queue("claimant", "department", quota=80.0)
    made.job("waiting", "claimant", 10, GPUS)
    return made


def consolidate() -> World:
    made = two_queues(taken=3)
    for g in range(GANGS):
        made.job(f"waiting-{g:02d}", "claimant", 10, 6)
    return made


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    what: str
    make: Callable[[], World]
    published: float
    check: Callable[[CycleRecord], bool]
    params: dict[str, object] = field(default_factory=dict)


CASES = (
    Case("fill", "fill 500 nodes with 4,000 single-GPU jobs", fill, 398.0, lambda r: len(r.binds) == 4000),
    Case("gang", "one gang of 512 pods with 2 GPUs, racks preferred", big_gang, 48.7, lambda r: len(r.binds) == 512),
    Case("reclaim-one", "reclaim for one single-GPU job, 4,000 running", reclaim_one, 13.9, lambda r: len(r.evictions) == 1),
    Case("reclaim-gang", "reclaim for a gang of 250 x 8 GPUs", reclaim_gang, 102.0, lambda r: len(r.evictions) == 2000),
    Case("reclaim-all", "reclaim for a gang of 500 x 8 GPUs", reclaim_all, 85.0, lambda r: len(r.evictions) == 4000),
    Case("unschedulable", "find a gang of 10 x 8 GPUs unschedulable", unschedulable, 249.5, lambda r: not r.evictions),
    Case(
        "consolidation", "consolidate for 41 gangs of 10 x 6 GPUs", consolidate, 456.0,
        lambda r: len({n.pod for n in r.nominations if n.pod.startswith("ns/waiting")}) == 10 * GANGS,
        {"maxNumberConsolidationPreemptees": NODES * GPUS},
    ),
)  # fmt: skip


def policy(compat: str, params: dict[str, object] | None = None) -> Policy:
    document = {**PRESETS["kai"], "compat": compat, "schedulerParams": params or {}}
    return load(document, installed().catalogue(), "bench")


def run(case: Case, chosen: Policy) -> tuple[float, CycleRecord]:
    cluster = case.make().cluster
    snapshot = cluster.snapshot()
    gc.collect()
    started = process_time()
    record = decide(snapshot, chosen, installed(), 1e6, report_all=False)
    return process_time() - started, record


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--compat", default="both", choices=("both", "strict", "kai"))
    given = parser.parse_args(arguments)
    for compat in ("strict", "kai") if given.compat == "both" else (given.compat,):
        figures = []
        for case in CASES:
            if given.only in case.name:
                chosen = policy(compat, case.params)
                seconds, record = min((run(case, chosen) for _ in range(2)), key=lambda done: done[0])
                note = "" if case.check(record) else f"WRONG: {len(record.binds)} binds, {len(record.evictions)} evictions"
                figures.append(Figure(case.what, seconds, "s", TARGET, case.published, "published by KAI", note))
        show(f"bench/solver, compat: {compat}", figures)


if __name__ == "__main__":
    main()
