"""Recorded cycles: the input and the decisions of a cycle in a file, and the same cycle decided again.

A recording holds the specs of the model, not API objects: exactly what `decide` reads. It has no environment, no commands and no
contents of volumes. Fields that may hold passwords and that no plugin reads are left out as well: kubectl's copy of a manifest,
parameters for volume and device drivers, credentials for Prometheus.

Rows get the numbers that they had, so the same policy gives the same decisions, byte for byte.

    recording = read("cycle-000042.json.gz")
    again(recording) == recording.decisions
    difference(recording.decisions, again(recording, load(my_policy)))
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from navarch.engine.cycle import decide
from navarch.engine.points.conversation import Exchange, failed
from navarch.engine.policy import Policy, load
from navarch.engine.policy.credentials import without_credentials
from navarch.engine.record import CycleRecord, JobFailure
from navarch.engine.registry import Registry
from navarch.model.cluster import Cluster
from navarch.model.node_load import NodeLoad
from navarch.model.objects.bind_requests import BindRequestSpec
from navarch.model.objects.numa import CpuTopologySpec, NodeNumaSpec
from navarch.model.objects.topologies import HyperNodeSpec, TopologySpec
from navarch.model.snapshot import Snapshot
from navarch.model.spec import (
    DisruptionBudgetSpec,
    JobSpec,
    NamespaceSpec,
    NodeSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    Shape,
    TaskSpec,
)
from navarch.offline.recorded_annotations import kept_annotations
from navarch.version import version

FORMAT = 1
_DECIDED = frozenset(("binds", "claims", "evictions", "jobs", "nominations", "queues", "warnings"))
_TRIED = "tried"
"""The order in which jobs were tried. Recordings of format 1 may lack it."""
_GZIP = b"\x1f\x8b"
_NO_SHAPE = Shape()
_Annotated = TypeVar("_Annotated", NodeSpec, QueueSpec, NamespaceSpec)


class RecordingError(ValueError):
    """A file that is not a recording, or one of an unknown format."""


class TaskLine(msgspec.Struct, array_like=True):
    row: int
    shape: int
    spec: TaskSpec


class JobLine(msgspec.Struct, array_like=True):
    """`spec` None: pods name a group that does not exist. `tasks` are rows in their order of arrival."""

    row: int
    key: str
    tasks: list[int]
    spec: JobSpec | None


class ObjectLine(msgspec.Struct, array_like=True):
    """`type` is the name of the value's class, after its module in files of older versions; empty: a plain value."""

    kind: str
    namespace: str
    name: str
    type: str
    value: msgspec.Raw


class Recording(msgspec.Struct):
    now: float
    uid: str
    policy_name: str
    policy: dict[str, Any]
    resource_names: list[str]
    held: list[str]
    shapes: list[Shape]
    nodes: list[NodeSpec]
    tasks: list[TaskLine]
    jobs: list[JobLine]
    queues: list[QueueSpec]
    priority_classes: list[PriorityClassSpec]
    budgets: list[DisruptionBudgetSpec]
    quotas: list[QuotaSpec]
    namespaces: list[NamespaceSpec]
    objects: list[ObjectLine]
    decisions: msgspec.Raw
    version: str = ""
    """The version of Navarch that decided. Another version may decide differently."""
    set_aside: list[str] = msgspec.field(default_factory=list)
    """Jobs that took no part because something failed on them before."""
    left_out_nodes: list[str] = msgspec.field(default_factory=list)
    """Nodes that took no part for the same reason."""
    failed_before: list[JobFailure] = msgspec.field(default_factory=list)
    """Failures of such jobs that this cycle told."""
    exchanges: list[Exchange] = msgspec.field(default_factory=list)
    """What servers outside answered."""
    sitting_out: list[str] = msgspec.field(default_factory=list)
    """Jobs with pods on nodes whose pending pods waited for a later cycle."""
    steps_allowed: int | None = None
    """How many steps the cycle might take, where it was cut."""
    format: int = FORMAT


class _Heading(msgspec.Struct):
    format: int


