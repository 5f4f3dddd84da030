"""Start times of waiting jobs with their uncertainty: many forecasts, each over other run times.

How long a job runs is, by the first of these that is known:

1. the run times of jobs like it (`run_times`), given how long it has run already, and never longer than its walltime;
2. its walltime: `activeDeadlineSeconds` of its pods or their Job;
3. the annotation `navarch.io/expected-duration`. A job that has outlived it may end at any time: the chance to run twice as long as
   until now is one half.

A job without any of these is supposed to run for ever. If the history reaches back a day or more, jobs come as they came in the past
(`arrivals`); otherwise none comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from time import perf_counter

import numpy as np
from msgspec import Struct

from navarch.engine.policy import Policy
from navarch.engine.registry import Registry
from navarch.job_history import JobRun, is_gang, run_of
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.status import IS_TERMINAL, ON_NODE
from navarch.simulator.forecast import ForecastFailed, forecast
from navarch.simulator.jobs import TraceJob
from navarch.simulator.start_times.arrivals import PastArrivals
from navarch.simulator.start_times.deadlines import Deadlines
from navarch.simulator.start_times.run_times import Batch, Draw, RunTimes, Survival
from navarch.simulator.start_times.step_forecast import STEPS_FROM, StepForecast
from navarch.views.prospects import StartTime

RUNS = 100
ENOUGH_RUNS = 20
"""With so many forecasts their quantiles are the interval."""
FEWEST_RUNS = 8
"""With fewer forecasts nothing is said."""
_STUDENT = {
    8: (1.415, 1.895),
    9: (1.397, 1.860),
    10: (1.383, 1.833),
    11: (1.372, 1.812),
    12: (1.363, 1.796),
    13: (1.356, 1.782),
    14: (1.350, 1.771),
    15: (1.345, 1.761),
    16: (1.341, 1.753),
    17: (1.337, 1.746),
    18: (1.333, 1.740),
    19: (1.330, 1.734),
}
"""Runs -> the 90 % and 95 % quantiles of Student's t for them."""
SPREAD = 1.4
"""Times that rest on history lie so much further from p50 than their quantiles among the runs. Runs repeat what has happened before,
so they agree too much. Chosen on 82 forecasts of the Philly trace (`bench.eta`); docs/explain.md says how it fares on others."""
NO_BASIS = "no job has a walltime, an expected duration or a history"
HORIZON = 30 * 86400.0
"""Seconds that a forecast reaches."""
_OUTLIVED = Survival(())


class StartTimes(Struct):
    """By key of the job. `unknown`: why there is no time."""

    known: dict[str, StartTime]
    unknown: dict[str, str]
    runs: int = 0


class _Job(Struct):
    run: JobRun
    age: float | None
    """Seconds since it started; None: it waits."""
    walltime: float | None
    expected: float | None
    kind: Hashable | None
    """The class of the history that it is drawn from."""
    batch: Batch | None = None
    """The jobs of that class that came with it."""

    @property
    def basis(self) -> str:
        if self.kind is not None:
            return "history"
        return "walltime" if self.walltime is not None else "expected duration" if self.expected is not None else ""


def may_know(cluster: Cluster, history: Sequence[JobRun], deadlines: Deadlines) -> bool:
    """Whether a basis could be known at all: a look at each spec, before a basis is made."""
    if history or deadlines or any(job is not None and job.expected_duration is not None for job in cluster.jobs.specs):
        return True
    return any(task is not None and task.active_deadline is not None for task in cluster.tasks.specs)


