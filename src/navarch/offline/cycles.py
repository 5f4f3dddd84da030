"""Cycles one after another over decoded manifests, and what a cluster does between two of them.

`Cycles` reads objects through `ingest`, and each `decide` runs one cycle. Between two cycles it changes the model as a cluster would:
bound pods run, evicted pods come back pending, nominations stay on their pods. Time does not pass. `navarch plan` and the trials of
`navarch explain` both use it, so they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from navarch.apis.core.pod_objects import PodStatus
from navarch.apis.dialect import Settings
from navarch.engine.cycle import decide
from navarch.engine.points.conversation import Exchange, Manifest, not_asked
from navarch.engine.policy import Policy
from navarch.engine.record import CycleRecord, JobDecision
from navarch.engine.registry import Registry
from navarch.ingest.absent_jobs import absent
from navarch.ingest.groups import is_shadow
from navarch.ingest.spec_manifests import manifest_of
from navarch.model.cluster import Cluster
from navarch.model.node_load import put_loads
from navarch.model.objects.last_runs import put_last_runs
from navarch.model.snapshot import Snapshot
from navarch.model.status import TaskStatus
from navarch.offline.asking import decide_asking
from navarch.offline.config_maps import missing_config_maps
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.node_metrics import read_metrics
from navarch.offline.settled_claims import settle_claims
from navarch.plugins.kai.config_maps import KIND as MISSING_CONFIG_MAPS


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides the cycles beside the objects. `now` None: the newest moment in the objects. `metrics`: the load of nodes, as
    `node_metrics` reads it."""

    policy: Policy
    registry: Registry
    settings: Settings
    now: float | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    asks: bool = False
    """Whether servers outside are asked. Trials ask only on request: they tell a server of placements that are never made."""

    @property
    def not_asked(self) -> list[str]:
        """The servers that the policy asks and these cycles do not, one sentence each."""
        return [] if self.asks else [not_asked(url) for url in self.registry.asked_servers(self.policy)]


class Cycles:
    """Objects, and the cycles over them. `inventory.mistakes` lists the objects that were left out."""

    def __init__(self, documents: Sequence[Document], rules: Rules, timings: dict[str, float] | None = None) -> None:
        self.rules = rules
        self.timings = {} if timings is None else timings
        """Seconds: `snapshot`, `open`, one entry for each action and `close`, summed over the cycles."""
        self.number = 0
        self._last: CycleRecord | None = None
        self._documents = documents
        self._given: dict[tuple[str, str, str], Mapping[str, Any]] | None = None
        """(kind, namespace, name) -> object of the input."""
        self.inventory = Inventory(documents, rules.settings)
        self.cluster = self.inventory.cluster
        for (namespace, name), lacks in sorted(missing_config_maps(documents).items()):
            self.cluster.put_object(MISSING_CONFIG_MAPS, namespace, name, lacks)
        self.now = self.inventory.newest if rules.now is None else rules.now
        loads, self.metrics_mistakes = read_metrics(rules.metrics, self.now)
        put_loads(self.cluster, loads)

    def _manifest(self, place: Manifest) -> Any:
        """The object as it was given; as the model has it, for pods of workloads."""
        if self._given is None:
            self._given = {_name_of(document.manifest): document.manifest for document in self._documents}
        found = self._given.get((place.kind, place.namespace, place.name))
        if found is not None:
            return found
        return manifest_of(self.cluster, place.kind, place.namespace, place.name, place.uid)

    def close(self) -> None:
        """Nothing is shared, so nothing has to be given back."""

    def snapshot(self) -> Snapshot:
        """The objects as they are now."""
        return self.cluster.snapshot(self.rules.policy.semantics.node_order)

    def decide(self, proceed: Callable[[], bool] | None = None) -> CycleRecord:
        """The next cycle. `proceed`: see `engine.cycle.decide`."""
        rules = self.rules
        if self._last is not None:
            settle(self.inventory, self._last, self.now)
        self.number += 1
        self._last = _decide(self.inventory, rules, self.now, self.number, self.timings, self._manifest, proceed)
        put_last_runs(self.cluster, self._last.last_runs)
        return self._last