def record(
    snapshot: Snapshot,
    policy: Policy,
    now: float,
    uid: str,
    held: Mapping[str, JobSpec],
    decided: CycleRecord,
    more_annotations: Sequence[str] = (),
) -> bytes:
    """The compressed recording. `held`: jobs that waited in the scheduling queue and are not in the snapshot.

    It keeps the annotations that rules read (`recorded_annotations`), and those that `more_annotations` names.
    """
    numbers: dict[int, int] = {}
    shapes: list[Shape] = []
    tasks = []
    for row, spec in enumerate(snapshot.tasks.specs):
        if spec is not None:
            number = numbers.get(id(spec.shape))
            if number is None:
                number = numbers[id(spec.shape)] = len(shapes)
                shapes.append(spec.shape)
            bare = replace(spec, shape=_NO_SHAPE, annotations=kept_annotations(spec.annotations, more_annotations))
            tasks.append(TaskLine(row, number, bare))
    jobs = []
    for row, (key, members) in enumerate(zip(snapshot.jobs.keys, snapshot.jobs.tasks)):
        job = snapshot.jobs.specs[row] or held.get(key)
        if job is not None:
            job = replace(job, annotations=kept_annotations(job.annotations, more_annotations))
        if job is not None or members:
            jobs.append(JobLine(row, key, list(members), job))
    recording = Recording(
        now=now,
        uid=uid,
        policy_name=policy.source,
        policy=without_credentials(policy.document),
        resource_names=list(snapshot.resource_names),
        held=sorted(held),
        shapes=shapes,
        nodes=[_discreet_spec(spec, more_annotations) for spec in snapshot.nodes.specs],
        tasks=tasks,
        jobs=jobs,
        queues=[_discreet_spec(spec, more_annotations) for _, spec in sorted(snapshot.queues.items())],
        priority_classes=[spec for _, spec in sorted(snapshot.priority_classes.items())],
        budgets=[spec for _, spec in sorted(snapshot.budgets.items())],
        quotas=[spec for _, spec in sorted(snapshot.quotas.items())],
        namespaces=[_discreet_spec(spec, more_annotations) for _, spec in sorted(snapshot.namespaces.items())],
        objects=_objects(snapshot, more_annotations),
        decisions=msgspec.Raw(decisions(decided)),
        version=version(),
        set_aside=decided.set_aside,
        left_out_nodes=decided.left_out_nodes,
        failed_before=decided.failed_before,
        exchanges=decided.exchanges,
        sitting_out=sorted(snapshot.jobs.keys[row] for row in snapshot.jobs.sitting_out),
        steps_allowed=decided.steps_allowed if decided.cut else None,
    )
    return gzip.compress(_encode(recording), compresslevel=3, mtime=0)


def decisions(decided: CycleRecord) -> bytes:
    """A record without its timings, as JSON in a fixed order."""
    plain = {name: getattr(decided, name) for name in (*_DECIDED, _TRIED)}
    return msgspec.json.encode(plain, enc_hook=_plain, order="deterministic")


def read(file: str | Path | bytes) -> Recording:
    """A recording from a file or from its bytes, compressed or not."""
    where = "the recording" if isinstance(file, bytes) else str(file)
    try:
        raw = file if isinstance(file, bytes) else Path(file).read_bytes()
        if raw.startswith(_GZIP):
            raw = gzip.decompress(raw)
        found = msgspec.json.decode(raw, type=_Heading).format
        if found != FORMAT:
            raise RecordingError(f"{where}: expected a recording of format {FORMAT}, found one of format {found}, of another Navarch")
        recording = msgspec.json.decode(raw, type=Recording)
        missing = sorted(_DECIDED - msgspec.json.decode(recording.decisions, type=dict[str, Any]).keys())
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise RecordingError(f"{where}: expected a recording of `navarch run --record`: {error}") from None
    if missing:
        raise RecordingError(f"{where}: expected decisions with {', '.join(missing)}")
    return recording


