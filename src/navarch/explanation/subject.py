"""Which objects of the input belong to which job, and the job that is explained.

A `Unit` is what leaves the input together: the pods of one job, or one pod that belongs to no job. The `Subject` is the job in
question with the objects that a change of it has to edit: its PodGroup, its pods, or the workloads that would make them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from navarch.apis.core.objects import identity
from navarch.explanation.documents import Input, copied, reference
from navarch.explanation.trials import PodTally, Run
from navarch.ingest.groups import is_shadow, shown_key
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.status import IS_ALLOCATED, TaskStatus
from navarch.object_types import ReadOnlyManifest
from navarch.offline.manifests import Document
from navarch.offline.workload_pods import EXPANDED, expand, kind_of

Object = dict[str, Any]
Edit = Callable[[Object], None]
"""Changes a pod, or a pod template: a mapping with `metadata` and `spec`."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(slots=True)
class Unit:
    name: str
    keys: list[str] = field(default_factory=list)
    workloads: list[str] = field(default_factory=list)
    """References of the workloads that would make pods of it."""
    to_be_made: set[str] = field(default_factory=set)
    """Keys of those pods. The others are in the input."""
    owners: list[str] = field(default_factory=list)
    """References of the workloads that own pods of it which are in the input: without those pods they would make new ones."""
    tasks: list[TaskSpec] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    """References of the claims that have devices for its pods alone: the devices are free when these pods are gone."""

    @property
    def pods(self) -> list[str]:
        """References of its pods that are in the input."""
        return [f"Pod/{task.key}" for task in self.tasks if task.key not in self.to_be_made]

    @property
    def references(self) -> list[str]:
        return [*self.pods, *self.workloads, *self.claims]

    @property
    def holds_nodes(self) -> bool:
        return any(task.node for task in self.tasks)


@dataclass(slots=True)
class Subject:
    key: str
    spec: JobSpec | None
    groups: list[ReadOnlyManifest]
    """Its PodGroup, or the workload that one would be made from."""
    pods: list[ReadOnlyManifest]
    """Its pods in the input that are on no node."""
    templates: list[tuple[ReadOnlyManifest, str]]
    """Workloads that would make its pods, each with the path of a pod template."""
    tasks: list[TaskSpec]

    @property
    def name(self) -> str:
        return shown_key(self.key)

    def tally(self) -> PodTally:
        """Its pods as they are."""
        return PodTally(
            self.spec.min_member if self.spec else 0,
            sum(bool(IS_ALLOCATED[task.status]) for task in self.tasks),
            sum(task.status == TaskStatus.SUCCEEDED for task in self.tasks),
            sum(task.status == TaskStatus.PENDING for task in self.tasks),
        )

    def edited(self, edit: Edit) -> list[Object]:
        """Its pods, or the workloads that would make them, after an edit of each. Empty: the edit changes nothing."""
        out = []
        for manifest in self.pods:
            pod = copied(manifest)
            edit(pod)
            if pod != manifest:
                out.append(pod)
        by_workload: dict[int, tuple[ReadOnlyManifest, list[str]]] = {}
        for manifest, path in self.templates:
            by_workload.setdefault(id(manifest), (manifest, []))[1].append(path)
        for manifest, paths in by_workload.values():
            workload: Object = copied(manifest)
            for path in paths:
                template = at_path(workload, path)
                template.setdefault("metadata", {})
                template.setdefault("spec", {})
                edit(template)
                if not template["metadata"]:
                    del template["metadata"]
            if workload != manifest:
                out.append(workload)
        return out

    def samples(self) -> list[ReadOnlyManifest]:
        """Its pods and pod templates."""
        return [*self.pods, *(at_path(manifest, path) for manifest, path in self.templates)]


def at_path(manifest: Mapping[str, Any], path: str) -> Any:
    """
    >>> at_path({"spec": {"tasks": [{"template": 1}]}}, "spec.tasks[0].template")
    1
    """
    found: Any = manifest
    for name, number in _STEP.findall(path):
        found = found[int(number)] if number else found[name]
    return found


