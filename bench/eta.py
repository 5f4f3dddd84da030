"""Whether start times are right: forecasts at moments of the simulated Philly trace beside what the simulation then does.

    python -m bench.eta                                   fifo-skip on philly/3
    python -m bench.eta --policy navarch --divide 2 --moments 20 --runs 60
    python -m bench.eta --plot docs/images/eta.svg        with a plot of coverage

Each virtual cluster of the trace is simulated alone, as it is a queue with nodes of its own. At random moments after the first two
weeks some of the waiting jobs are forecast from what was known then: jobs that had come, starts and ends until then. The class of a
job is its virtual cluster and its GPUs. The simulation goes on, and the forecast is compared with the start that follows. Coverage is
the share of jobs that start between p05 and p95. Beside it stand the width of that interval, the pinball loss of p50, p90 and p95, and
the loss of a rule of thumb: the same quantiles of what the last 100 jobs of the queue waited in all, given what the job has waited.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import numpy as np
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from bench.simulate import WINDOW, philly
from navarch.engine.record import CycleRecord
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.job_history import JobRun
from navarch.offline.policies import read_policy
from navarch.simulator.clusters import read_cluster
from navarch.simulator.clusters.philly import NODES
from navarch.simulator.fitting import Fitting
from navarch.simulator.jobs import GPU, TraceJob
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.simulation import Simulation
from navarch.simulator.start_times.estimate import Basis, start_times
from navarch.simulator.traces import read_trace

LEARN = 14 * 86400.0
"""Seconds of the trace before the first forecast."""
LEVELS = (0.5, 0.9, 0.95)


@dataclass
class Forecast:
    """Times in seconds after the moment of the forecast."""

    queue: str
    moment: float
    job: str
    gpus: float
    waited: float
    times: tuple[float, float, float, float]
    """p05, p50, p90 and p95."""
    thumb: tuple[float, ...]
    """The rule of thumb's p50, p90 and p95."""
    actual: float = -1.0

    @property
    def covered(self) -> bool:
        return self.times[0] <= self.actual <= self.times[3]


class Watch:
    """Keeps the history of a simulation."""

    def __init__(self) -> None:
        self.runs: dict[str, JobRun] = {}
        self.starts: dict[str, float] = {}
        self.waits: list[float] = []
        self.jobs: dict[str, TraceJob] = {}

    def arrived(self, now: float, job: TraceJob) -> None:
        pods = tuple((each.count, ((GPU, each.gpus * 1000),), each.node_selector) for each in job.pods)
        key = f"default/{job.name}"
        self.jobs[key] = job
        self.runs[key] = JobRun(key, now, "default", job.queue, pods=pods, needed=job.needed)

    def moved(self, now: float, job: SimulatedJob) -> None:
        key = job.spec.key
        run = self.runs[key]
        if job.started is None:
            self.runs[key] = replace(run, started=None)
        elif run.started is None:
            self.runs[key] = replace(run, started=now)
            if key not in self.starts:
                self.starts[key] = now
                self.waits.append(now - run.submitted)

    def ended_job(self, now: float, job: SimulatedJob, *, done: bool) -> None:
        self.runs[job.spec.key] = replace(self.runs[job.spec.key], finished=now)

    def decided(self, now: float, record: CycleRecord, seconds: float) -> None:
        return None

    def fragmented_by(self, now: float, gpus: float) -> None:
        return None


@dataclass(frozen=True)
class Options:
    policy: str
    divide: int
    moments: int
    runs: int
    each: int
    seed: int


def judge(queue: str, jobs: list[TraceJob], options: Options) -> list[Forecast]:
    """Forecasts of one virtual cluster."""
    registry = installed(())
    policy = read_policy(options.policy, registry)
    cluster, nodes = read_cluster(f"vc={max(1, NODES[queue] // options.divide)}x8gpu").build(settings_for(policy))
    watch = Watch()
    simulation = Simulation(cluster, policy, registry, watch)
    random = np.random.default_rng([options.seed, list(NODES).index(queue)])
    begin, end = jobs[0].submit + LEARN, jobs[-1].submit
    planned = sorted(random.uniform(begin, end, options.moments).tolist()) if end > begin else []
    found: list[Forecast] = []
    for now in simulation.steps(Fitting(nodes, "").jobs(jobs)):
        if not planned and all(each.job in watch.starts for each in found):
            break
        if not planned or now < planned[0]:
            continue
        waiting = sorted(job.spec.key for job in simulation.waiting if job.first_start is None)
        planned.pop(0)
        if not waiting:
            continue
        chosen = sorted(random.choice(waiting, min(options.each, len(waiting)), replace=False).tolist())
        basis = Basis(cluster, now, watch.runs.values())
        answer = start_times(
            cluster, policy, registry, now, chosen, basis, runs=options.runs, seed=options.seed + len(found), known=watch.jobs
        )
        for key, time in answer.known.items():
            job, waited = watch.jobs[key], now - watch.jobs[key].submit
            times = (time.p05 - now, time.p50 - now, time.p90 - now, time.p95 - now)
            found.append(Forecast(queue, now, key, job.gpus, waited, times, _thumb(watch.waits, waited)))
    for each in found:
        each.actual = watch.starts[each.job] - each.moment
    return found


def _thumb(waits: list[float], waited: float) -> tuple[float, ...]:
    longer = sorted(each - waited for each in waits[-100:] if each > waited)
    return tuple(longer[int(level * len(longer))] for level in LEVELS) if longer else (0.0, 0.0, 0.0)


