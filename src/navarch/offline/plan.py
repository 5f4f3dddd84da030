"""Manifests in, decisions out: whole scheduling cycles without a cluster.

`plan` reads decoded manifests into the model of the live scheduler and runs the same `decide`. Between cycles it changes the model as
a cluster would: bound pods run, evicted pods come back pending, nominations stay on their pods. The same objects, policy and moment
give the same output, byte for byte.

>>> from navarch.testing.builders import node, pod
>>> plan([node("n1").cpu("4"), pod("a").cpu("1")]).to_dict()["cycles"][0]["binds"]
[{'node': 'n1', 'pod': 'default/a'}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from msgspec import Struct, field

from navarch.apis.errors import ObjectError
from navarch.engine.policy import Policy
from navarch.engine.reasons import Reason
from navarch.engine.record import Bind, CycleRecord, Eviction, JobDecision, JobFailure, Nomination, QueueFigures
from navarch.ingest.groups import shown_key
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.model.objects.devices import AllocatedDevice
from navarch.model.resources import UNLIMITED, format_amount
from navarch.offline import plan_tables
from navarch.offline.cycles import Cycles, Rules
from navarch.offline.inputs import Moment, Objects, read_count, read_directories, read_moment, read_objects
from navarch.offline.policies import read_policy

_NAMED_JOBS = 3
"""Jobs that a warning names."""


class PlanError(ValueError):
    """Objects that cannot be read; `mistakes` has one entry for each."""

    def __init__(self, mistakes: list[ObjectError]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(str(mistake) for mistake in mistakes))


class Plan(Struct):
    """The decisions. `to_dict` is the documented form (docs/plan.md); `records` are the records of the engine."""

    records: list[CycleRecord]
    timings: dict[str, float]
    """Seconds: `policy`, `read`, `snapshot`, then `open`, one entry for each action and `close`, summed over the cycles. `NAME (open)`
    and `NAME (close)` are the parts of opening and closing that a plugin took."""
    ignored: dict[str, int] = field(default_factory=dict)
    """`apiVersion kind` -> objects of kinds that scheduling does not read."""
    mistakes: list[ObjectError] = field(default_factory=list)
    """Objects that were left out (only with `keep_going`)."""
    warnings: list[str] = field(default_factory=list)
    scheduler_names: frozenset[str] | None = None
    """Whose pending pods were decided: names that were given, or that the policy has; None: everyone's."""

    @property
    def binds(self) -> list[Bind]:
        """Pods and their nodes, of all cycles."""
        return [bind for record in self.records for bind in record.binds]

    @property
    def evictions(self) -> list[Eviction]:
        """Pods that lose their place, of all cycles."""
        return [eviction for record in self.records for eviction in record.evictions]

    @property
    def pending(self) -> list[JobDecision]:
        """Jobs that wait after the last cycle, with their reasons."""
        return plan_tables.waiting_jobs(self.records)

    def to_dataframe(self) -> Any:
        """One row a bind, an eviction and a waiting job, as a data frame of pandas or polars, whichever is installed."""
        return plan_tables.as_dataframe(self.records)

    def __repr__(self) -> str:
        return f"<Plan: {plan_tables.summary(self.records)}>"

    def _repr_html_(self) -> str:
        return plan_tables.as_html(self.records)

    def to_dict(self) -> dict[str, Any]:
        """The documented form (docs/plan.md)."""
        return {"cycles": [cycle_dict(number, record) for number, record in enumerate(self.records, start=1)]}


def plan(
    objects: Objects,
    policy: str | Path | Mapping[str, object] | Policy | None = None,
    cycles: int = 1,
    scheduler_names: Iterable[str] | str | None = None,
    now: Moment | None = None,
    *,
    keep_going: bool = False,
    namespace_as_queue: bool = False,
    node_pool_label_key: str = "",
    partition_label_value: str = "",
    plugin_dirs: str | Path | Iterable[str | Path] = (),
    metrics: Mapping[str, Any] | None = None,
) -> Plan:
    """Run cycles over manifests: a file or directory, YAML text, a decoded manifest (also a List), or any number of these.

    `policy` is a preset's name, a path, or the decoded mapping of a policy file; None: preset `navarch`. `scheduler_names`: pending
    pods with these scheduler names are decided; None: all. `now` is in seconds since the epoch, a datetime, or a time such as
    2026-01-01T12:00:00Z; None: the newest moment in the objects, or 0. `metrics`: the load of nodes,
    `{NODE: {"cpu": {"10m": 55}, "memory": {"10m": 40}, "ageSeconds": 3}}`. `node_pool_label_key`, `partition_label_value`: as the
    options of `navarch run`, instead of what the policy says. Raises `PlanError` with every mistake in the objects
    unless `keep_going`, `PolicyError` with every mistake in the policy, and ValueError for an argument that makes no sense.

    >>> from navarch.testing.builders import node, pod
    >>> result = plan([node("n1").cpu(4), pod("a").cpu(1), pod("b").cpu(8)])
    >>> [(bind.pod, bind.node) for bind in result.binds], [job.reasons[0].code for job in result.pending]
    ([('default/a', 'n1')], ['NeverStarts'])
    """
    started = perf_counter()
    read_count(cycles, "cycles")
    if metrics is not None and not isinstance(metrics, Mapping):
        raise ValueError(f"metrics: found {metrics!r}, expected a mapping of nodes to their load")
    registry = installed(read_directories(plugin_dirs))
    chosen = read_policy(policy, registry)
    settings = settings_for(chosen, scheduler_names, namespace_as_queue, node_pool_label_key, partition_label_value)
    moment = None if now is None else read_moment(now)
    timings = {"policy": perf_counter() - started, "read": 0.0, "snapshot": 0.0}
    started = perf_counter()
    documents, mistakes = read_objects(objects)
    run = Cycles(documents, Rules(chosen, registry, settings, moment, metrics or {}, asks=True), timings)
    inventory = run.inventory
    mistakes += [*inventory.mistakes, *run.metrics_mistakes]
    if mistakes and not keep_going:
        raise PlanError(mistakes)
    timings["read"] = perf_counter() - started
    records = [run.decide() for _ in range(cycles)]
    warnings = [*chosen.warnings, *inventory.warnings, *_unknown_nodes(run), *(text for record in records for text in record.warnings)]
    warnings += _failures(failure for record in records for failure in record.failures)
    left_out = mistakes if keep_going else []
    read = {"v1 ConfigMap"} if chosen.dialect == "kai" else set()
    ignored = {kind: count for kind, count in sorted(inventory.ignored.items()) if kind not in read}
    return Plan(records, timings, ignored, left_out, list(dict.fromkeys(warnings)), settings.scheduler_names)


