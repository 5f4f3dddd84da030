"""The simulator: the Philly trace under B.2's rules beside an independent program, and a year of synthetic load.

    python -m bench.simulate                     d = 2, 3, 4 under fifo, fifo-skip and sjf
    python -m bench.simulate --divide 3 --policies fifo
    python -m bench.simulate --year              1,000,000 jobs on 1,000 nodes: time and memory after every tenth of them
    python -m bench.simulate --year --first 20000     its first jobs alone, at the same rate of arrivals

The independent program is below: lists and loops, no part of Navarch. Its figures stand beside the engine's in every line. Times are
CPU seconds of this process, so that waiting for a processor does not count. Reads ../shared/traces/philly, or that of the folder that
NAVARCH_SHARED names.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import random
import resource
from bisect import insort
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import process_time

from rich.console import Console
from rich.table import Table

from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.simulator.clusters import read_cluster
from navarch.simulator.clusters.philly import NODES
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.simulator.measures import Measures, summary
from navarch.simulator.simulate import simulate
from navarch.simulator.simulation import Simulation
from navarch.simulator.traces import Window, read_trace

WINDOW = Window(datetime(2017, 10, 1, tzinfo=UTC).timestamp(), datetime(2017, 11, 30, 23, 59, tzinfo=UTC).timestamp())
RULES = {"fifo": (False, False), "fifo-skip": (False, True), "sjf": (True, False)}
"""Preset -> shortest first, skips what does not fit."""
DAY = 86400.0


def philly() -> Path:
    shared = Path(os.environ.get("NAVARCH_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    return shared / "traces" / "philly" / "philly.csv"


def reference(jobs: list[TraceJob], divide: int, policy: str) -> tuple[list[float], list[float]]:
    """Completion and queueing times by a program that shares nothing with Navarch."""
    shortest, skips = RULES[policy]
    completion: list[float] = []
    queueing: list[float] = []
    for queue, nodes in NODES.items():
        free = [8] * max(1, nodes // divide)
        mine = [(job.submit, job.line, job.duration, round(job.gpus)) for job in jobs if job.queue == queue]
        ends: list[tuple[float, int, list[tuple[int, int]]]] = []
        waiting: list[tuple[tuple[float, ...], tuple[float, int, float, int]]] = []
        at = 0
        while at < len(mine) or ends:
            now = min(mine[at][0] if at < len(mine) else math.inf, ends[0][0] if ends else math.inf)
            while ends and ends[0][0] == now:
                for node, gpus in heapq.heappop(ends)[2]:
                    free[node] += gpus
            while at < len(mine) and mine[at][0] == now:
                job = mine[at]
                insort(waiting, ((job[2], job[0], job[1]) if shortest else (job[0], job[1]), job))
                at += 1
            left = []
            for place, (key, job) in enumerate(waiting):
                found = _place(free, job[3])
                if found is None:
                    left.append((key, job))
                    if not skips:
                        left += waiting[place + 1 :]
                        break
                    continue
                for node, gpus in found:
                    free[node] -= gpus
                heapq.heappush(ends, (now + job[2], job[1], found))
                queueing.append(now - job[0])
                completion.append(now + job[2] - job[0])
            waiting = left
    return completion, queueing


def _place(free: list[int], gpus: int) -> list[tuple[int, int]] | None:
    if gpus <= 8:
        fits = [(left, node) for node, left in enumerate(free) if left >= gpus]
        return [(min(fits)[1], gpus)] if fits else None
    whole, rest = divmod(gpus, 8)
    nodes = [node for node, left in enumerate(free) if left == 8][:whole]
    if len(nodes) < whole:
        return None
    found = [(node, 8) for node in nodes]
    if rest:
        others = [(-left, node) for node, left in enumerate(free) if left >= rest and node not in nodes]
        if not others:
            return None
        found.append((min(others)[1], rest))
    return found


def compare(divides: list[int], policies: list[str], console: Console) -> None:
    path = philly()
    if not path.exists():
        console.print(f"{path} is not there: nothing is measured")
        return
    jobs = read_trace(f"philly:{path}", WINDOW).jobs
    table = Table(
        "d", "policy", "jobs", "completion", "queueing", "p99 queueing", "reference", "largest difference", "CPU s", "reference CPU s"
    )
    for divide in divides:
        for policy in policies:
            started = process_time()
            run = simulate(jobs, f"philly/{divide}", [policy]).runs[0]
            took = process_time() - started
            started = process_time()
            completion, queueing = reference(jobs, divide, policy)
            alone = process_time() - started
            ours = [*_figures(list(run.measures.completion), list(run.measures.queueing))]
            theirs = [*_figures(completion, queueing)]
            worst = max(abs(a - b) / b for a, b in zip(ours, theirs))
            shown = [f"{value:,.0f}" for value in ours]
            table.add_row(
                str(divide), policy, f"{run.measures.finished:,}", *shown, " / ".join(f"{value:,.0f}" for value in theirs),
                f"{100 * worst:.3f} %", f"{took:.1f}", f"{alone:.1f}",
            )  # fmt: skip
            console.print(
                f"d={divide} {policy}: {' / '.join(shown)}, off by {100 * worst:.3f} %, {took:.1f} s CPU, {run.cycles:,} cycles"
            )
    console.print(table)


def _figures(completion: list[float], queueing: list[float]) -> Iterator[float]:
    for value in (summary(completion)["mean"], summary(queueing)["mean"], summary(queueing)["p99"]):
        assert value is not None
        yield value


def synthetic(count: int, nodes: int, load: float, seed: int = 1) -> Iterator[TraceJob]:
    """A year of jobs for nodes with 8 GPUs: sizes as Philly's, durations lognormal, arrivals Poisson with day and night."""
    draw = random.Random(seed)
    sizes = [(PodSet(gpus=1),)] * 78 + [(PodSet(gpus=2),)] * 6 + [(PodSet(gpus=4),)] * 8 + [(PodSet(gpus=8),)] * 6
    sizes += [(PodSet(2, gpus=8),), (PodSet(4, gpus=8),)]
    year = 365 * 86400.0
    mean_gpus = sum(each.count * each.gpus for pods in sizes for each in pods) / len(sizes)
    mean_duration = load * nodes * 8 * year / (count * mean_gpus)
    scale = mean_duration / math.exp(1.5**2 / 2)
    now = 0.0
    for number in range(count):
        busy = 1.5 if 9 <= (now / 3600) % 24 < 19 else 0.64
        now += draw.expovariate(busy * count / year)
        duration = scale * draw.lognormvariate(0, 1.5)
        yield TraceJob(name=f"j{number:07d}", submit=now, duration=duration, pods=draw.choice(sizes), queue=f"team-{number % 8}")


