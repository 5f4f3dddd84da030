"""A job of a recorded cycle: why it was as it was.

A recording holds the model and not the API's objects, so changes of objects cannot be tried. The cause, the order, the blocking
jobs and the evictions can: pods are taken out of the restored cluster, and the recorded cycle is decided once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from navarch.apis.errors import ObjectError
from navarch.engine.cycle import decide
from navarch.engine.policy import Policy, load
from navarch.engine.record import CycleRecord
from navarch.explanation.documents import Input, reference
from navarch.explanation.names import job_key
from navarch.explanation.result import Explanation
from navarch.explanation.search import Search
from navarch.explanation.start_time import StartTimeQuestion, tell_start
from navarch.explanation.subject import Census
from navarch.explanation.trials import Trials
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.job_history import JobRun, read_history
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, TaskSpec
from navarch.offline.cycles import Rules
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.offline.replay import Recording, restored
from navarch.simulator.start_times.estimate import RUNS


class RecordedInventory:
    """The jobs and pods of a recording."""

    def __init__(self, tasks: Iterable[TaskSpec], jobs: Iterable[JobSpec]) -> None:
        self.tasks = {task.uid: task for task in tasks}
        self.jobs = {job.key: job for job in jobs}
        self.mistakes: list[ObjectError] = []


class RecordedCycle:
    """The recorded cycle, without some of its pods. Jobs that slept in it are tried."""

    def __init__(self, recording: Recording, rules: Rules, without: frozenset[str] = frozenset()) -> None:
        self.rules, self.now = rules, recording.now
        self._uid = recording.uid
        self.cluster = restored(recording)
        for task in list(self.cluster.tasks.specs):
            if task is not None and task.key in without:
                self.cluster.remove_task(task.uid)
        self.inventory = RecordedInventory(
            (task for task in self.cluster.tasks.specs if task is not None),
            (job for job in self.cluster.jobs.specs if job is not None),
        )

    def close(self) -> None:
        """Nothing is shared, so nothing has to be given back."""

    def snapshot(self) -> Snapshot:
        return self.cluster.snapshot(self.rules.policy.semantics.node_order)

    def decide(self, proceed: Callable[[], bool] | None = None) -> CycleRecord:
        rules = self.rules
        return decide(self.snapshot(), rules.policy, rules.registry, self.now, uid=self._uid, devices=self._uid, proceed=proceed)


def explain_recorded(
    recording: Recording,
    job: str,
    policy: str | Path | Mapping[str, object] | Policy | None = None,
    trials: int = 200,
    seconds: float = 5.0,
    *,
    plugin_dirs: Iterable[str | Path] = (),
    progress: Callable[[int, int], None] | None = None,
    history: str | Path | Sequence[JobRun] = (),
    seed: int = 0,
) -> Explanation:
    """Explain a job of a recorded cycle, under the recorded policy or another."""
    started = perf_counter()
    past = read_history(history) if isinstance(history, str | Path) else history
    registry = installed(tuple(Path(each) for each in plugin_dirs))
    if policy is None:
        chosen = load(recording.policy, registry.catalogue(), recording.policy_name)
    else:
        chosen = read_policy(policy, registry)
    rules = Rules(chosen, registry, settings_for(chosen), recording.now)
    run = RecordedCycle(recording, rules)
    given = Input([Document(_pod(task)) for task in run.inventory.tasks.values()])
    census = Census(given, run)
    key = job_key(census, job)
    names = {
        reference(each.manifest): f"{each.manifest['metadata']['namespace']}/{each.manifest['metadata']['name']}"
        for each in given.documents
    }

    def without(objects: Sequence[Mapping[str, Any]], remove: Sequence[str], at_end: bool) -> RecordedCycle | None:
        return None if objects else RecordedCycle(recording, rules, frozenset(names[each] for each in remove))

    goal = census.subject(key).tally().goal
    limited = Trials(given, rules, lambda _: key, trials, seconds, progress=progress, run_of=without, most_cycles=1, goal=goal)
    found = Search(census, key, limited).explain()
    tell_start(found, StartTimeQuestion(run, key, past, {}, min(trials, RUNS), seed), seconds - (perf_counter() - started))
    found.notes += rules.not_asked
    found.notes.append("from a recorded cycle: changes of objects are not tried")
    if recording.held:
        found.notes.append(f"{len(recording.held)} jobs slept in that cycle; here they are tried")
    found.trials, found.seconds = limited.used, round(perf_counter() - started, 3)
    return found


def _pod(task: TaskSpec) -> dict[str, Any]:
    metadata = {"name": task.name, "namespace": task.namespace, "uid": task.uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": task.node} if task.node else {}}
