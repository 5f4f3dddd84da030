"""Why a job waits, what is before it, and what would start it: each answer proved by running the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from navarch.engine.policy import Policy
from navarch.explanation.documents import Input
from navarch.explanation.names import job_key, workload_names
from navarch.explanation.result import Explanation
from navarch.explanation.search import Search
from navarch.explanation.shared_run import SharedRuns
from navarch.explanation.start_time import ForkedAnswer, StartTimeQuestion, tell_start
from navarch.explanation.subject import Census
from navarch.explanation.trials import Run, Trials
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.job_history import JobRun, read_history
from navarch.offline.cycles import Cycles, Rules
from navarch.offline.inputs import Moment, Objects, read_amount, read_count, read_directories, read_moment, read_objects
from navarch.offline.plan import PlanError
from navarch.offline.policies import read_policy
from navarch.simulator.start_times.deadlines import job_deadlines
from navarch.simulator.start_times.estimate import RUNS

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

    >>> from navarch.testing.builders import node, pod
    >>> found = explain([node("n1").cpu(4), pod("b").cpu(8)], "b")
    >>> found.state, found.cause.message
    ('impossible', 'cannot start: one pod needs 8 CPUs, the largest node has 4')
    """
    started = perf_counter()
    if not isinstance(job, str):
        raise ValueError(f"job: found {job!r}, expected the name of a job, such as namespace/name")
    read_count(trials, "trials")
    read_amount(seconds, "seconds", zero=True)
    read_count(seed, "seed", least=0)
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
    may_fork: bool = False,
) -> Explanation:
    """Explain a job among objects that have been read. `reached` is told each part of the search that has ended. `may_fork`: the start
    time in a large cluster is estimated in a process of its own, beside the search."""
    started = perf_counter()
    census = Census(read.given, read.run)
    key = job_key(census, job)
    shared = SharedRuns(read.given, census, read.run) if len(read.given.documents) > SHARED_FROM else None

    def follow(changed: Run) -> str:
        return census.follow(key, changed)

    question = StartTimeQuestion(read.run, key, history, job_deadlines(census.input.of_kind("Job")), min(trials, RUNS), seed)
    beside = ForkedAnswer(question, seconds) if may_fork and question.is_long and ForkedAnswer.is_possible() else None
    search_seconds = seconds * _SEARCH_SHARE if beside is None and question.may_know else seconds
    limited = Trials(
        read.given,
        read.rules,
        follow,
        trials,
        search_seconds,
        progress=progress,
        shared=shared,
        key=key,
        left_out=read.run.inventory.mistakes,
        goal=census.subject(key).tally().goal,
    )
    found = Search(census, key, limited, reached).explain()
    tell_start(found, question, seconds - (perf_counter() - started), beside)
    found.trials, found.seconds = limited.used, round(perf_counter() - started, 3)
    found.notes += read.rules.not_asked
    found.names = workload_names(census, found.mentioned())
    return found
