"""Placement while pods come and go: GPUs allocated and failed starts, at loads below and above what the cluster has, beside FGD.

    python -m bench.packing_departures                    loads 0.9 and 1.1, packing and FGD, one seed: some minutes of one core
    python -m bench.packing_departures --seeds 42,43 --share 4

Pods of the openb list `default` come at random moments and run for their time, at most 20,000 s (one in twenty-five runs longer). The
cluster is every eighth node of the list. A pod that does not start within a minute leaves: that is a failed start. Allocation is the
mean over the second half of the time. `fragmentation` knows the pods of the cluster, not those to come. `packing-consolidation` moves
running pods; a moved pod starts again, and the GPU hours that this loses are shown.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

from rich.console import Console
from rich.table import Table

from bench.packing import POLICIES, folder
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.simulator.arrivals import steady_arrivals
from navarch.simulator.clusters import read_cluster
from navarch.simulator.clusters.setup import GPU, ClusterSetup
from navarch.simulator.measures import Measures
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.simulation import Simulation
from navarch.simulator.traces import read_trace

UNTIL, WALLTIME, PATIENCE = 60_000.0, 20_000.0, 60.0


class Starts(Measures):
    """Counts jobs that left without having started, by GPUs."""

    def __init__(self, gpus: float) -> None:
        super().__init__(gpus)
        self.failed: Counter[float] = Counter()
        self.came: Counter[float] = Counter()

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        super().ended_job(now, job, done=done)
        self.came[job.job.gpus] += 1
        if job.first_start is None:
            self.failed[job.job.gpus] += 1


@dataclass
class Outcome:
    allocated: list[float] = field(default_factory=list)
    failed: list[float] = field(default_factory=list)
    failed_of_8: list[str] = field(default_factory=list)
    moved: int = 0
    lost: float = 0.0
    seconds: float = 0.0


def run(data: Path, policy_name: str, load: float, seed: int, share: int) -> tuple[Starts, float]:
    started = process_time()
    registry = installed()
    policy = read_policy(POLICIES[policy_name], registry)
    whole = read_cluster(f"openb:{data / 'openb_node_list_gpu_node.csv'}")
    cluster, nodes = ClusterSetup(whole.documents[::share]).build(settings_for(policy))
    gpus = sum(dict(node.allocatable).get(GPU, 0) for node in nodes) / 1000
    measures = Starts(gpus)
    jobs = read_trace(f"openb:{data / 'openb_pod_list_default.csv'}").jobs
    come = steady_arrivals(jobs, gpus, load, seed, until=UNTIL, walltime=WALLTIME)
    Simulation(cluster, policy, registry, measures, patience=PATIENCE).run(come, UNTIL)
    return measures, process_time() - started


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", default="0.9,1.1")
    parser.add_argument("--policies", default="packing,packing-consolidation,fgd,best-fit")
    parser.add_argument("--seeds", default="42")
    parser.add_argument("--share", type=int, default=8, help="every so manyth node of the list")
    given = parser.parse_args(arguments)
    data = folder()
    if data is None:
        print("packing: the openb lists are not there (../shared/traces/openb, or NAVARCH_SHARED)")
        return
    seeds = [int(seed) for seed in given.seeds.split(",")]
    table = Table(title=f"Pods that come and go, seeds {given.seeds}, every {given.share}th node", title_justify="left")
    for column in ("load", "policy", "GPUs allocated %", "failed starts %", "failed of 8 GPUs", "moved", "GPU h lost", "s a run"):
        table.add_column(column)
    for load in map(float, given.loads.split(",")):
        for policy in given.policies.split(","):
            out, eights = Outcome(), Counter[str]()
            for seed in seeds:
                measures, seconds = run(data, policy, load, seed, given.share)
                late = [value for moment, value in measures.allocated.points(UNTIL) if moment >= UNTIL / 2]
                out.allocated.append(100 * sum(late) / len(late) / measures.gpus)
                out.failed.append(100 * sum(measures.failed.values()) / max(1, measures.jobs))
                eights.update(failed=measures.failed[8.0], came=measures.came[8.0])
                figures = measures.to_dict()
                out.moved += figures["preemptions"]
                out.lost += figures["lostGpuSeconds"] / 3600
                out.seconds += seconds / len(seeds)
            row = [f"{sum(each) / len(seeds):.2f}" for each in (out.allocated, out.failed)]
            eight = f"{eights['failed']} of {eights['came']}"
            table.add_row(f"{load:g}", policy, *row, eight, str(out.moved), f"{out.lost:.1f}", f"{out.seconds:.0f}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
