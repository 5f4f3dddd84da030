"""Jobs as their own objects have them: those that the model does not hold, and what it cannot know of those that it holds.

The model has groups and pods. A Job that is suspended, whose pods its controller could not create, or whose pods went with a deleted
node has none, and an object that cannot be read is in no model. Its row comes from here, with the reason in the words of whoever said
no: the reader, the controller, or the object itself.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from navarch.apis.core.objects import KubeObject, from_manifest
from navarch.apis.errors import ObjectError
from navarch.offline.manifests import Document
from navarch.offline.workload_pods import expand
from navarch.views.job_names import VOLCANO_JOB
from navarch.views.jobs import NO_PODS, JobRow

Object = Mapping[str, Any]
Key = tuple[str, str, str]
"""Namespace, kind and name, as rows have them."""
SUSPENDED: Final = "Suspended"
UNREADABLE: Final = "Unreadable"
IN_ROWS: Final = ("Pod", "PodGroup")
"""Kinds of objects that cannot be read whose mistakes stand in rows of jobs."""
NOT_MADE: Final = "it has no pods: its controller has made none yet"
_OVER: Final = {"Completed": True, "Failed": False, "Terminated": False, "Aborted": False}
"""Phases in which a Volcano Job has ended, and whether it succeeded."""
_KINDS: Final = {
    "batch.volcano.sh": (VOLCANO_JOB, "job.batch.volcano.sh"),
    "batch": ("Job", "job.batch"),
}


@dataclass(frozen=True)
class Workload:
    """A Job or a Volcano Job. `phase` is empty while it waits or runs; `why` says why it has no pods, where that is known."""

    key: Key
    resource: str
    scheduler: str
    queue: str
    created: float
    phase: str
    why: str

    @property
    def name(self) -> str:
        return self.key[2]


def ended(workload: Object) -> bool | None:
    """Whether a Job or Volcano Job succeeded; None while it has not ended."""
    status = workload.get("status") or {}
    phase = (status.get("state") or {}).get("phase")
    if phase in _OVER:
        return _OVER[phase]
    for each in status.get("conditions") or ():
        if each.get("status") == "True" and each.get("type") in ("Complete", "Failed"):
            return bool(each["type"] == "Complete")
    return None


def key_of(manifest: Object) -> Key:
    metadata = manifest["metadata"]
    return metadata.get("namespace") or "default", _kind(manifest)[0], metadata["name"]


def workload_of(manifest: Object, refusals: Mapping[Key, str]) -> Workload:
    """`refusals`: what the controller of a workload said when it could not create a pod."""
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    key, name = key_of(manifest), metadata["name"]
    state = ((manifest.get("status") or {}).get("state") or {}).get("phase")
    templates = [each.get("template") or {} for each in spec.get("tasks") or ()] or [spec.get("template") or {}]
    scheduler = spec.get("schedulerName") or next(((each.get("spec") or {}).get("schedulerName") for each in templates), None)
    phase, why = "", refusals.get(key, "")
    if spec.get("suspend") or state in ("Aborting", "Aborted"):
        phase, why = SUSPENDED, f"it is suspended: navarch resume {name} -n {key[0]}"
    elif (over := ended(manifest)) is not None:
        phase, why = "Completed" if over else "Failed", ""
    elif not why and (mistakes := expand([Document(manifest)])[1]):
        phase, why = UNREADABLE, str(mistakes[0])
    return Workload(
        key=key,
        resource=_kind(manifest)[1],
        scheduler=scheduler or "default-scheduler",
        queue=spec.get("queue") or "",
        created=from_manifest(manifest, KubeObject).metadata.created,
        phase=phase,
        why=why,
    )


def with_workloads(
    rows: Sequence[JobRow], workloads: Iterable[Workload], served: frozenset[str], have_pods: Container[Key] = ()
) -> list[JobRow]:
    """The rows as their workloads know better, and a row for each workload of ours that has none. Workloads that `have_pods` are in
    rows; where the pods name a group, in that of the group."""
    known = {each.key: each for each in workloads}
    found = []
    for row in rows:
        own = known.pop((row.namespace, row.kind, row.name), None)
        found.append(row if own is None or row.pending + row.running + row.leaving else _standing(row, own))
    absent = [each for each in known.values() if each.key not in have_pods]
    missing = [each for each in absent if each.scheduler in served and each.phase not in ("Completed", "Failed")]
    return found + [_standing(_row(each.key, each.resource, each.created, each.queue), each) for each in missing]


def owners_of_pods(documents: Iterable[Object]) -> frozenset[Key]:
    """The workloads whose controllers made these pods, and the groups."""
    pods = (each["metadata"] for each in documents if each["kind"] in IN_ROWS)
    owners = (
        (pod.get("namespace") or "default", one) for pod in pods for one in pod.get("ownerReferences") or () if one.get("controller")
    )
    return frozenset((namespace, _kind(one)[0], one["name"]) for namespace, one in owners)


def with_unreadable(rows: Sequence[JobRow], mistakes: Iterable[ObjectError], documents: Iterable[Object]) -> list[JobRow]:
    """With what cannot be read of a job: of its group, or of a pod of it."""
    wrong: dict[Key, tuple[str, str]] = {}
    by_name = {(each.kind, each.name): str(each) for each in mistakes if each.kind in IN_ROWS}
    for each in documents if by_name else ():
        metadata = each["metadata"]
        namespace = metadata.get("namespace") or "default"
        said = by_name.get((each["kind"], f"{namespace}/{metadata['name']}"))
        if said is not None:
            owner = next((one for one in metadata.get("ownerReferences") or () if one.get("controller")), None)
            kind, resource = _kind(each) if owner is None else _kind(owner)
            wrong.setdefault((namespace, kind, metadata["name"] if owner is None else owner["name"]), (resource, said))
    found = []
    for row in rows:
        _, said = wrong.pop((row.namespace, row.kind, row.name), ("", ""))
        if said and row.pending + row.running + row.leaving:
            row = replace(row, why=said, messages=f"{said}; {row.messages}" if row.messages else said)
        elif said:
            row = replace(row, phase=UNREADABLE, why=said, messages=said)
        found.append(row)
    for key, (resource, said) in wrong.items():
        found.append(replace(_row(key, resource), phase=UNREADABLE, why=said, messages=said))
    return found


def _standing(row: JobRow, own: Workload) -> JobRow:
    if own.phase:
        return replace(row, phase=own.phase, why=own.why, messages=own.why, prospect=None)
    why = own.why or (row.why if row.why not in ("", NO_PODS) else NOT_MADE)
    return replace(row, why=why, messages=why)


def _row(key: Key, resource: str, created: float = 0.0, queue: str = "") -> JobRow:
    namespace, kind, name = key
    return JobRow(
        *(namespace, name, kind, queue, "Pending"),
        min_member=0,
        pending=0,
        running=0,
        leaving=0,
        succeeded=0,
        failed=0,
        priority=0,
        created=created,
        resource=resource,
        key=f"{namespace}/{kind.lower()}/{name}",
    )


def _kind(manifest: Object) -> tuple[str, str]:
    """The kind as rows have it, and as kubectl takes it."""
    group, kind = str(manifest.get("apiVersion", "")).rpartition("/")[0], str(manifest["kind"])
    return _KINDS[group] if kind == "Job" and group in _KINDS else (kind, f"{kind.lower()}.{group}".rstrip("."))