def _name_of(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = manifest.get("metadata") or {}
    kind = str(manifest.get("kind", ""))
    namespace = "" if kind in ("Node", "Queue") else str(metadata.get("namespace") or "default")
    return kind, namespace, str(metadata.get("name", ""))


def _decide(
    inventory: Inventory,
    rules: Rules,
    now: float,
    number: int,
    timings: dict[str, float],
    manifest: Callable[[Manifest], Any],
    proceed: Callable[[], bool] | None = None,
) -> CycleRecord:
    started = perf_counter()
    snapshot = inventory.cluster.snapshot(rules.policy.semantics.node_order)
    timings["snapshot"] = timings.get("snapshot", 0.0) + perf_counter() - started

    def run(exchanges: list[Exchange] | None) -> CycleRecord:
        return decide(snapshot, rules.policy, rules.registry, now, uid=f"cycle-{number}", exchanges=exchanges, proceed=proceed)

    record = decide_asking(run, manifest, asks=rules.asks)
    for name, duration in record.timings.items():
        timings[name] = timings.get(name, 0.0) + duration
    record.jobs += _left_out(inventory, {job.job for job in record.jobs})
    record.jobs.sort(key=lambda job: job.job)
    return record


def _left_out(inventory: Inventory, decided: set[str]) -> list[JobDecision]:
    """Jobs that took no part: their pods name a group that does not exist, or their queue does not exist. A group that another
    scheduler decides for is not one of them."""
    found = []
    jobs = inventory.cluster.jobs
    for key, row in jobs.rows.of.items():
        spec = jobs.specs[row]
        if key in decided or (spec is None and not jobs.tasks[row]) or inventory.ingest.groups.is_foreign(key):
            continue
        found.append(absent(key, spec, jobs.counts[row].tolist(), group_required=not inventory.settings.shadow_groups))
    return found


def lasting_promises(record: CycleRecord) -> dict[str, str]:
    """Pods whose promise changes with a cycle -> the node, or nothing. A promise lasts if something was evicted for it; the next cycle
    finds others again. A pod that is refused and promised nothing loses the promise that it had. A pod that is moved is made again: it
    is another one, to which nothing was promised."""
    evicted = {each.uid for each in record.evictions}
    found = {each.uid: each.node for each in record.nominations if each.evicting and each.uid not in evicted}
    again = {each.uid for each in record.nominations}
    for decision in record.jobs:
        found.update((refusal.uid, "") for refusal in decision.refusals if refusal.uid not in again)
    return found


def settle(inventory: Inventory, record: CycleRecord, now: float) -> None:
    """What a cluster does between two cycles."""
    cluster = inventory.cluster
    evicted = {eviction.uid for eviction in record.evictions}
    _run_bound(cluster, record, evicted, now)
    settle_claims(cluster, record, evicted, now)
    _make_again(inventory, evicted)
    for uid, node in lasting_promises(record).items():
        task = cluster.task(uid)
        if task is not None and not task.node and task.nominated_node != node:
            cluster.put_task(replace(task, nominated_node=node))
    for budget in inventory.measure(task for task in cluster.tasks.specs if task is not None):
        cluster.put_budget(budget)
    _write_statuses(inventory, record)


def _run_bound(cluster: Cluster, record: CycleRecord, evicted: Collection[str], now: float) -> None:
    """Bound pods run at once, unless the same cycle evicted them."""
    for bind in record.binds:
        task = cluster.task(bind.uid)
        if task is None or bind.uid in evicted:
            continue
        scheduled = ("PodScheduled", "True", "", now)
        cluster.put_task(
            replace(
                task,
                node=bind.node,
                status=TaskStatus.RUNNING,
                nominated_node="",
                started=now,
                gpu_groups=bind.gpu_groups,
                annotations=task.annotations_with(bind.annotations),
                conditions=(*(c for c in task.conditions if c[0] != "PodScheduled"), scheduled),
            )
        )


def _make_again(inventory: Inventory, evicted: Collection[str]) -> None:
    """Evicted pods are pending again, as their controllers would make them."""
    for uid in sorted(evicted):
        pod = inventory.pods[uid]
        fresh = replace(
            pod,
            metadata=replace(pod.metadata, deletion_timestamp=None),
            spec=replace(pod.spec, node_name=None),
            status=PodStatus(phase="Pending", qos_class=pod.status.qos_class),
        )
        task = inventory.reader.read(fresh)
        if task is None:  # a pod of another scheduler, which will place it again
            inventory.cluster.remove_task(uid)
        else:
            inventory.cluster.put_task(task)


def _write_statuses(inventory: Inventory, record: CycleRecord) -> None:
    """Groups get the phases and conditions that the cycle decided."""
    cluster = inventory.cluster
    for decision in record.jobs:
        if not decision.changed:
            continue
        if is_shadow(decision.job):
            job = inventory.shadows.settle(decision.job, decision)
        else:
            spec = cluster.jobs.specs[cluster.jobs.rows.of[decision.job]]
            job = spec and replace(
                spec,
                phase=decision.phase,
                conditions=decision.conditions,
                last_started=decision.last_started,
                last_evicted=decision.last_evicted,
                stale_since=decision.stale_since,
            )
        if job is not None:
            cluster.put_job(job)
