"""Which job a user means: by its own name, by that of a pod of it, or by that of the workload that makes its pods."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from navarch.explanation.subject import Census
from navarch.ingest.groups import is_shadow, shown_key
from navarch.model.cluster import Cluster
from navarch.object_types import ReadOnlyManifest
from navarch.views.job_names import job_name

_NEAR = 3
_KINDS = frozenset(
    {
        *("deployment", "job", "jobset", "mpijob", "podgroup", "pytorchjob", "rayjob", "replicaset", "statefulset", "tfjob"),
        *("vcjob", "volcanojob"),
    }
)
"""Words that may stand before the name of a job, as kubectl has them before names."""


_POD = ("pod", "pods", "po")


class NotFound(LookupError):
    """Nothing has this name; `near` lists names that are spelt alike."""

    def __init__(self, sentence: str, near: Sequence[str] = (), *, is_answer: bool = False) -> None:
        """`is_answer`: the sentence says why the scheduler has no such job."""
        self.near, self.is_answer = list(near), is_answer
        super().__init__(f"{sentence}; did you mean {' or '.join(self.near)}?" if near else sentence)


def is_kind(word: str) -> bool:
    """Whether a word before a name says its kind, and not its namespace."""
    return word.lower() in _POD or word.lower() in _KINDS


def job_key(census: Census, wanted: str) -> str:
    """The key of the job that `[namespace/]name`, `pod/[namespace/]name` or `job/[namespace/]name` means."""
    kind, _, rest = wanted.partition("/")
    if rest and kind.lower() in _POD:
        return _of_pod(census, rest)
    plain = wanted.rpartition("/")[2]
    for keys in ([key for key in census.keys if plain in key], census.keys):  # the first are a few, and mostly it is among them
        names = _names(census, keys)
        found = names.get(wanted) or (names.get(rest) if rest and kind.lower() in _KINDS else None)
        if found and (keys is census.keys or any(_plain(key) == plain for key in found)):
            return _the_one(census, wanted, found)
    try:
        return _of_pod(census, wanted)
    except NotFound:
        if unread := _unreadable(census, wanted):
            raise NotFound(unread, is_answer=True) from None
        for workload in census.workloads_named(rest if rest and kind.lower() in _KINDS else wanted):
            raise NotFound(_without_pods(workload)) from None
        if foreign := _of_another_scheduler(census, wanted) or _group_of_nobody(census, wanted):
            raise NotFound(foreign) from None
        shown = sorted({shown_key(key) for key in census.keys})
        raise NotFound(f"there is no job {wanted!r} among {len(shown)} jobs", near(wanted, shown)) from None


def workload_names(census: Census, jobs: Iterable[str]) -> dict[str, str]:
    """The workload that people created for each of these jobs, where it has another name and no other of the jobs has the same."""
    keys = {job: unit.keys[0] if (unit := census.units.get(job)) is not None else job for job in jobs}  # without pods: the key itself
    return names_of_keys(census.run.cluster, {job: key for job, key in keys.items() if key})


def names_in(cluster: Cluster, jobs: Iterable[str]) -> dict[str, str]:
    """The same where the jobs were not counted."""
    wanted = set(jobs)
    return names_of_keys(cluster, {shown: key for key in cluster.jobs.rows.of if (shown := shown_key(key)) in wanted})


def names_of_keys(cluster: Cluster, keys: Mapping[str, str]) -> dict[str, str]:
    """`keys`: job as it is shown -> its key."""
    table, found = cluster.jobs, dict[str, str]()
    for job, key in keys.items():
        row = table.rows.of.get(key)
        first = next((cluster.tasks.specs[task] for task in table.tasks[row]), None) if row is not None else None
        name = job_name(key, table.specs[row] if row is not None else None, first.labels if first is not None else {})
        found[job] = f"{name.namespace}/{name.name}"
    count = Counter(found.values())
    return {job: name for job, name in sorted(found.items()) if name != job and count[name] == 1}


def near(wanted: str, known: Sequence[str]) -> list[str]:
    """Names that are spelt alike, with their namespace or without."""
    found = difflib.get_close_matches(wanted, known, n=_NEAR)
    plain = {each.rpartition("/")[2]: each for each in reversed(known)}
    found += [plain[each] for each in difflib.get_close_matches(wanted.rpartition("/")[2], plain, n=_NEAR)]
    return list(dict.fromkeys(found))[:_NEAR]


def _unreadable(census: Census, wanted: str) -> str:
    """What is wrong with the group or a pod of that name, or with a pod of a workload of that name; empty: nothing."""
    plain = wanted.rpartition("/")[2]
    for mistake in census.run.inventory.mistakes:
        namespace, _, name = mistake.name.partition("/")
        pods = census.input.find("Pod", namespace, name) if mistake.kind == "Pod" else []
        owners = [str(owner.get("name")) for pod in pods for owner in pod["metadata"].get("ownerReferences") or ()]
        if plain in (name, *owners):
            return f"{wanted} is not decided, because it cannot be read: {mistake}"
    return ""


def _without_pods(workload: ReadOnlyManifest) -> str:
    """Why there is a workload of this name and no job."""
    kind, name, spec = workload["kind"], workload["metadata"]["name"], workload.get("spec") or {}
    of = workload["metadata"].get("namespace") or "default"
    if spec.get("suspend"):
        return f"{kind} {of}/{name} is suspended, so it has no pods: navarch resume {name} -n {of}"
    for field in ("parallelism", "replicas"):
        if spec.get(field) == 0:
            return f"{kind} {of}/{name} has no pods: its {field} is 0"
    return f"{kind} {of}/{name} has no pods yet"


def _of_another_scheduler(census: Census, wanted: str) -> str:
    """What to say of a name that a pod or its owner has, where that pod waits for another scheduler; empty: there is none."""
    kind, _, rest = wanted.partition("/")
    names = {wanted, *([rest] if rest and is_kind(kind) else [])}
    served = census.run.rules.settings.scheduler_names
    for pod in census.input.of_kind("Pod"):
        metadata, spec = pod["metadata"], pod.get("spec") or {}
        scheduler = str(spec.get("schedulerName") or "default-scheduler")
        if spec.get("nodeName") or served is None or scheduler in served:
            continue
        owners = [str(each.get("name")) for each in metadata.get("ownerReferences") or ()]
        own = {str(metadata["name"]), *owners, *(each.rpartition("-")[0] for each in owners)}
        namespace = metadata.get("namespace") or "default"
        if names & (own | {f"{namespace}/{each}" for each in own}):
            told = f"pod {namespace}/{metadata['name']} waits for the scheduler {scheduler}, which is none of ours"
            return f"{told}; `--scheduler-name {scheduler}` explains it as if it were"
    return ""


def _group_of_nobody(census: Census, wanted: str) -> str:
    """What to say of a PodGroup of that name that is no job of ours, because it has no pods of ours; empty: there is none."""
    kind, _, rest = wanted.partition("/")
    name = rest if rest and is_kind(kind) else wanted
    settings = census.run.rules.settings
    if settings.scheduler_names is None:
        return ""
    for group in census.input.of_kind("PodGroup"):
        metadata = group["metadata"]
        key = f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
        if name in (metadata["name"], key) and settings.is_in_pool(metadata.get("labels") or {}):
            served = ", ".join(sorted(settings.scheduler_names))
            return f"PodGroup {key} has no pods that name a scheduler of ours ({served}); it is a job from its first such pod on"
    return ""


def _plain(key: str) -> str:
    return shown_key(key).split("/", 1)[1]


def _names(census: Census, keys: Sequence[str]) -> dict[str, list[str]]:
    """Names by which users may mean these jobs."""
    names: dict[str, list[str]] = {}
    jobs = census.run.cluster.jobs
    for key in keys:
        namespace, plain = shown_key(key).split("/", 1)
        row = jobs.rows.of.get(key)
        owners = [plain, *census.workloads_of(key), job_name(key, jobs.specs[row] if row is not None else None, {}).name]
        if is_shadow(key) and key.split("/")[1] == "replicaset":
            owners.append(plain.rpartition("-")[0])
        for each in dict.fromkeys(owner for owner in owners if owner):
            names.setdefault(each, []).append(key)
            names.setdefault(f"{namespace}/{each}", []).append(key)
        if is_shadow(key):
            names.setdefault(key, []).append(key)
    return names


def _the_one(census: Census, wanted: str, keys: list[str]) -> str:
    """Jobs of that very name go before those of a workload of that name, and those with waiting pods before others."""
    plain = wanted.rpartition("/")[2]
    exact = [key for key in keys if _plain(key) == plain] or keys
    if len({key.partition("/")[0] for key in exact}) > 1:
        default = [key for key in exact if key.startswith("default/")]
        if not default:
            raise NotFound(f"{wanted!r} is in several namespaces", [shown_key(key) for key in exact])
        exact = default
    waiting = (
        [key for key in exact if any(not task.node and task.job == key for task in census.units[shown_key(key)].tasks)]
        if all(shown_key(key) in census.units for key in exact)
        else []
    )
    return (waiting or exact)[0]


def _of_pod(census: Census, wanted: str) -> str:
    tasks = [task for task in census.run.inventory.tasks.values() if wanted in (task.name, task.key)]
    if len({task.namespace for task in tasks}) > 1:
        raise NotFound(f"pod {wanted!r} is in several namespaces", sorted(f"pod/{task.key}" for task in tasks))
    if not tasks and (foreign := _of_another_scheduler(census, wanted)):
        raise NotFound(foreign)
    if not tasks:
        known = sorted(task.key for task in census.run.inventory.tasks.values())
        raise NotFound(f"there is no pod {wanted!r} among {len(known)} pods", [f"pod/{each}" for each in near(wanted, known)])
    if not tasks[0].job:
        raise NotFound(f"pod {tasks[0].key} is in no job: another scheduler decides for it")
    return tasks[0].job
