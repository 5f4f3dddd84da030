"""Trials that share one reading of the input: a change is put into the model, cycles are decided, and the change is taken out again.

To read a hundred thousand pods takes seconds, and most changes touch a handful of objects. What ingest makes of objects depends on
the objects and not on their order, so the model after a change equals the one that reading the changed input would give, provided
that nothing else depends on the changed objects. `can` is that proviso: pods, PodGroups, Queues and Nodes may change where no
workload of the input would make other pods, no budget has to be counted again, and the moment of the cycle is given. Every other
change is read in full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.errors import ObjectError
from navarch.apis.registry import KINDS
from navarch.engine.cycle import decide
from navarch.engine.points.conversation import Exchange, Manifest
from navarch.engine.record import CycleRecord
from navarch.explanation.documents import Input, identify, reference
from navarch.explanation.subject import Census
from navarch.ingest.absent_jobs import absent
from navarch.ingest.groups import is_shadow
from navarch.ingest.pod_reader import queue_of
from navarch.ingest.spec_manifests import manifest_of
from navarch.model.changed_cluster import ChangedCluster
from navarch.model.cluster import Cluster
from navarch.model.objects.devices import RESOURCE_CLAIM
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, TaskSpec
from navarch.object_types import ReadOnlyManifest
from navarch.offline.asking import decide_asking
from navarch.offline.cycles import Cycles, lasting_promises, settle
from navarch.offline.inventory import Inventory
from navarch.plugins.kai.config_maps import KIND as MISSING_CONFIG_MAPS

_PLAIN = frozenset({"PodGroup", "Queue", "Node"})
"""Kinds that nothing else of the input is read by."""


class SharedRuns:
    """The reading of the input that trials share."""

    def __init__(self, given: Input, census: Census, run: Cycles) -> None:
        self._input, self._census, self._run = given, census, run
        self._has_workloads = bool(census.has_workloads)
        self._uids: dict[str, str | None] = {}
        """Reference of a pod -> its uid. A trial may remove thousands of pods, and each is looked up twice."""
        self.snapshots = _Snapshots(run.cluster, run.rules.policy.semantics.node_order)
        self._usable = run.rules.now is not None and not run.inventory.has_unmeasured_budgets
        self._usable = self._usable and not run.cluster.objects.get(MISSING_CONFIG_MAPS) and not run.inventory.mistakes

    def can(self, objects: Sequence[Mapping[str, Any]], remove: Sequence[str]) -> bool:
        """Whether a change may be put into the shared model."""
        if not self._usable or 2 * len(remove) > len(self._input.documents):
            return False
        for pod in remove:
            uid = self._uid(pod)
            if uid is None or self._owned(uid):
                return False
        for each in objects:
            kind = str(each.get("kind"))
            if kind == "Pod":
                uid = self._uid(reference(each))
                if uid is None or self._owned(uid):
                    return False
            elif kind not in _PLAIN or (str(each.get("apiVersion")), kind) not in KINDS or (kind == "Node" and self._has_workloads):
                return False
        return True

    def _uid(self, pod: str) -> str | None:
        """The uid of a pod of the input by its reference; None: no such pod is in the model."""
        if pod not in self._uids:
            self._uids[pod] = self._find_uid(pod)
        return self._uids[pod]

    def _find_uid(self, pod: str) -> str | None:
        kind, _, key = pod.partition("/")
        namespace, _, name = key.partition("/")
        for manifest in self._input.find(kind, namespace, name) if kind == "Pod" else ():
            uid = str(manifest["metadata"].get("uid") or key)
            if self._run.cluster.task(uid) is not None:
                return uid
        return None

    def _owned(self, uid: str) -> bool:
        task = self._run.cluster.task(uid)
        return self._has_workloads and task is not None and task.owner is not None

    def run(self, objects: Sequence[Mapping[str, Any]], remove: Sequence[str], key: str) -> SharedRun | None:
        """The model with a change in it, until it is closed. None: the changed objects are not valid."""
        found = SharedRun(self._run, key, self.snapshots)
        try:
            for each in remove:
                uid = self._uid(each)
                assert uid is not None  # `can` has looked
                found.remove_pod(uid)
            for manifest in objects:
                found.put(manifest, self._before(manifest))
        except ObjectError:
            found.close()
            return None
        return found

    def _before(self, manifest: Mapping[str, Any]) -> ReadOnlyManifest | None:
        kind, namespace, name = identify(manifest)
        for each in self._input.find(kind.rpartition("/")[2], namespace, name):
            if identify(each) == (kind, namespace, name):
                return each
        return None


class _Snapshots:
    """Snapshots of one model, one after another. Only rows that changed since the last one are copied, if that is out of use."""

    def __init__(self, cluster: Cluster, node_order: str) -> None:
        self._cluster, self._node_order = cluster, node_order
        self._last: Snapshot | None = None

    def take(self) -> Snapshot:
        """A snapshot that is in use until it is given back, or another is taken."""
        last, self._last = self._last, None
        return self._cluster.snapshot(self._node_order, instead_of=last)

    def give_back(self, snapshot: Snapshot) -> None:
        self._last = snapshot


class SharedRun:
    """The shared model with one change in it. `close` takes the change, and what cycles did, out again."""

    def __init__(self, run: Cycles, key: str, snapshots: _Snapshots) -> None:
        self.rules, self.now = run.rules, run.now
        self._snapshots = snapshots
        self.inventory: Inventory = run.inventory
        self._key = key
        self._number = 0
        self._last: CycleRecord | None = None
        self._pods: dict[str, tuple[Pod, TaskSpec]] = {}
        """uid -> the pod as it was in the input, and as the API shows it to the model."""
        self._put: list[tuple[Any, Any]] = []
        """What was put, and what it replaced."""
        self._moved = ChangedCluster(self.cluster)
        """Tasks, jobs and claims as they were before cycles moved them, or gave them devices."""

    @property
    def cluster(self) -> Cluster:
        return self.inventory.cluster

    def remove_pod(self, uid: str) -> None:
        self._keep(uid)
        self.inventory.ingest.remove_pod(uid)

    def _keep(self, uid: str) -> None:
        task = self.inventory.ingest.api_task(uid)
        if uid not in self._pods and task is not None:
            self._pods[uid] = self.inventory.pods[uid], task

    def put(self, manifest: Mapping[str, Any], before: ReadOnlyManifest | None) -> None:
        ingest = self.inventory.ingest
        if manifest["kind"] == "Pod":
            pod = from_manifest(manifest, Pod)
            task = ingest.reader.read(pod)
            if task is not None:
                self._keep(task.uid)
                self.inventory.pods[task.uid] = pod
                ingest.put_task(task, queue_of(pod))
            return
        reader = KINDS[str(manifest["apiVersion"]), str(manifest["kind"])]
        spec = reader.read(from_manifest(manifest, reader.struct), self.inventory.settings)
        old = None if before is None else reader.read(from_manifest(before, reader.struct), self.inventory.settings)
        ingest.put(spec)
        self._put.append((spec, old))

    def snapshot(self) -> Snapshot:
        """In use until another is taken, here or by a cycle."""
        found = self._snapshots.take()
        self._snapshots.give_back(found)
        return found

    def decide(self, proceed: Callable[[], bool] | None = None) -> CycleRecord:
        """The next cycle. Only jobs that the cycle looked at are in its record, and the job in question."""
        rules = self.rules
        if self._last is not None:
            self._remember(self._last)
            settle(self.inventory, self._last, self.now)
        self._number += 1
        snapshot = self._snapshots.take()
        uid = f"cycle-{self._number}"

        def run(exchanges: list[Exchange] | None) -> CycleRecord:
            return decide(
                snapshot,
                rules.policy,
                rules.registry,
                self.now,
                uid,
                report_all=False,
                report_pods=False,
                exchanges=exchanges,
                proceed=proceed,
            )

        record = decide_asking(run, self._manifest, asks=rules.asks)
        self._snapshots.give_back(snapshot)
        jobs = self.cluster.jobs
        row = jobs.rows.of.get(self._key)
        if row is not None and not any(each.job == self._key for each in record.jobs):
            required = not self.inventory.settings.shadow_groups
            record.jobs.append(absent(self._key, jobs.specs[row], jobs.counts[row].tolist(), group_required=required))
        self._last = record
        return record

    def _manifest(self, place: Manifest) -> Any:
        return manifest_of(self.cluster, place.kind, place.namespace, place.name, place.uid)

    def _remember(self, record: CycleRecord) -> None:
        self._moved.keep_objects(RESOURCE_CLAIM)
        moved = [bind.uid for bind in record.binds] + [each.uid for each in record.evictions]
        for uid in moved:
            self._moved.keep_task(uid)
        for uid, node in lasting_promises(record).items():
            task = self.cluster.task(uid)
            if task is not None and task.nominated_node != node:
                self._moved.keep_task(uid)
        for decision in record.jobs:
            if decision.changed:
                self._moved.keep_job(decision.job)

    def close(self) -> None:
        ingest = self.inventory.ingest
        self._moved.restore(self._restored_job)
        for spec, old in reversed(self._put):
            if old is None:
                ingest.remove(spec)
            else:
                ingest.put(old)
        self.inventory.pods.update((uid, pod) for uid, (pod, _) in self._pods.items())
        ingest.put_new_tasks((shown, queue_of(pod)) for pod, shown in self._pods.values())
        self._put, self._pods = [], {}

    def _restored_job(self, job: JobSpec) -> JobSpec:
        """The shadow group of a pod keeps its status beside the model."""
        settled = self.inventory.shadows.settle(job.key, job) if is_shadow(job.key) else None
        return settled or job
