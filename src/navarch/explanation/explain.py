"""Why a job waits, what is before it, and what would start it: each answer proved by running the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from navarch.engine.policy import Policy
from navarch.explanation.documents import Input
from navarch.explanation.names import job_key
from navarch.explanation.result import Eta, Explanation
from navarch.explanation.search import Search
from navarch.explanation.shared_run import SharedRuns
from navarch.explanation.subject import Census
from navarch.explanation.trials import Run, Trials
from navarch.installed import installed
from navarch.job_history import JobRun, read_history
from navarch.model.timestamps import rfc3339
from navarch.offline.cycles import Cycles, Rules
from navarch.offline.inputs import Moment, Objects, read_directories, read_moment, read_objects
from navarch.offline.plan import PlanError, read_policy, settings_for
from navarch.simulator.start_times.deadlines import job_deadlines
from navarch.simulator.start_times.estimate import NO_BASIS, RUNS, Basis, may_know, start_times

SHARED_FROM = 2000
"""With at least this many objects, trials share one reading of the input. Smaller inputs are read again for each trial."""
_SEARCH_SHARE = 0.8
"""The part of the time that the search may take where a start time can be estimated; the rest is for that."""


def explain(
    objects: Objects,
    job: str,
    policy: str | Path | Mapping[str, object] | Policy | None = None,
    now: Moment | None = None,
    trials: int = 200,
    seconds: float = 5.0,
    *,
    scheduler_names: Iterable[str] | str | None = None,
    keep_going: bool = False,
    namespace_as_queue: bool = False,
    node_pool_label_key: str = "",
    partition_label_value: str = "",
    plugin_dirs: str | Path | Iterable[str | Path] = (),
    metrics: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
    history: str | Path | Sequence[JobRun] = (),
    seed: int = 0,
    ask_extenders: bool = False,
) -> Explanation:
    """Explain a job among decoded manifests. The arguments are those of `navarch.plan`, and so are the errors.

    `job`: `[namespace/]name`, `pod/name`, or the name of a workload. At most `trials` trials are run, for about `seconds`; what was
    not established by then is listed, and `complete` is False. `history`: the file of `navarch run --history`, or its rows, from which
    the start time is estimated; `seed` chooses its draws. `ask_extenders`: ask the HTTP extenders of the policy in every trial; else
    `notes` names them. Raises `NotFound` where there is no such job, `HistoryError` where the file cannot be read.
    """
    started = perf_counter()
    past = read_history(history) if isinstance(history, str | Path) else history
    read = reading(
        objects,
        policy,
        now,
        scheduler_names,
        keep_going,
        namespace_as_queue,
        plugin_dirs,
        metrics,
        node_pool_label_key,
        partition_label_value,
        ask_extenders,
    )
    found = explain_read(read, job, trials, seconds, progress=progress, history=past, seed=seed)
    found.seconds = round(perf_counter() - started, 3)
    return found


@dataclass(frozen=True, slots=True)
class Reading:
    """Objects and rules as `navarch.plan` would read them."""

    given: Input
    rules: Rules
    run: Cycles


def reading(
    objects: Objects,
    policy: str | Path | Mapping[str, object] | Policy | None = None,
    now: Moment | None = None,
    scheduler_names: Iterable[str] | str | None = None,
    keep_going: bool = False,
    namespace_as_queue: bool = False,
    plugin_dirs: str | Path | Iterable[str | Path] = (),
    metrics: Mapping[str, Any] | None = None,
    node_pool_label_key: str = "",
    partition_label_value: str = "",
    ask_extenders: bool = False,
) -> Reading:
    registry = installed(read_directories(plugin_dirs))
    chosen = read_policy(policy, registry)
    moment = None if now is None else read_moment(now)
    settings = settings_for(chosen, scheduler_names, namespace_as_queue, node_pool_label_key, partition_label_value)
    rules = Rules(chosen, registry, settings, moment, metrics or {}, asks=ask_extenders)
    documents, mistakes = read_objects(objects)
    run = Cycles(documents, rules)
    mistakes += [*run.inventory.mistakes, *run.metrics_mistakes]
    if mistakes and not keep_going:
        raise PlanError(mistakes)
    return Reading(Input(documents), rules, run)


def explain_read(
    read: Reading,
    job: str,
    trials: int = 200,
    seconds: float = 5.0,
    *,
    progress: Callable[[int, int], None] | None = None,
    history: Sequence[JobRun] = (),
    seed: int = 0,
    reached: Callable[[Search, str], None] | None = None,
) -> Explanation:
    """Explain a job among objects that have been read. `reached` is told each part of the search that has ended."""
    started = perf_counter()
    census = Census(read.given, read.run)
    key = job_key(census, job)
    shared = SharedRuns(read.given, census, read.run) if len(read.given.documents) > SHARED_FROM else None

    def follow(changed: Run) -> str:
        return census.follow(key, changed)

    timed = may_know(census.run.cluster, history, job_deadlines(census.input.of_kind("Job")))
    search_seconds = seconds * _SEARCH_SHARE if timed else seconds
    limited = Trials(read.given, read.rules, follow, trials, search_seconds, progress=progress, shared=shared, key=key)
    found = Search(census, key, limited, reached).explain()
    estimate_start(found, census, key, history, min(trials, RUNS), seconds - (perf_counter() - started), seed)
    found.trials, found.seconds = limited.used, round(perf_counter() - started, 3)
    found.notes += read.rules.not_asked
    return found


def estimate_start(
    found: Explanation, census: Census, key: str, history: Sequence[JobRun], runs: int, seconds: float, seed: int = 0
) -> None:
    """When a pending job starts, or why that is not known."""
    run = census.run
    if found.state in ("gone", "running"):
        found.eta_reason = "it runs" if found.state == "running" else "it has finished"
        return
    if found.state == "impossible":
        found.eta_reason = "it does not start on the empty cluster"
        return
    if found.cause.code == "Starts":
        now = rfc3339(run.now)
        found.eta = Eta(now, now, now, now, "it starts in the next cycle")
        return
    deadlines = job_deadlines(census.input.of_kind("Job"))
    basis = Basis(run.cluster, run.now, history, deadlines) if may_know(run.cluster, history, deadlines) else None
    if basis is None or not basis.known:
        found.eta_reason = NO_BASIS
        return
    rules = run.rules
    answer = start_times(run.cluster, rules.policy, rules.registry, run.now, [key], basis, runs=runs, seconds=seconds, seed=seed)
    time = answer.known.get(key)
    if time is None:
        found.eta_reason = answer.unknown[key]
    else:
        found.eta = Eta(**time.to_dict())
