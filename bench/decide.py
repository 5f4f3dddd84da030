"""How long decisions take: whole cycles on clusters built in memory, on one core.

    python -m bench.decide                  the sizes of the targets, except the largest
    python -m bench.decide --large          100,000 nodes and 1,000,000 pods too
    python -m bench.decide --only gangs     one of: gangs, presets, elastic, idle, evict

Figures of whole cycles are seconds of CPU: a cycle has one thread and waits for nothing. Each figure stands beside another way to do
the same in the same run: placing task by task instead of by runs, or the whole cost instead of the cost of a change.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Sequence
from time import perf_counter, process_time
from unittest.mock import patch

from msgspec.structs import replace

from bench.report import Figure, best_of, peak_memory_gib, show
from navarch.engine.cycle import decide
from navarch.engine.placement.class_view import ClassView
from navarch.engine.policy import load, preset
from navarch.engine.policy.values import Policy
from navarch.engine.record import CycleRecord
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, NodeSpec, QueueSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus

LEAN = {"actions": ["allocate"], "tiers": [{"plugins": [{"name": n} for n in ("gang", "proportion", "binpack")]}]}
NODE = requests_from({"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"})


def policy(document: dict[str, object] | str) -> Policy:
    catalogue = installed().catalogue()
    return preset(document, catalogue) if isinstance(document, str) else load(document, catalogue, "bench")


def cluster_of(nodes: int, queues: Sequence[str] = ("default",)) -> Cluster:
    cluster = Cluster()
    for name in queues:
        cluster.put_queue(QueueSpec(name, state="Open"))
    for i in range(nodes):
        labels = {"kubernetes.io/hostname": f"node-{i:06d}", "topology.kubernetes.io/zone": f"zone-{i % 3}"}
        cluster.put_node(NodeSpec(f"node-{i:06d}", allocatable=NODE, labels=labels))
    return cluster


def shapes(count: int) -> list[Shape]:
    out = []
    for k in range(count):
        cpu, memory = 500 + 100 * k, (1 + k % 5) << 30
        requests = requests_from({"cpu": f"{cpu}m", "memory": memory})
        out.append(Shape(requests=requests, scoring=(cpu, memory), footprint=(cpu, memory), qos="Burstable"))
    return out


def add_gang(
    cluster: Cluster,
    name: str,
    size: int,
    shape: Shape,
    queue: str = "default",
    node: Sequence[str] = (),
    priority: int = 0,
    least: int | None = None,
) -> None:
    running = bool(node)
    phase = "Running" if running else "Inqueue"
    least = size if least is None else least
    spec = JobSpec(f"ns/{name}", queue, min_member=least, namespace="ns", name=name, phase=phase, priority=priority)
    cluster.put_job(spec)
    status = TaskStatus.RUNNING if running else TaskStatus.PENDING
    for i in range(size):
        where = node[i % len(node)] if running else ""
        cluster.put_task(
            TaskSpec(
                uid=f"{name}-{i}", namespace="ns", name=f"{name}-worker-{i}", shape=shape, job=spec.key,
                status=status, node=where, priority=priority, pod_priority=priority,
            )
        )  # fmt: skip


def run(cluster: Cluster, chosen: Policy, *, report_all: bool = False) -> tuple[float, CycleRecord]:
    snapshot = cluster.snapshot()
    gc.collect()
    started = process_time()
    record = decide(snapshot, chosen, installed(), 0.0, report_all=report_all)
    return process_time() - started, record


def gangs(nodes: int, pods: int, runs: int, document: dict[str, object] | str = LEAN) -> tuple[float, Cluster]:
    """Seconds to place `pods` in gangs of 50 over 20 shapes."""
    cluster = cluster_of(nodes)
    kinds = shapes(20)
    for j in range(pods // 50):
        add_gang(cluster, f"job-{j:05d}", 50, kinds[j % 20])
    chosen = policy(document)
    times = []
    for _ in range(runs):
        seconds, record = run(cluster, chosen)
        assert len(record.binds) == pods, f"{len(record.binds)} of {pods} placed"
        times.append(seconds)
    return min(times), cluster


def bench_gangs(large: bool) -> list[Figure]:
    seconds, cluster = gangs(5_000, 50_000, 3)
    choose = ClassView.choose
    with patch.object(ClassView, "choose", lambda self, count, within=None: choose(self, 1, within)):
        single, _ = run(cluster, policy(LEAN))
    figures = [Figure("5,000 nodes, 50,000 pods in gangs of 50, lean policy", seconds, "s", 1.0, single, "task by task")]
    figures.append(Figure("  per pod", seconds / 50_000 * 1e6, "us"))
    if large:
        seconds, cluster = gangs(100_000, 1_000_000, 1)
        note = f"peak {peak_memory_gib():.1f} GiB of 8"
        figures.append(Figure("100,000 nodes, 1,000,000 pods, lean policy", seconds, "s", 20.0, note=note))
    return figures


def bench_presets() -> list[Figure]:
    lean, _ = gangs(5_000, 50_000, 3)
    figures = []
    for name in ("volcano", "navarch"):
        seconds, _ = gangs(5_000, 50_000, 3, name)
        figures.append(Figure(f"5,000 nodes, 50,000 pods, preset {name}", seconds, "s", 0.5, lean, "lean policy"))
    return figures


def bench_elastic() -> list[Figure]:
    """Jobs that need one pod and would take 51: ready ones come back for one pod a turn, the least served first."""
    figures = []
    for name in ("navarch", "volcano"):
        seconds = {}
        for least in (51, 1):
            cluster, kinds = cluster_of(5_000), shapes(20)
            for j in range(1_000):
                add_gang(cluster, f"job-{j:05d}", 51, kinds[j % 20], least=least)
            seconds[least], record = run(cluster, policy(name))
            assert len(record.binds) == 51_000, f"{len(record.binds)} of 51,000 placed"
        what = f"5,000 nodes, 1,000 elastic jobs of 1 to 51 pods, preset {name}"
        figures.append(Figure(what, seconds[1], "s", 1.5, seconds[51], "as gangs of 51"))
    return figures


def bench_idle() -> list[Figure]:
    cluster = cluster_of(5_000)
    kind = Shape(requests=requests_from({"cpu": "1", "memory": "2Gi"}))
    names = cluster.nodes.names
    for j in range(3_000):
        start = (j * 50) % 5_000
        add_gang(cluster, f"job-{j:05d}", 50, kind, node=names[start : start + 50])
    settle(cluster)
    whole = best_of(5, cluster.snapshot)
    last, times = cluster.snapshot(), []
    for number in range(20):
        changed = cluster.tasks.specs[number]
        assert changed is not None
        cluster.put_task(replace(changed, priority=number))
        started = perf_counter()
        last = cluster.snapshot(instead_of=last)
        times.append(perf_counter() - started)
    chosen = policy("navarch")
    idle = min(run(cluster, chosen)[0] for _ in range(5))
    full = min(run(cluster, chosen, report_all=True)[0] for _ in range(2))
    return [
        Figure("snapshot after a change, 5,000 nodes, 150,000 running pods", min(times) * 1e3, "ms", 10.0, whole * 1e3, "of nothing"),
        Figure("idle cycle on it, preset navarch", idle * 1e3, "ms", 20.0, full * 1e3, "reporting every job"),
    ]


def settle(cluster: Cluster) -> None:
    """Give running jobs the conditions that a first cycle writes, as a live cluster has them."""

    from navarch.model.spec import Condition

    said = (Condition("Scheduled", "True", "tasks in gang are ready to be scheduled"),)
    for spec in list(cluster.jobs.specs):
        if spec is not None:
            cluster.put_job(replace(spec, conditions=said))


def bench_evict() -> list[Figure]:
    """A 500-pod gang against 4,000 running single-pod jobs on 500 nodes, inside one queue and across two."""
    figures = []
    whole = Shape(requests=requests_from({"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}))
    for what, action, queue in (("preempting", "gangpreempt", "default"), ("reclaiming", "gangreclaim", "other")):
        cluster = cluster_of(500, ("default", "other"))
        for j in range(4_000):
            add_gang(cluster, f"run-{j:05d}", 1, whole, node=[f"node-{j % 500:06d}"])
        add_gang(cluster, "big", 500, whole, queue=queue, priority=100)
        chosen = policy({"actions": ["allocate", action], "tiers": load_tiers("navarch")})
        seconds, record = run(cluster, chosen)
        note = f"{len(record.evictions)} evictions, {len(record.nominations)} promises"
        figures.append(Figure(f"{what} for a 500-pod gang, 4,000 running jobs, 500 nodes", seconds, "s", 1.0, note=note))
    return figures


def load_tiers(name: str) -> object:
    return policy(name).document["tiers"]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="bench.decide", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also 100,000 nodes with 1,000,000 pods")
    parser.add_argument("--only", choices=("gangs", "presets", "elastic", "idle", "evict"))
    given = parser.parse_args(arguments)
    parts = {
        "gangs": lambda: bench_gangs(given.large),
        "presets": bench_presets,
        "elastic": bench_elastic,
        "idle": bench_idle,
        "evict": bench_evict,
    }
    figures = [f for name, part in parts.items() if given.only in (None, name) for f in part()]
    show("bench/decide", figures)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