def pinball(quantile: float, actual: float, level: float) -> float:
    return (actual - quantile) * level if actual >= quantile else (quantile - actual) * (1.0 - level)


def report(found: list[Forecast], title: str, console: Console) -> None:
    table = Table(title=title, title_justify="left")
    for column in (
        "jobs",
        "forecasts",
        "p05 to p95 covers",
        "before p50",
        "before p90",
        "median width",
        "pinball loss",
        "rule of thumb",
    ):
        table.add_column(column, justify="left" if column == "jobs" else "right")
    sizes = [("1 GPU", 0, 1), ("2 to 8 GPUs", 2, 8), ("more", 9, 10**9)]
    groups = [
        ("all", found),
        *((name, [each for each in found if low <= each.gpus <= high]) for name, low, high in sizes),
    ]
    for name, rows in [*groups, *((queue, [each for each in found if each.queue == queue]) for queue in NODES)]:
        if not rows:
            continue
        losses = [
            (pinball(value, each.actual, level), pinball(thumb, each.actual, level))
            for each in rows
            for value, thumb, level in zip(each.times[1:], each.thumb, LEVELS)
        ]
        ours, thumbs = np.mean(losses, axis=0) / 3600
        table.add_row(
            name,
            str(len(rows)),
            f"{np.mean([each.covered for each in rows]):.1%}",
            f"{np.mean([each.actual <= each.times[1] for each in rows]):.1%}",
            f"{np.mean([each.actual <= each.times[2] for each in rows]):.1%}",
            f"{np.median([each.times[3] - each.times[0] for each in rows]) / 3600:.1f} h",
            f"{ours:.2f} h",
            f"{thumbs:.2f} h",
        )
    console.print(table)


def plot(found: list[Forecast], path: Path) -> None:
    """An SVG: a line from p05 to p95 for each forecast, in the order of p50, and a dot for what happened. Hours, logarithmic."""
    rows = sorted(found, key=lambda each: each.times[1])
    width, height, left, bottom = 900, 360, 60, 40
    low, high = math.log10(0.1), math.log10(max(1.0, *(max(each.times[3], each.actual) / 3600 for each in rows)))

    def across(number: int) -> float:
        return left + (width - left - 10) * (number + 0.5) / len(rows)

    def up(seconds: float) -> float:
        part = (math.log10(max(seconds / 3600, 0.1)) - low) / (high - low)
        return height - bottom - (height - bottom - 15) * part

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">']
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for hours in (0.1, 1, 10, 100):
        y = up(hours * 3600)
        parts.append(f'<line x1="{left}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{hours:g} h</text>')
    for number, each in enumerate(rows):
        x = across(number)
        early, middle, _, late = map(up, each.times)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{early:.1f}" y2="{late:.1f}" stroke="#9db8d9" stroke-width="4"/>')
        parts.append(
            f'<line x1="{x - 3:.1f}" x2="{x + 3:.1f}" y1="{middle:.1f}" y2="{middle:.1f}" stroke="#2b5c9e" stroke-width="2"/>'
        )
        parts.append(f'<circle cx="{x:.1f}" cy="{up(each.actual):.1f}" r="2.6" fill="{"#222" if each.covered else "#d1242f"}"/>')
    text = "time until the start: lines from p05 to p95 with p50, dots for what happened (red: outside)"
    parts.append(f'<text x="{left}" y="{height - 12}">{text}; {len(rows)} forecasts</text></svg>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def read_saved(paths: list[Path]) -> list[Forecast]:
    """Forecasts that --save wrote."""
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return [Forecast(**json.loads(line)) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="fifo-skip")
    parser.add_argument("--divide", type=int, default=3)
    parser.add_argument("--moments", type=int, default=20, help="moments a virtual cluster")
    parser.add_argument("--each", type=int, default=3, help="jobs a moment")
    parser.add_argument("--runs", type=int, default=100, help="forecasts a moment")
    parser.add_argument("--queues", default=",".join(NODES), help="virtual clusters")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", type=Path, help="JSON Lines of the forecasts")
    parser.add_argument("--saved", type=Path, action="append", default=[], help="show forecasts that --save wrote; may repeat")
    parser.add_argument("--plot", type=Path, help="an SVG of the forecasts")
    given = parser.parse_args()
    console = Console(width=140)
    if given.saved:
        found = read_saved(given.saved)
        report(found, ", ".join(path.stem for path in given.saved), console)
        if given.plot is not None:
            plot(found, given.plot)
        return
    if not philly().exists():
        console.print(f"{philly()} is not there: nothing is measured")
        return
    jobs = read_trace(f"philly:{philly()}", WINDOW).jobs
    options = Options(given.policy, given.divide, given.moments, given.runs, given.each, given.seed)
    started = process_time()
    found = []
    for queue in given.queues.split(","):
        found += judge(queue, [job for job in jobs if job.queue == queue], options)
        console.print(f"{queue}: {len(found)} forecasts, {process_time() - started:.0f} s of CPU", highlight=False)
        if given.save is not None:
            given.save.write_text("".join(json.dumps(asdict(each)) + "\n" for each in found))
    if found:
        report(found, f"{given.policy} on philly/{given.divide}, {given.runs} runs a forecast", console)
        if given.plot is not None:
            plot(found, given.plot)


if __name__ == "__main__":
    main()
