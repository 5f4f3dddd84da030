"""Manifests into the model, for `navarch plan` and `navarch jobs|queues|nodes`, with every mistake in the objects.

Objects may come in any order. All are read first, because admission looks some of them up to fill in others: priority classes, limit
ranges, runtime classes, storage classes. Then they go through `ingest`, as objects of a live cluster do. Objects of kinds that
scheduling does not read are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from navarch.apis.admission.admission import AdmissionContext
from navarch.apis.core.disruption_budgets import BudgetPart, measured
from navarch.apis.core.kept_objects import check, is_of_its_group, kept_spec, kept_struct
from navarch.apis.core.nodes import PodDisruptionBudget
from navarch.apis.core.objects import from_manifest, identity, seconds
from navarch.apis.core.partial_pod import PartialPod, read_partial_pod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings, Spec
from navarch.apis.errors import ObjectError, shown
from navarch.apis.operators.owners import Owners
from navarch.apis.operators.workload import PodMaker, WorkloadSpec
from navarch.apis.registry import KEPT, KINDS
from navarch.apis.volcano.job_schedulers import KIND as VOLCANO_JOB
from navarch.ingest.groups import ShadowGroups
from navarch.ingest.ingest import Ingest
from navarch.ingest.pod_reader import PodReader, queue_of
from navarch.model.cluster import Cluster
from navarch.model.spec import (
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
from navarch.object_types import ReadOnlyManifest
from navarch.offline.admission_lookups import DEFAULTED, LOOKED_UP, defaulted, looked_up
from navarch.offline.manifests import Document
from navarch.offline.owners_in_files import owners_among
from navarch.offline.workload_pods import EXPANDED, expand

_ADMITTING = frozenset({"RuntimeClass", "LimitRange"})
"""Kinds that only admission reads."""
_ORDER: tuple[type[Spec], ...] = (
    PriorityClassSpec,
    NamespaceSpec,
    QueueSpec,
    DisruptionBudgetSpec,
    QuotaSpec,
    ObjectSpec,
    NodeSpec,
    WorkloadSpec,
    PodMaker,
    JobSpec,
)
"""The order of puts: objects that others refer to come first, so that no job is computed twice."""
_MOST_NAMES = 5


class Inventory:
    """`cluster` is the model, `pods` are by uid, `mistakes` lists every object that could not be read."""

    def __init__(self, documents: Iterable[Document], settings: Settings) -> None:
        self.settings = settings
        self.mistakes: list[ObjectError] = []
        self.ignored: Counter[str] = Counter()
        """`apiVersion kind` -> how many objects of a kind that no part of scheduling reads."""
        self.warnings: list[str] = []
        self.newest = 0.0
        """The latest moment that any object mentions."""
        self.pods: dict[str, Pod] = {}
        self._specs: dict[type[Spec], list[Spec]] = {kind: [] for kind in _ORDER}
        self._partial: list[PartialPod] = []
        """Pods that hold a node and cannot be read as a whole."""
        self._unmeasured: list[tuple[DisruptionBudgetSpec, BudgetPart, str]] = []
        """Budgets without a status, with the part of their spec that gives the minimum, and their source."""
        self._seen: dict[tuple[str, str, str], str] = {}
        self._defaulted_later: list[Document] = []
        self._looked_up: list[dict[str, Any]] = []
        self._reported: set[str] = set()
        self._read_all(list(documents))

    @property
    def cluster(self) -> Cluster:
        return self.ingest.cluster

    @property
    def reader(self) -> PodReader:
        return self.ingest.reader

    @property
    def shadows(self) -> ShadowGroups:
        return self.ingest.shadows

    def _read_all(self, documents: list[Document]) -> None:
        pods: list[tuple[Pod, Document]] = []
        for document in documents:
            self._read(document, pods)
        made, mistakes = expand(documents)
        wrong = {mistake.source for mistake in self.mistakes if mistake.source}
        self.mistakes += [mistake for mistake in mistakes if mistake.source not in wrong]
        for document in made:
            if _identify(document.manifest) not in self._seen:
                self._read(document, pods)
        self._warn_about_empty_pods(pod for pod, _ in pods)
        admission = AdmissionContext.of(self._looked_up) if self._looked_up else AdmissionContext()
        self._default_volumes(admission)
        classes = {spec.name: spec for spec in self._specs[PriorityClassSpec] if isinstance(spec, PriorityClassSpec)}
        self.ingest = Ingest(
            self.settings,
            reader=PodReader(self.settings, admission, classes),
            owners=Owners(find=owners_among(documents, self._report)),
        )
        self._specs[JobSpec].sort(key=_job_key)
        for specs in self._specs.values():
            for spec in specs:
                self.ingest.put(spec)
        self._put_pods(pods)
        self._measure_budgets()
        place = {document.source: i for i, document in enumerate(documents)}
        self.mistakes.sort(key=lambda mistake: place.get(mistake.source, len(place)))

    def _put_pods(self, pods: Iterable[tuple[Pod, Document]]) -> None:
        """By uid, so that rows of the model do not depend on the order of the input."""
        tasks: list[tuple[TaskSpec, str]] = []
        for pod, document in pods:
            try:
                task = self.reader.read(pod)
            except ObjectError as error:
                self._report(document, error)
                self._keep_partial(read_partial_pod(pod, error))
                continue
            if task is not None:
                self.pods[task.uid] = pod
                tasks.append((task, queue_of(pod)))
        for task, queue in sorted(tasks, key=lambda each: each[0].uid):
            self.ingest.put_task(task, queue)
        for partial in sorted(self._partial, key=lambda each: each.key):
            self.warnings.append(f"Pod {partial.key} cannot be read: {self.ingest.put_partial(partial)}")

    def _measure_budgets(self) -> None:
        for entry in list(self._unmeasured):
            budget, part, source = entry
            try:
                self.ingest.put(measured(budget, part, self.tasks.values()))
            except ObjectError as error:
                self.mistakes.append(error.at(source))
                self.ingest.remove(budget)
                self._unmeasured.remove(entry)

    # the model by name

    @property
    def jobs(self) -> dict[str, JobSpec]:
        return {spec.key: spec for spec in self.cluster.jobs.specs if spec is not None}

    @property
    def tasks(self) -> dict[str, TaskSpec]:
        return {spec.uid: spec for spec in self.cluster.tasks.specs if spec is not None}

    @property
    def has_unmeasured_budgets(self) -> bool:
        return bool(self._unmeasured)

    def measure(self, tasks: Iterable[TaskSpec]) -> list[DisruptionBudgetSpec]:
        """The budgets without a status, with the disruptions that they allow after a cycle moved pods."""
        tasks = list(tasks) if self._unmeasured else []
        return [measured(budget, part, tasks) for budget, part, _ in self._unmeasured]

    def _report(self, document: Document, error: ObjectError) -> None:
        """A mistake in a pod that a workload would make is reported once, as a mistake in the workload."""
        error = error.at(document.source)
        if document.made_by is not None:
            error = error.within(*document.made_by)
            if str(error) in self._reported:
                return
            self._reported.add(str(error))
        self.mistakes.append(error)

    def _warn_about_empty_pods(self, pods: Iterable[Pod]) -> None:
        """No API server accepts a pod without containers. Mostly the field `containers` is misspelt."""
        names = sorted(pod.key for pod in pods if not pod.spec.containers)
        if names:
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            self.warnings.append(f"no containers, so nothing is asked for: {', '.join(names[:_MOST_NAMES])}{more}")

    def _read(self, document: Document, pods: list[tuple[Pod, Document]]) -> None:
        """Read one object, or store its mistake."""
        manifest = document.manifest
        try:
            version, kind = self._checked(manifest, document.source)
            if kind == "Pod" and version == "v1":
                self._read_pod(document, pods)
                return
            known = is_of_its_group(version, kind)
            if known and kind in LOOKED_UP:
                self._looked_up.append(looked_up(manifest))
            elif known and kind == "StorageClass":
                self._looked_up.append(dict(manifest))
            reader = KINDS.get((version, kind))
            if reader is not None:
                found = from_manifest(manifest, reader.struct)
                self.newest = max(self.newest, found.metadata.created)
                spec = reader.read(found, self.settings)
                self._specs[type(spec)].append(spec)
                if isinstance(spec, JobSpec):
                    self.newest = max(self.newest, *(condition.last_transition for condition in spec.conditions), 0.0)
                if isinstance(found, PodDisruptionBudget) and found.status is None:
                    assert isinstance(spec, DisruptionBudgetSpec)
                    self._unmeasured.append((spec, found.spec, document.source))
            elif known and kind in KEPT:
                check(manifest, kind)
                found = from_manifest(manifest, kept_struct(kind))
                self.newest = max(self.newest, found.metadata.created)
                if kind in DEFAULTED:
                    self._defaulted_later.append(document)
                else:
                    self._specs[ObjectSpec].append(kept_spec(found, kind))
            elif kind == VOLCANO_JOB.kind and version in VOLCANO_JOB.api_versions:
                with suppress(ObjectError):  # `expand` reads the whole Job and reports its mistakes
                    self._specs[PodMaker].append(VOLCANO_JOB.read(from_manifest(manifest, VOLCANO_JOB.struct), self.settings))
            elif not (known and kind in _ADMITTING) and (version, kind) not in EXPANDED:
                self.ignored[f"{version} {kind}{_other_versions(version, kind)}"] += 1
        except ObjectError as error:
            self._report(document, error)

    def _read_pod(self, document: Document, pods: list[tuple[Pod, Document]]) -> None:
        try:
            pod = from_manifest(document.manifest, Pod)
        except ObjectError as error:
            with suppress(TypeError, ValueError):  # some values of YAML have no JSON form
                self._keep_partial(read_partial_pod(msgspec.json.encode(document.manifest), error))
            raise
        pods.append((pod, document))
        self.newest = max(self.newest, *_moments(pod))

    def _keep_partial(self, pod: PartialPod | None) -> None:
        """A pod that cannot be read still holds its node, as on a live cluster."""
        if pod is not None:
            self._partial.append(pod)

    def _checked(self, manifest: ReadOnlyManifest, source: str) -> tuple[str, str]:
        """apiVersion and kind. Raises ObjectError if one of them or the name is missing, or if the object was given before."""
        version, kind, metadata = manifest.get("apiVersion"), manifest.get("kind"), manifest.get("metadata")
        for field, value in (("apiVersion", version), ("kind", kind)):
            if not isinstance(value, str) or not value:
                raise ObjectError(*identity(manifest), field, shown(value), "text")
        if not isinstance(metadata, dict):
            raise ObjectError(*identity(manifest), "metadata", shown(metadata), "a mapping with a name")
        name = metadata.get("name")
        if not name and metadata.get("generateName") and not _is_read(str(version), str(kind)):
            return str(version), str(kind)  # nothing looks for it by name
        if not isinstance(name, str) or not name:
            raise ObjectError(*identity(manifest), "metadata.name", shown(name), "a name")
        key = _identify(manifest)
        if key in self._seen:
            expected = f"an object that is given once; the first is in {self._seen[key] or 'the same input'}"
            raise ObjectError(*identity(manifest), "metadata.name", repr(name), expected)
        self._seen[key] = source
        return str(version), str(kind)

    def _default_volumes(self, admission: AdmissionContext) -> None:
        """Volume objects with their defaults, which depend on the storage classes of the whole input."""
        for document in self._defaulted_later:
            kind = str(document.manifest["kind"])
            try:
                found = from_manifest(defaulted(document.manifest, admission), kept_struct(kind))
                self._specs[ObjectSpec].append(kept_spec(found, kind))
            except ObjectError as error:
                self._report(document, error)


def _is_read(version: str, kind: str) -> bool:
    """Whether any object of this kind is used."""
    known = (version, kind) in KINDS or (version, kind) in EXPANDED or is_of_its_group(version, kind)
    return known or kind in ("Pod", VOLCANO_JOB.kind)


def _identify(manifest: ReadOnlyManifest) -> tuple[str, str, str]:
    """The identity of an object: API group and kind, namespace, name. Versions of one API group show the same object."""
    metadata = manifest["metadata"]
    group = str(manifest["apiVersion"]).rpartition("/")[0]
    return f"{group}/{manifest['kind']}", str(metadata.get("namespace") or "default"), str(metadata["name"])


def _other_versions(version: str, kind: str) -> str:
    """The versions of this kind that are read, if only the version is unknown."""
    group = version.rpartition("/")[0]
    known = sorted(v for v, k in (*KINDS, *EXPANDED) if k == kind and v.rpartition("/")[0] == group)
    return f" (only {', '.join(known)} is read)" if known else ""


def _moments(pod: Pod) -> list[float]:
    meta, status = pod.metadata, pod.status
    moments = [meta.creation_timestamp, meta.deletion_timestamp, status.start_time]
    moments += [condition.last_transition_time for condition in status.conditions or ()]
    return [seconds(moment) for moment in moments]


def _job_key(spec: Spec) -> str:
    return spec.key if isinstance(spec, JobSpec) else ""