def resident() -> float:
    """MiB of memory that the process has now; the most that it ever had where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / (1 << 20)


def year(count: int, nodes: int, load: float, first: int | None, console: Console) -> None:
    registry = installed(())
    policy = read_policy("fifo-skip", registry)
    cluster, _ = read_cluster(f"n={nodes}x8gpu").build(settings_for(policy))
    measures = Measures(8 * nodes)
    simulation = Simulation(cluster, policy, registry, measures)
    started, tenth = process_time(), 0
    each_tenth = (first or count) // 10
    before = 0.0
    for time in simulation.steps(islice(synthetic(count, nodes, load), first)):
        if measures.jobs >= tenth * each_tenth and tenth <= 10:
            used, running = process_time() - started, len(simulation.jobs) - len(simulation.waiting)
            console.print(
                f"day {time / DAY:5.1f}: {measures.jobs:9,} jobs came, {running:6,} run, {used:6.1f} s CPU"
                f" ({1e3 * (used - before) / max(each_tenth, 1):.3f} ms a job), {resident():,.1f} MiB"
            )
            tenth, before = tenth + 1, used
    took = process_time() - started
    each = 1e3 * took / max(measures.finished, 1)
    console.print(f"{measures.finished:,} jobs, {simulation.cycles:,} cycles, {took:.1f} s CPU, {each:.3f} ms a job")
    console.print(f"GPUs allocated {measures.to_dict()['gpuAllocated']['mean']:.1f} %, queueing {measures.to_dict()['queueing']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--divide", default="2,3,4")
    parser.add_argument("--policies", default="fifo,fifo-skip,sjf")
    parser.add_argument("--year", action="store_true")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, help="play only so many jobs of the year")
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--load", type=float, default=0.85)
    given = parser.parse_args()
    console = Console(width=180)
    if given.year:
        year(given.jobs, given.nodes, given.load, given.first, console)
    else:
        compare([int(each) for each in given.divide.split(",")], given.policies.split(","), console)


if __name__ == "__main__":
    main()