def _unknown_nodes(run: Cycles) -> list[str]:
    known = run.cluster.nodes.rows.of
    return [f"metrics: no node {name!r} is in the input" for name in sorted(map(str, run.rules.metrics)) if name not in known]


def _failures(failures: Iterable[JobFailure]) -> list[str]:
    """A line for each rule and error, with the jobs that were set aside for it."""
    jobs: dict[tuple[str, str], list[str]] = {}
    for each in failures:
        jobs.setdefault((each.where, each.error), []).append(shown_key(each.job))
    found = []
    for (where, error), names in jobs.items():
        names = list(dict.fromkeys(names))
        more = f" and {len(names) - _NAMED_JOBS} more" if len(names) > _NAMED_JOBS else ""
        found.append(f"{where} failed: {error}; set aside: {', '.join(names[:_NAMED_JOBS])}{more}")
    return found


def cycle_dict(number: int, record: CycleRecord) -> dict[str, Any]:
    devices: dict[str, list[dict[str, Any]]] = {}
    for found in record.claims:
        devices.setdefault(found.uid, []).extend(_device(found.claim, each) for each in found.devices)
    return {
        "binds": sorted((_placement(bind, devices.get(bind.uid)) for bind in record.binds), key=_by("pod", "node")),
        "cycle": number,
        "evictions": sorted(
            (
                {"action": e.action, "for": shown_key(e.for_), "node": e.node, "pod": e.pod, "reason": e.reason}
                for e in record.evictions
            ),
            key=_by("pod", "node"),
        ),
        "jobs": sorted((_job(job) for job in record.jobs), key=_by("job")),
        "nominations": sorted((_placement(nomination) for nomination in record.nominations), key=_by("pod", "node")),
        "queues": sorted((_queue(queue) for queue in record.queues), key=_by("queue")),
    }


def _device(claim: str, device: AllocatedDevice) -> dict[str, Any]:
    out: dict[str, Any] = {"claim": claim, "device": "/".join(device.id), "request": device.request}
    if device.consumed:
        out["consumedCapacity"] = dict(device.consumed)
    return out


def _placement(placed: Bind | Nomination, devices: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """`gpuGroups`, `numaZones`, `cpus`, `annotations` and `devices` exist only for pods that have them."""
    out: dict[str, Any] = {"node": placed.node, "pod": placed.pod}
    if placed.gpu_groups:
        out["gpuGroups"] = list(placed.gpu_groups)
    if placed.numa_zones:
        out["numaZones"] = list(placed.numa_zones)
    if isinstance(placed, Bind) and placed.cpus is not None:
        out["cpus"] = placed.cpus
    if isinstance(placed, Bind) and placed.annotations:
        out["annotations"] = dict(placed.annotations)
    if devices:
        out["devices"] = devices
    return out


def _job(job: JobDecision) -> dict[str, Any]:
    return {
        "conditions": [
            {"message": c.message, "reason": c.reason, "status": c.status, "type": c.type}
            for c in sorted(job.conditions, key=lambda c: c.type)
        ],
        "job": shown_key(job.job),
        "minMember": job.min_member,
        "phase": job.phase,
        "pods": dict(sorted(job.pods.items())),
        "queue": job.queue,
        "reasons": [_reason(reason) for reason in job.reasons],
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "code": reason.code,
        "figures": dict(sorted(reason.figures.items())),
        "message": reason.message,
        "nodes": dict(sorted(reason.nodes.items())),
        "undoneBy": [str(event) for event in reason.undone_by],
    }


def _queue(queue: QueueFigures) -> dict[str, Any]:
    out: dict[str, Any] = {
        "allocated": _amounts(queue.allocated),
        "deserved": _amounts(queue.deserved),
        "queue": queue.queue,
        "request": _amounts(queue.request),
        "share": queue.share,
    }
    if queue.fair_share is not None:
        out["fairShare"] = _amounts(queue.fair_share)
    return out


def _amounts(amounts: Mapping[str, float]) -> dict[str, str]:
    """Quantities as Kubernetes writes them; a resource without a limit is left out."""
    return {name: format_amount(name, amount) for name, amount in sorted(amounts.items()) if amount < UNLIMITED}


def _by(*names: str) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    return lambda entry: tuple(entry[name] for name in names)