def again(recording: Recording, registry: Registry, policy: Policy | None = None) -> CycleRecord:
    """Decide the recorded cycle again, under its own policy or another one."""
    if policy is None:
        policy = load(recording.policy, registry.catalogue(), recording.policy_name)
    try:
        cluster = restored(recording)
    except (LookupError, msgspec.ValidationError) as error:
        raise RecordingError(f"the recording contradicts itself: {type(error).__name__}: {error}") from None
    for key in recording.held:
        cluster.jobs.hold(key, True)
    snapshot = cluster.snapshot(policy.semantics.node_order)
    for key in recording.sitting_out:
        snapshot.jobs.sit_out(cluster.jobs.rows.of[key])
    uid, set_aside, exchanges = recording.uid, recording.set_aside, list(recording.exchanges)
    while True:
        decided = decide(
            snapshot,
            policy,
            registry,
            recording.now,
            uid=uid,
            devices=uid,
            report_all=False,
            set_aside=set_aside,
            left_out_nodes=recording.left_out_nodes,
            failed_before=recording.failed_before,
            exchanges=exchanges,
            steps=recording.steps_allowed,
        )
        if decided.question is None:
            return decided
        exchanges.append(failed(decided.question, "the recording has no answer to this question"))


def restored(recording: Recording) -> Cluster:
    """The cluster as it was, with the same rows."""
    cluster = Cluster()
    cluster.space.learn(tuple((name, 0) for name in recording.resource_names), trusted=True)
    for priority in recording.priority_classes:
        cluster.put_priority_class(priority)
    for namespace in recording.namespaces:
        cluster.put_namespace(namespace)
    for queue in recording.queues:
        cluster.put_queue(queue)
    for budget in recording.budgets:
        cluster.put_budget(budget)
    for quota in recording.quotas:
        cluster.put_quota(quota)
    for line in recording.objects:
        cluster.put_object(line.kind, line.namespace, line.name, _value(line))
    for node in recording.nodes:
        cluster.put_node(node)
    _restore_jobs(cluster, recording.jobs)
    _restore_tasks(cluster, recording)
    for job in recording.jobs:
        cluster.jobs.tasks[job.row] = dict.fromkeys(job.tasks)
    return cluster


def _restore_jobs(cluster: Cluster, lines: list[JobLine]) -> None:
    """Unused rows are filled with placeholders for a while, so that each job gets the row that it had."""
    stand_ins = []
    for line in lines:
        while cluster.jobs.rows.top < line.row:
            stand_ins.append(f"\0{cluster.jobs.rows.top}")
            cluster.jobs.row_for(stand_ins[-1])
        cluster.jobs.row_for(line.key)
        if line.spec is not None:
            cluster.put_job(line.spec)
    for key in stand_ins:
        cluster.remove_job(key)


def _restore_tasks(cluster: Cluster, recording: Recording) -> None:
    stand_ins = []
    for line in recording.tasks:
        while cluster.tasks.rows.top < line.row:
            stand_ins.append(f"\0{cluster.tasks.rows.top}")
            cluster.put_task(TaskSpec(stand_ins[-1], "", stand_ins[-1], _NO_SHAPE))
        cluster.put_task(replace(line.spec, shape=recording.shapes[line.shape]))
    for uid in stand_ins:
        cluster.remove_task(uid)


_VALUE_CLASSES = (BindRequestSpec, CpuTopologySpec, HyperNodeSpec, NodeLoad, NodeNumaSpec, TopologySpec)
"""Classes of objects that the model keeps as values. All other objects are plain: decoded manifests, texts and numbers."""
_CLASS_OF = {kind.__name__: kind for kind in _VALUE_CLASSES}


def _objects(snapshot: Snapshot, more_annotations: Sequence[str]) -> list[ObjectLine]:
    lines = []
    for kind, values in sorted(snapshot.objects.items()):
        for (namespace, name), value in sorted(values.items(), key=lambda item: item[0]):
            if isinstance(value, Mapping) and isinstance(value.get("metadata"), Mapping):
                value = _discreet_object(value, more_annotations)
            type_name = type(value).__name__ if isinstance(value, _VALUE_CLASSES) else ""
            lines.append(ObjectLine(kind, namespace, name, type_name, msgspec.Raw(_encode(value))))
    return lines


def _value(line: ObjectLine) -> Any:
    if not line.type:
        return msgspec.json.decode(line.value)
    kind = _CLASS_OF.get(line.type.rpartition(":")[2])
    if kind is None:
        raise RecordingError(f"{line.kind} {line.namespace}/{line.name}: this Navarch has no {line.type!r}, another recorded it")
    return msgspec.json.decode(line.value, type=kind)