class Census:
    """The jobs of the input and their objects."""

    def __init__(self, given: Input, run: Run) -> None:
        self.input, self.run = given, run
        workloads = given.of_kind(*sorted({kind for _, kind in EXPANDED}))
        self.made = expand(given.documents)[0] if workloads else []
        self._workloads = {identity(each): each for each in workloads if kind_of(each) in EXPANDED}
        self.units: dict[str, Unit] = {}
        self._made_by: dict[str, dict[tuple[str, str, str], None]] = {}
        to_be_made = {_key(each.manifest): each for each in self.made if each.manifest["kind"] == "Pod"}
        for key, tasks in self._by_job():
            name = shown_key(key) if key else tasks[0].key
            unit = self.units.get(name)
            if unit is None:
                unit = self.units[name] = Unit(name)
            unit.tasks += tasks
            unit.keys.append(key)
            for task in tasks if to_be_made or self._workloads else ():
                self._attribute(unit, task, to_be_made.get(task.key))
        self._attribute_claims()
        self.keys = sorted(run.cluster.jobs.rows.of)

    def _attribute_claims(self) -> None:
        claims = self.input.of_kind("ResourceClaim")
        unit_of = {task.key: unit for unit in self.units.values() for task in unit.tasks} if claims else {}
        for claim in claims:
            namespace = claim["metadata"].get("namespace") or "default"
            users = [f"{namespace}/{each.get('name')}" for each in (claim.get("status") or {}).get("reservedFor") or ()]
            units = {unit.name: unit for user in users if (unit := unit_of.get(user)) is not None}
            if users and len(units) == 1 and all(user in unit_of for user in users):
                next(iter(units.values())).claims.append(reference(claim))

    def _by_job(self) -> Iterator[tuple[str, list[TaskSpec]]]:
        """Keys of jobs with their tasks, and each task without a job for itself."""
        cluster = self.run.cluster
        specs = cluster.tasks.specs
        for key, row in cluster.jobs.rows.of.items():
            tasks = [task for each in cluster.jobs.tasks[row] if (task := specs[each]) is not None]
            if tasks:
                yield key, tasks
        for task in specs:
            if task is not None and not task.job:
                yield "", [task]

    def _attribute(self, unit: Unit, task: TaskSpec, made: Document | None) -> None:
        """The workloads that would make the pod, or that own it."""
        if made is None or made.made_by is None or self.input.find("Pod", task.namespace, task.name):
            unit.owners += [each for each in self._owners(task) if each not in unit.owners]
            return
        unit.to_be_made.add(task.key)
        self._made_by.setdefault(task.job, {})[made.made_by] = None
        workload = self._workloads.get(made.made_by[:2])
        if workload is not None and reference(workload) not in unit.workloads:
            unit.workloads.append(reference(workload))

    def _owners(self, task: TaskSpec) -> list[str]:
        if task.owner is None or not self._workloads:
            return []
        kind, name, _ = task.owner
        names = [(kind, name)] + ([("Deployment", name.rpartition("-")[0])] if kind == "ReplicaSet" else [])
        return [reference(each) for kind, name in names for each in self.input.find(kind, task.namespace, name)]

    @property
    def has_workloads(self) -> bool:
        return bool(self._workloads)

    def workloads_of(self, key: str) -> list[str]:
        """Names of the workloads that would make its pods."""
        return sorted({name.rpartition("/")[2] for _, name, _ in self._made_by.get(key, ())})

    def workloads_named(self, name: str) -> list[ReadOnlyManifest]:
        """Workloads of the input by `name` or `namespace/name`."""
        return [each for each in self._workloads.values() if name in (str(each["metadata"]["name"]), _key(each))]

    def makers_beside(self, subject: Subject) -> list[str]:
        """References of all workloads but those that make the pods of this job."""
        own = {id(manifest) for manifest, _ in subject.templates} | {id(manifest) for manifest in subject.groups}
        return sorted(reference(manifest) for manifest in self._workloads.values() if id(manifest) not in own)

    def subject(self, key: str) -> Subject:
        spec = _spec_of(self.run, key)
        templates = [
            (self._workloads[made_by[:2]], made_by[2]) for made_by in self._made_by.get(key, ()) if made_by[:2] in self._workloads
        ]
        unit = self.units.get(shown_key(key))
        tasks = [task for task in unit.tasks if task.job == key] if unit else []
        found = (each for task in tasks for each in self.input.find("Pod", task.namespace, task.name))
        pods = [each for each in found if not (each.get("spec") or {}).get("nodeName")]
        return Subject(key, spec, self._groups(key, spec), pods, templates, tasks)

    def _groups(self, key: str, spec: JobSpec | None) -> list[ReadOnlyManifest]:
        if is_shadow(key):
            return []
        namespace, _, name = key.partition("/")
        for manifest in self.input.find("PodGroup", namespace, name):
            if spec is None or manifest["apiVersion"] == spec.api_version:
                return [manifest]
        for document in self.made:
            if document.manifest["kind"] == "PodGroup" and _key(document.manifest) == key and document.made_by is not None:
                return [self._workloads[document.made_by[:2]]]
        return []

    def follow(self, key: str, run: Run) -> str:
        """The job's key in a changed input; empty where its pods are grouped otherwise there. The pods of a Deployment have a hash of
        their template in the name of their owner."""
        if not is_shadow(key) or _spec_of(run, key) is not None:
            return key
        namespace, kind, name = key.split("/", 2)
        if kind == "replicaset" and key in self._made_by:
            prefix = f"{namespace}/replicaset/{name.rpartition('-')[0]}-"
            for each in sorted(run.inventory.jobs):
                if each.startswith(prefix) and "-" not in each.removeprefix(prefix):
                    return each
        return ""


def _spec_of(run: Run, key: str) -> JobSpec | None:
    jobs = run.cluster.jobs
    row = jobs.rows.of.get(key)
    return None if row is None else jobs.specs[row]


def _key(manifest: ReadOnlyManifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
