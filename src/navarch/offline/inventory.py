"""A heap of manifests as specs of the model: everything a cluster is told, and everything that was wrong with it.

Objects may come in any order; what depends on others (queues of namespaces, values of priority classes, jobs of pods without
a group) is resolved once all are known. Kinds that only some plugins read are kept as they are; kinds nobody reads are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from navarch.apis.admission.admission import AdmissionContext
from navarch.apis.core.disruption_budgets import BudgetPart, measured
from navarch.apis.core.kept_objects import kept
from navarch.apis.core.nodes import PodDisruptionBudget
from navarch.apis.core.objects import from_manifest, identity, seconds
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings, Spec
from navarch.apis.errors import ObjectError, shown
from navarch.apis.kai.objects import bound_by
from navarch.apis.operators.workload import WorkloadSpec
from navarch.apis.registry import KEPT, KINDS, RANK
from navarch.ingest.groups import ShadowGroups, completed, is_shadow
from navarch.ingest.pod_reader import PodReader, queue_of
from navarch.model.cluster import Cluster
from navarch.model.spec import (
    BindRequestSpec,
    DisruptionBudgetSpec,
    JobSpec,
    NamespaceSpec,
    NodeSpec,
    ObjectSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    TaskSpec,
)
from navarch.offline.admission_lookups import DEFAULTED, LOOKED_UP, defaulted, looked_up
from navarch.offline.manifests import Document, Manifest
from navarch.offline.owners_in_files import owners_among
from navarch.offline.workload_pods import EXPANDED, expand

_ADMITTING = frozenset({"RuntimeClass", "LimitRange"})
"""Kinds that have had their effect once pods are admitted."""
_MOST_NAMES = 5


class Inventory:
    """What manifests say. `pods` and `tasks` are by uid; `mistakes` lists every object that could not be taken in."""

    def __init__(self, documents: Iterable[Document], settings: Settings) -> None:
        self.settings = settings
        self.mistakes: list[ObjectError] = []
        self.ignored: Counter[str] = Counter()
        """`apiVersion kind` -> how many objects of a kind that no part of scheduling reads."""
        self.warnings: list[str] = []
        self.newest = 0.0
        """The latest moment that any object mentions."""
        self.nodes: list[NodeSpec] = []
        self.queues: dict[str, QueueSpec] = {}
        self.jobs: dict[str, JobSpec] = {}
        self.classes: dict[str, PriorityClassSpec] = {}
        self.namespaces: dict[str, NamespaceSpec] = {}
        self.budgets: list[DisruptionBudgetSpec] = []
        self.quotas: list[QuotaSpec] = []
        self.objects: list[ObjectSpec] = []
        self.pods: dict[str, Pod] = {}
        self.tasks: dict[str, TaskSpec] = {}
        self._unmeasured: list[tuple[DisruptionBudgetSpec, BudgetPart, str]] = []
        """Budgets that no controller has counted for."""
        self._seen: dict[tuple[str, str, str], str] = {}
        self._workloads: list[WorkloadSpec] = []
        self._looked_up: list[dict[str, Any]] = []
        self._blamed: set[str] = set()
        self._take_in(list(documents))

    def fill(self, cluster: Cluster) -> None:
        """Put everything into a cluster, in an order that does not depend on the input's (but for the list of nodes)."""
        for priority in self.classes.values():
            cluster.put_priority_class(priority)
        for namespace in self.namespaces.values():
            cluster.put_namespace(namespace)
        for queue in self.queues.values():
            cluster.put_queue(queue)
        for budget in self.budgets:
            cluster.put_budget(budget)
        for quota in self.quotas:
            cluster.put_quota(quota)
        for found in self.objects:
            cluster.put_object(found.kind, found.namespace, found.name, found.value)
        for node in self.nodes:
            cluster.put_node(node)
        for _, job in sorted(self.jobs.items()):
            cluster.put_job(job)
        for _, task in sorted(self.tasks.items()):
            cluster.put_task(task)

    def _take_in(self, documents: list[Document]) -> None:
        pods: list[tuple[Pod, Document]] = []
        for document in documents:
            self._note(document, pods)
        made, mistakes = expand(documents)
        wrong = {mistake.source for mistake in self.mistakes if mistake.source}
        self.mistakes += [mistake for mistake in mistakes if mistake.source not in wrong]
        for document in made:
            if _identify(document.manifest) not in self._seen:
                self._note(document, pods)
        self._warn_of_empty(pod for pod, _ in pods)
        self._complete()
        admission = AdmissionContext.of(self._looked_up) if self._looked_up else AdmissionContext()
        self._default_volumes(admission)
        self.reader = PodReader(self.settings, admission, self.classes)
        requests = {(each.namespace, each.name): each.value for each in self.objects if each.kind == "BindRequest"}
        for pod, document in pods:
            try:
                task = self.reader.read(pod)
            except ObjectError as error:
                self._object_to(document, error)
                continue
            if task is not None:
                request = requests.get((task.namespace, task.name))
                if isinstance(request, BindRequestSpec) and request.is_under_way:
                    task = bound_by(task, request)
                self.pods[task.uid], self.tasks[task.uid] = pod, task
        self.shadows = ShadowGroups(self.settings, self.namespaces, self.classes)
        self.shadows.owners.find = owners_among(documents, self._object_to)
        for workload in self._workloads:
            self.shadows.put_workload(workload)
        for budget in self.budgets:
            self.shadows.put_budget(budget)
        for task in self.tasks.values():
            if is_shadow(task.job) and (job := self.shadows.put(task, queue_of(self.pods[task.uid]))) is not None:
                self.jobs[job.key] = job
        self._imply_queues()
        for entry in list(self._unmeasured):
            budget, part, source = entry
            self.budgets.remove(budget)
            try:
                self.budgets.append(measured(budget, part, self.tasks.values()))
            except ObjectError as error:
                self.mistakes.append(error.at(source))
                self._unmeasured.remove(entry)
        place = {document.source: i for i, document in enumerate(documents)}
        self.mistakes.sort(key=lambda mistake: place.get(mistake.source, len(place)))

    def measure(self, tasks: Iterable[TaskSpec]) -> list[DisruptionBudgetSpec]:
        """What budgets allow now, those that no controller counts for: a cycle has moved pods."""
        tasks = list(tasks) if self._unmeasured else []
        return [measured(budget, part, tasks) for budget, part, _ in self._unmeasured]

    def _object_to(self, document: Document, error: ObjectError) -> None:
        """A mistake in what a workload would make is the workload's, and told once, not once a pod."""
        error = error.at(document.source)
        if document.made_by is not None:
            error = error.within(*document.made_by)
            if str(error) in self._blamed:
                return
            self._blamed.add(str(error))
        self.mistakes.append(error)

    def _warn_of_empty(self, pods: Iterable[Pod]) -> None:
        """No API server takes such pods: more often than not the word `containers` is misspelt."""
        names = sorted(pod.key for pod in pods if not pod.spec.containers)
        if names:
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            self.warnings.append(f"no containers, so nothing is asked for: {', '.join(names[:_MOST_NAMES])}{more}")

    def _note(self, document: Document, pods: list[tuple[Pod, Document]]) -> None:
        """Read one object, or remember why not."""
        manifest = document.manifest
        try:
            version, kind = self._checked(manifest, document.source)
            if kind == "Pod" and version == "v1":
                pod = from_manifest(manifest, Pod)
                pods.append((pod, document))
                self.newest = max(self.newest, *_moments(pod))
                return
            if kind in LOOKED_UP:
                self._looked_up.append(looked_up(manifest))
            elif kind == "StorageClass":
                self._looked_up.append(dict(manifest))
            reader = KINDS.get((version, kind))
            if reader is not None:
                found = from_manifest(manifest, reader.struct)
                self.newest = max(self.newest, found.metadata.created)
                spec = reader.read(found, self.settings)
                self._place(spec)
                if isinstance(found, PodDisruptionBudget) and found.status is None:
                    assert isinstance(spec, DisruptionBudgetSpec)
                    self._unmeasured.append((spec, found.spec, document.source))
            elif kind in KEPT:
                meta = kept(manifest, kind).metadata
                self.newest = max(self.newest, meta.created)
                self.objects.append(ObjectSpec(kind, meta.namespace or "", meta.name, manifest))
            elif kind not in _ADMITTING and (version, kind) not in EXPANDED:
                self.ignored[f"{version} {kind}{_other_versions(version, kind)}"] += 1
        except ObjectError as error:
            self._object_to(document, error)

    def _checked(self, manifest: Manifest, source: str) -> tuple[str, str]:
        """apiVersion and kind of an object that has both and a name, and was not there before."""
        version, kind, metadata = manifest.get("apiVersion"), manifest.get("kind"), manifest.get("metadata")
        for field, value in (("apiVersion", version), ("kind", kind)):
            if not isinstance(value, str) or not value:
                raise ObjectError(*identity(manifest), field, shown(value), "text")
        if not isinstance(metadata, dict):
            raise ObjectError(*identity(manifest), "metadata", shown(metadata), "a mapping with a name")
        name = metadata.get("name")
        if not isinstance(name, str) or not name:
            raise ObjectError(*identity(manifest), "metadata.name", shown(name), "a name")
        key = _identify(manifest)
        if key in self._seen:
            expected = f"an object that is given once; the first is in {self._seen[key] or 'the same input'}"
            raise ObjectError(*identity(manifest), "metadata.name", repr(name), expected)
        self._seen[key] = source
        return str(version), str(kind)

    def _place(self, spec: Spec) -> None:
        if isinstance(spec, NodeSpec | QueueSpec | JobSpec) and not self.settings.is_in_pool(spec.labels):
            return
        match spec:
            case NodeSpec():
                self.nodes.append(spec)
            case QueueSpec():
                self.queues[spec.name] = spec
            case JobSpec():
                before = self.jobs.setdefault(spec.key, spec)
                if RANK[spec.dialect] < RANK[before.dialect]:
                    self.jobs[spec.key] = spec
            case PriorityClassSpec():
                self.classes[spec.name] = spec
            case NamespaceSpec():
                self.namespaces[spec.name] = spec
            case DisruptionBudgetSpec():
                self.budgets.append(spec)
            case QuotaSpec():
                self.quotas.append(spec)
            case ObjectSpec():
                self.objects.append(spec)
            case WorkloadSpec():
                self._workloads.append(spec)

    def _complete(self) -> None:
        for key, job in self.jobs.items():
            self.jobs[key] = completed(job, self.settings, self.namespaces, self.classes)
            for condition in job.conditions:
                self.newest = max(self.newest, condition.last_transition)

    def _default_volumes(self, admission: AdmissionContext) -> None:
        for i, found in enumerate(self.objects):
            if found.kind in DEFAULTED and isinstance(found.value, Mapping):
                try:
                    self.objects[i] = replace(found, value=defaulted(found.value, admission))
                except ObjectError as error:
                    self.mistakes.append(error.at(self._seen.get(_identify(found.value), "")))

    def _imply_queues(self) -> None:
        """Queues that exist without an object: `root` and the default one, and one for each namespace if so wished.

        Where nothing at all is said about queues even a peer would have made these two when it started; and the root of a tree
        whatever is said: nobody writes that one down."""
        wanted = []
        if self.settings.imply_queues or not self.queues:
            wanted += ["root", self.settings.default_queue]
        elif any(queue.dialect == "volcano" for queue in self.queues.values()):
            wanted += ["root"]
        if self.settings.namespace_as_queue:
            wanted += sorted({*self.namespaces, *(job.namespace for job in self.jobs.values())})
        for name in wanted:
            if name not in self.queues:
                self.queues[name] = QueueSpec(name=name, uid=name, reclaimable=name != "root", state="Open")


def _identify(manifest: Manifest) -> tuple[str, str, str]:
    """What may exist once: a name in a namespace, for each kind of each API group (versions of it are the same object)."""
    metadata = manifest["metadata"]
    group = str(manifest["apiVersion"]).rpartition("/")[0]
    return f"{group}/{manifest['kind']}", str(metadata.get("namespace") or "default"), str(metadata["name"])


def _other_versions(version: str, kind: str) -> str:
    """Where only the version is not known, what would be."""
    group = version.rpartition("/")[0]
    known = sorted(v for v, k in (*KINDS, *EXPANDED) if k == kind and v.rpartition("/")[0] == group)
    return f" (only {', '.join(known)} is read)" if known else ""


def _moments(pod: Pod) -> list[float]:
    meta, status = pod.metadata, pod.status
    moments = [meta.creation_timestamp, meta.deletion_timestamp, status.start_time]
    moments += [condition.last_transition_time for condition in status.conditions or ()]
    return [seconds(moment) for moment in moments]