class Basis:
    """What is known of the run times of a cluster's jobs at a moment."""

    def __init__(
        self,
        cluster: Cluster,
        now: float,
        history: Iterable[JobRun] = (),
        deadlines: Deadlines | None = None,
    ) -> None:
        """`deadlines`: of Jobs, by namespace and name (`job_deadlines`)."""
        past = sorted((run for run in history if run.submitted <= now), key=lambda run: (run.submitted, run.uid))
        alive = {*cluster.tasks.rows.of, *cluster.jobs.rows.of, *(spec.uid for spec in cluster.jobs.specs if spec is not None)}
        # A run without an end that the cluster does not hold ended while no scheduler watched: its length is not known.
        self.times = RunTimes((run for run in past if run.finished is not None or run.uid in alive), now)
        self.arrivals = PastArrivals(past, now)
        self._deadlines = deadlines or {}
        self.jobs: dict[str, _Job] = {}
        self.failed: dict[str, str] = {}
        """Jobs that cannot be forecast, and why. The others are forecast without them."""
        for row, spec in enumerate(cluster.jobs.specs):
            tasks = [task for each in cluster.jobs.tasks[row] if (task := cluster.tasks.specs[each]) is not None] if spec else []
            tasks = [task for task in tasks if not IS_TERMINAL[task.status]]
            if spec is not None and tasks:
                try:
                    self.jobs[spec.key] = self._job(spec, tasks, now)
                except Exception as error:
                    self.failed[spec.key] = str(ForecastFailed(spec.key, error))

    @property
    def known(self) -> bool:
        """Whether the end of any job can be told."""
        return any(job.basis for job in self.jobs.values())

    @property
    def running(self) -> int:
        """Jobs that run."""
        return sum(job.age is not None for job in self.jobs.values())

    @property
    def has_history(self) -> bool:
        """Whether run times of the past count for any job."""
        return any(job.kind is not None for job in self.jobs.values())

    def _job(self, spec: JobSpec, tasks: Sequence[TaskSpec], now: float) -> _Job:
        placed = [task for task in tasks if task.node and ON_NODE[task.status]]
        age = max((now - (task.started if task.started is not None else now) for task in placed), default=None)
        limits = [task.active_deadline for task in tasks if task.active_deadline is not None]
        walltime = max(limits) if len(limits) == len(tasks) else None
        owner = tasks[0].owner
        if owner is not None and owner[0] == "Job" and (found := self._deadlines.get((tasks[0].namespace, owner[1]))) is not None:
            since, deadline = found
            if since is not None:
                deadline = max(since + deadline - now, 0.0) + (age or 0.0)
            walltime = deadline if walltime is None else min(walltime, deadline)
        expected = None if spec.expected_duration == walltime else spec.expected_duration
        run = run_of(spec, tasks if is_gang(spec) else tasks[:1])
        kind = self.times.class_of(run)
        return _Job(run, age, walltime, expected, kind, None if kind is None else self.times.batch_of(kind, run))

    def remaining(self, key: str, draw: Draw, random: np.random.Generator) -> float:
        """Seconds that a job still runs in one draw."""
        job = self.jobs.get(key)
        if job is None:
            return math.inf
        age = job.age or 0.0
        limit = math.inf if job.walltime is None else max(job.walltime - age, 0.0)
        if job.kind is not None:
            return min(draw.remaining(job.kind, age, job.batch), limit)
        if job.walltime is not None or job.expected is None:
            return limit
        return job.expected - age if age < job.expected else _OUTLIVED.remaining(age, 1.0 - float(random.random()))

    def run_time(self, run: JobRun, draw: Draw) -> float | None:
        """Of a job that comes in one draw; None: not known."""
        kind = self.times.class_of(run)
        return None if kind is None else draw.remaining(kind)

    def told(self, runs: int, *, in_steps: bool = False) -> str:
        """The basis in a sentence."""
        running = [job for job in self.jobs.values() if job.age is not None]
        parts = []
        for name, text in _BASES.items():
            count = sum(job.basis == name for job in running)
            if count:
                parts.append(f"{count} {text}")
        few = ", few, so the interval is wider" if runs in _STUDENT else ""
        text = f"{runs} run{'s' if runs != 1 else ''}{' in steps' if in_steps else ''}{few}; "
        text += f"of {len(running)} running jobs {', '.join(parts)}" if running else "no job runs"
        if self.times.finished:
            text += f"; {self.times.finished} finished jobs known"
        if self.has_history:
            text += f", spread by {SPREAD:g}"
        days = self.arrivals.span / 86400.0
        return text + (f"; jobs come as in the last {days:.3g} days" if self.arrivals.known else "; no job comes after now")


_BASES = {
    "walltime": "by walltime",
    "history": "by history",
    "expected duration": "by expected duration",
    "": "supposed to run for ever",
}