def _discreet_spec(spec: _Annotated, more_annotations: Sequence[str]) -> _Annotated:
    kept = kept_annotations(spec.annotations, more_annotations)
    return spec if kept is spec.annotations else replace(spec, annotations=kept)


def _discreet_object(manifest: Mapping[str, Any], more_annotations: Sequence[str]) -> Mapping[str, Any]:
    """Without annotations that rules do not read, and without the parameters of drivers."""
    metadata = dict(manifest["metadata"])
    metadata["annotations"] = dict(kept_annotations(metadata.get("annotations") or {}, more_annotations))
    found: Mapping[str, Any] = {**manifest, "metadata": metadata}
    for path in _TOLD_TO_DRIVERS:
        found = _without(found, path)
    return found


_TOLD_TO_DRIVERS = (
    ("parameters",),  # of a StorageClass
    ("spec", "mountOptions"),
    ("spec", "csi", "volumeAttributes"),
    ("spec", "flexVolume", "options"),
    ("spec", "config"),  # of a DeviceClass, then of a ResourceClaim, then of one that has its devices
    ("spec", "devices", "config"),
    ("status", "allocation", "devices", "config"),
)
"""Paths that are removed. No decision depends on them."""


def _without(value: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    """A copy without the field at the path; the value itself if it has no such field."""
    name, *below = path
    if name not in value:
        return value
    if not below:
        return {key: each for key, each in value.items() if key != name}
    inner = value[name]
    return {**value, name: _without(inner, tuple(below))} if isinstance(inner, Mapping) else value


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=_plain, order="deterministic")


def _plain(value: Any) -> Any:
    """Encodes types that msgspec does not know."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"expected plain data, found {type(value).__name__}")


def same(before: bytes, after: bytes) -> bool:
    """Whether two cycles decided the same, byte for byte. The order in which jobs were tried counts if both have it."""
    if before == after:
        return True
    old, new = msgspec.json.decode(before), msgspec.json.decode(after)
    return _TRIED not in old and {name: part for name, part in new.items() if name != _TRIED} == old


def difference(before: bytes | msgspec.Raw, after: bytes | msgspec.Raw) -> list[str]:
    """The differences between the decisions of two cycles, one line each."""
    old, new = (msgspec.json.decode(bytes(each)) for each in (before, after))
    lines: list[str] = []
    for part, name, told in _PARTS:
        was = {each[name]: each for each in old[part]}
        now = {each[name]: each for each in new[part]}
        word = _WORDS[part]
        changed = [key for key in sorted(was.keys() | now.keys()) if was.get(key) != now.get(key)]
        lines += [f"{word} {key}: {_change(was.get(key), now.get(key), told)}" for key in changed]
    if old["warnings"] != new["warnings"]:
        lines.append(f"warnings: {old['warnings']} -> {new['warnings']}")
    return lines


_Entry = Mapping[str, Any]


def _change(was: _Entry | None, now: _Entry | None, told: Callable[[_Entry | None], str]) -> str:
    before, after = told(was), told(now)
    if before != after or was is None or now is None:
        return f"{before} -> {after}"
    other = sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name))
    return f"{before}, with other {', '.join(other)}"


def _told(entry: _Entry | None) -> str:
    if entry is None:
        return "nothing"
    return f"{entry['node']} ({entry['reason']} for {entry['for_']})" if "for_" in entry else str(entry["node"])


def _job_told(entry: _Entry | None) -> str:
    if entry is None:
        return "not looked at"
    reasons = "; ".join(reason["message"] for reason in entry["reasons"])
    return f"{entry['phase']}{f' ({reasons})' if reasons else ''}"


def _queue_told(entry: _Entry | None) -> str:
    return "no figures" if entry is None else f"share {entry['share']:.4f}"


_WORDS = {"binds": "bind", "evictions": "evict", "nominations": "promise", "jobs": "job", "queues": "queue"}
_PARTS = (
    ("binds", "pod", _told),
    ("evictions", "pod", _told),
    ("nominations", "pod", _told),
    ("jobs", "job", _job_told),
    ("queues", "queue", _queue_told),
)
