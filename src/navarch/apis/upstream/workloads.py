"""The Workload of Kubernetes 1.35 (scheduling.k8s.io/v1alpha1). Its pods name the Workload and one of its groups.

A Workload lists groups, each with a policy. Pods have `workloadRef: {name, podGroup, podGroupReplicaKey}`. Each replica key is a gang
without an object: its pods form a shadow job (`ingest.groups`) with the minimum of the Workload. Until the Workload is known
the pods are in no job and wait. Since 1.36 a Workload is only a template from which controllers make PodGroups, so its later
versions are not read.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from navarch.apis.core.objects import Int32, KubeObject, Part
from navarch.apis.core.pod_objects import WorkloadReference
from navarch.apis.dialect import Kind, Settings
from navarch.apis.errors import ObjectError, shown
from navarch.apis.operators.owners import Owners
from navarch.apis.operators.readers import spec_of
from navarch.apis.operators.workload import WorkloadSpec
from navarch.model.spec import JobSpec, SubGroupSpec, TaskSpec

VERSIONS = ("scheduling.k8s.io/v1alpha1",)
_PREFIX = "workload/"
_APART = ":"
"""Names of objects cannot contain it, so two gangs never have the same key."""


class Gang(Part, frozen=True):
    min_count: Int32 | None = None


class Policy(Part, frozen=True):
    """Exactly one of the two. `basic` has no fields yet."""

    basic: dict[str, Any] | None = None
    gang: Gang | None = None


class GroupPart(Part, frozen=True):
    name: str = ""
    policy: Policy = Policy()


class WorkloadPart(Part, frozen=True):
    pod_groups: tuple[GroupPart, ...] | None = None


class Workload(KubeObject, frozen=True):
    spec: WorkloadPart = WorkloadPart()


def minimum(policy: Policy, kind: str, key: str, path: str) -> int:
    """How many pods must start at once."""
    gang = policy.gang
    if (gang is None) == (policy.basic is None):
        found = "neither" if gang is None else "both"
        raise ObjectError(kind, key, path, found, "basic or gang")
    if gang is None:
        return 1
    if gang.min_count is None or gang.min_count < 1:
        raise ObjectError(kind, key, f"{path}.gang.minCount", shown(gang.min_count), "1 or more")
    return gang.min_count


def read_workload(workload: Workload, settings: Settings) -> WorkloadSpec:
    meta = workload.metadata
    key = f"{meta.namespace or 'default'}/{meta.name}"
    parts = []
    for i, group in enumerate(workload.spec.pod_groups or ()):
        parts.append(SubGroupSpec(group.name, minimum(group.policy, "Workload", key, f"spec.podGroups[{i}].policy")))
    return replace(spec_of("Workload", meta), sub_groups=tuple(parts))


def member_of(reference: WorkloadReference) -> str:
    """The gang's name in its namespace; empty if the reference is empty.

    >>> member_of(WorkloadReference("train", "workers", "0")), member_of(WorkloadReference("train"))
    ('workload/train:workers:0', '')
    """
    if not reference.name or not reference.pod_group:
        return ""
    parts = (reference.name, reference.pod_group, reference.pod_group_replica_key)
    return _PREFIX + _APART.join(part for part in parts if part)


def is_member(job: str) -> bool:
    """Whether this is the key of a gang of a Workload: names of other owners contain no colon."""
    return f"/{_PREFIX}" in job and _APART in job


def gang_of(job: str, leader: TaskSpec, owners: Owners, queue: str) -> JobSpec | None:
    """The shadow job of a gang; None until its Workload is known."""
    namespace, _, name = job.split("/", 2)
    workload, group, *_ = name.split(_APART)
    above = next(iter(owners.chain(job, namespace, "Workload", workload)), None)
    part = next((each for each in above.sub_groups if each.name == group), None) if above is not None else None
    if above is None or part is None:
        return None
    return JobSpec(
        key=job,
        queue=queue,
        min_member=part.min_member,
        namespace=namespace,
        name=name,
        uid=f"{above.uid}{_APART}{name}",
        dialect="upstream",
        priority_of_tasks=True,
        priority_class=leader.priority_class,
        created=above.created,
        labels=above.labels,
        annotations=above.annotations,
        shadow=True,
        owner=("Workload", workload, above.uid),
    )


def absence(job: str) -> str:
    """The message for pods that name a group which does not exist.

    >>> absence("prod/train"), absence("prod/workload/train:workers:0")
    ('the PodGroup "prod/train" does not exist', 'there is no Workload "prod/train" with a group "workers"')
    >>> absence("prod/pytorchjob/train")
    'the pytorchjob "prod/train" that owns it is not known, or cannot be read'
    """
    namespace, kind, name = job.split("/", 2) if job.count("/") > 1 else ("", "", "")
    if not kind:
        return f'the PodGroup "{job}" does not exist'
    if not is_member(job):
        return f'the {kind} "{namespace}/{name}" that owns it is not known, or cannot be read'
    workload, group, *_ = name.split(_APART)
    return f'there is no Workload "{namespace}/{workload}" with a group "{group}"'


KINDS = (Kind(VERSIONS, "Workload", "workloads", Workload, read_workload),)