def start_times(
    cluster: Cluster,
    policy: Policy,
    registry: Registry,
    now: float,
    wanted: Collection[str],
    basis: Basis,
    *,
    runs: int = RUNS,
    seconds: float = math.inf,
    seed: int = 0,
    known: Mapping[str, TraceJob] | None = None,
    clock: Callable[[], float] = perf_counter,
    steps_from: int = STEPS_FROM,
) -> StartTimes:
    """Start times of waiting jobs, by key. Stops after `seconds`; the same seed gives the same times where all runs were made.

    `known`: jobs that came from a trace; then cycles that cannot start anything are left out (`forecast`). With more than `steps_from`
    running jobs, ends are taken in steps (`step_forecast`).
    """
    begun = clock()
    in_steps = known is None and basis.running > steps_from
    steps = StepForecast(cluster, policy, registry, now, wanted) if in_steps else None

    def proceed() -> bool:
        return clock() - begun < seconds

    def one_run(number: int) -> dict[str, float] | None:
        random = np.random.default_rng([seed, number])
        draw = Draw(basis.times, random)
        arrivals = basis.arrivals.draw(random, lambda run: basis.run_time(run, draw)) if basis.arrivals.known else ()
        remaining = {key: basis.remaining(key, draw, random) for key in in_order if key not in failed}
        until = now + HORIZON
        if steps is not None:
            return steps.run(remaining, random, until=until, arrivals=arrivals, proceed=proceed)

        def supposed(job: JobSpec, running: bool) -> float | None:
            return None if job.key in failed else remaining.get(job.key, math.inf)

        return forecast(
            cluster, policy, registry, now, supposed, until=until, wanted=found.keys(), arrivals=arrivals, known=known, proceed=proceed
        )

    in_order = sorted(basis.jobs, key=lambda key: (basis.jobs[key].run.submitted, key))
    failed = dict(basis.failed)
    found: dict[str, list[float]] = {key: [] for key in wanted if key not in failed}
    made = 0
    try:
        while made < runs and proceed():
            try:
                starts = one_run(made)
            except ForecastFailed as error:
                if not error.key:
                    return StartTimes({}, dict.fromkeys(wanted, str(error)), made)
                failed[error.key] = str(error)  # the same run again, without it
                found.pop(error.key, None)
                continue
            if starts is None:
                break
            made += 1
            for key, times in found.items():
                times.append(starts.get(key, math.inf))
    finally:
        if steps is not None:
            steps.close()
    if made < min(FEWEST_RUNS, runs):
        out = StartTimes({}, dict.fromkeys(found, _too_few(made, clock() - begun)), made)
    else:
        out = _summed_up(found, now, basis, made, basis.told(made, in_steps=in_steps))
    out.unknown.update((key, failed[key]) for key in wanted if key in failed)
    return out


def _summed_up(found: Mapping[str, Sequence[float]], now: float, basis: Basis, made: int, told: str) -> StartTimes:
    """Start times out of those of each run. `told`: what the estimate rests on."""
    out = StartTimes({}, {}, made)
    spread = SPREAD if basis.has_history else 1.0
    for key, times in found.items():
        waits = quantiles([time - now for time in times])
        if waits is None:
            out.unknown[key] = _why(basis, sum(map(math.isfinite, times)), made)
            continue
        middle = waits[1]
        early, _, p90, p95 = (now + max(middle + spread * (wait - middle), 0.0) for wait in waits)
        out.known[key] = StartTime(early, now + middle, p90, p95, told)
    return out


def quantiles(waits: Sequence[float]) -> tuple[float, float, float, float] | None:
    """p05, p50, p90 and p95 of what comes, from the waits of some runs; None: too many have no end.

    The least and the greatest of a few runs lie too near to each other. So fewer than `ENOUGH_RUNS` are taken for draws from a
    log-normal distribution, and the interval is the one in which the next draw from it falls with that chance.

    >>> quantiles([60.0] * 10)
    (60.0, 60.0, 60.0, 60.0)
    """
    made, waits = len(waits), sorted(waits)
    middle, late = waits[int(0.5 * made)], waits[min(int(0.95 * made), made - 1)]
    if not math.isfinite(late):
        return None
    if made not in _STUDENT:  # between the k-th and the m-th of n runs the next one falls with a chance of (m - k) / (n + 1)
        return waits[max(round(0.05 * (made + 1)) - 1, 0)], middle, waits[int(0.9 * made)], late
    logs = np.log1p(np.maximum(waits, 0.0))
    if np.ptp(logs) == 0.0:
        return middle, middle, middle, middle
    centre, width = float(logs.mean()), float(logs.std(ddof=1)) * math.sqrt(1.0 + 1.0 / made)
    of_90, of_95 = _STUDENT[made]
    early, p90, p95 = (math.expm1(centre + width * each) for each in (-of_95, of_90, of_95))
    return min(early, middle), middle, max(p90, middle), max(p95, middle)


def _too_few(made: int, seconds: float) -> str:
    """Why nothing is said, and how much time would do."""
    needed = f"at least {FEWEST_RUNS} are needed"
    if not made:
        return f"no run of the scheduler fitted into the time, and {needed}: give it more time"
    enough = math.ceil(seconds / made * FEWEST_RUNS * 1.2 / 10.0) * 10
    fitted = f"{made} run{'s' if made > 1 else ''} of the scheduler fitted into the time"
    return f"{fitted}, and {needed}: give it about {enough} seconds"


def _why(basis: Basis, started: int, made: int) -> str:
    running = [job for job in basis.jobs.values() if job.age is not None]
    endless = sum(not job.basis for job in running)
    if endless == len(running):
        return "no running job has a walltime, an expected duration or a history"
    return (
        f"it starts in {started} of {made} runs within {HORIZON / 86400:g} days; "
        f"{endless} of {len(running)} running jobs have no walltime, no expected duration and no history"
    )
