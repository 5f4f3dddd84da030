"""The minimum, the sub-groups and the start order that KAI's pod grouper takes from the owner of pods, kind by kind.

Only kinds with a minimum in their own spec are read here; on a live cluster they are watched where they are served. Other kinds need
no object: labels of their pods say it, or each pod may start alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from navarch.apis.core.objects import Metadata
from navarch.apis.dialect import Kind, Settings
from navarch.apis.errors import ObjectError
from navarch.apis.kai.sub_groups import ROLE, SEGMENT_SIZE, leader_and_workers, replica_name
from navarch.apis.operators.objects import (
    GangTopology,
    JobSet,
    KubeflowJob,
    LeaderWorkerSet,
    PodGang,
    RayCluster,
    ReplicaSpec,
    ReplicatedJob,
    WorkerGroup,
)
from navarch.apis.operators.workload import MIN_MEMBER, TOPOLOGY, WorkloadSpec, demand, number, topology_in
from navarch.model.spec import SubGroupSpec, TopologyDemand

SEGMENT_REQUIRED: Final = "kai.scheduler/segment-topology-required-placement"
SEGMENT_PREFERRED: Final = "kai.scheduler/segment-topology-preferred-placement"
GROVE_TOPOLOGY: Final = "grove.io/topology-name"
HEAD_GROUP: Final = "headgroup"
_MOST_SEGMENTS: Final = 10_000


def spec_of(kind: str, meta: Metadata) -> WorkloadSpec:
    """An owner of any kind: its labels, its annotations and its own owner."""
    above = meta.controller or next(((o.kind, o.name, o.uid) for o in meta.owner_references or ()), None)
    return WorkloadSpec(
        kind=kind,
        namespace=meta.namespace or "default",
        name=meta.name,
        uid=meta.uid or "",
        created=meta.created,
        labels=meta.label_map,
        annotations=meta.annotation_map,
        owner=above[:2] if above else None,
    )


def read_kubeflow(kind: str, job: KubeflowJob) -> WorkloadSpec:
    """All replicas, unless the job sets minAvailable. A PyTorchJob has its master and its workers as sub-groups."""
    spec, roles = job.spec, job.spec.roles
    policy = spec.run_policy.scheduling_policy if spec.run_policy else None
    least = policy.min_available if policy else None
    if least is None and kind == "PyTorchJob" and spec.elastic_policy:
        least = spec.elastic_policy.min_replicas
    if least is None:
        least = sum(role.count for role in roles.values())
    early = None
    if kind == "MPIJob" and spec.launcher_creation_policy == "WaitForWorkersReady" and "launcher" in roles:
        early = (f"{ROLE}worker", max(0, least - roles["launcher"].count))
    parts = _pytorch_parts(roles, least, job.metadata) if kind == "PyTorchJob" else ()
    schedulers = frozenset(name for role in roles.values() if (name := role.template.spec.scheduler_name))
    return replace(spec_of(kind, job.metadata), min_member=least, sub_groups=parts, early=early, schedulers=schedulers)


def _pytorch_parts(roles: Mapping[str, ReplicaSpec], least: int, meta: Metadata) -> tuple[SubGroupSpec, ...]:
    """The master, and the workers as one sub-group or in segments with a topology constraint each."""
    masters = roles["master"].count if "master" in roles else 0
    parts = [SubGroupSpec("master", masters)] if masters else []
    workers = roles.get("worker")
    if workers is None:
        return tuple(parts)
    said = workers.template.annotations
    size = number(said.get(SEGMENT_SIZE))
    if not size:
        return *parts, SubGroupSpec("worker", max(0, least - masters))
    whole, rest = divmod(workers.count, size)
    sizes = [size] * whole + ([rest] if rest else [])
    if len(sizes) > _MOST_SEGMENTS:
        path = f"spec.pytorchReplicaSpecs.Worker.template.metadata.annotations[{SEGMENT_SIZE}]"
        expected = f"segments so large that there are no more than {_MOST_SEGMENTS}"
        raise ObjectError("PyTorchJob", f"{meta.namespace or 'default'}/{meta.name}", path, repr(said[SEGMENT_SIZE]), expected)
    topology = demand(said.get(TOPOLOGY) or meta.annotation_map.get(TOPOLOGY), said.get(SEGMENT_REQUIRED), said.get(SEGMENT_PREFERRED))
    segments = (SubGroupSpec(f"worker-{i}", n, "worker", topology=topology) for i, n in enumerate(sizes))
    return *parts, SubGroupSpec("worker", max(0, least - masters)), *segments


def read_job_set(found: JobSet, settings: Settings) -> WorkloadSpec:
    """Every replica of every job, or one job at a time if they start in order. Each replica is a sub-group."""
    jobs = found.spec.replicated_jobs or ()
    policy = found.spec.startup_policy
    in_order = policy is not None and policy.startup_policy_order == "InOrder"
    least = number(found.metadata.annotation_map.get(MIN_MEMBER)) or (1 if in_order else len(jobs))
    parts: list[SubGroupSpec] = []
    needs: list[int] = []
    for job in jobs:
        replicas, members = 1 if job.replicas is None else job.replicas, _job_members(job)
        topology = topology_in(job.template.annotations)
        parts.append(SubGroupSpec(job.name, 0, min_sub_groups=replicas))
        parts += [SubGroupSpec(replica_name(job.name, i), members, job.name, topology=topology) for i in range(replicas)]
        needs.append(replicas * members)
    return replace(
        spec_of("JobSet", found.metadata),
        min_member=sum(sorted(needs)[:least]),
        sub_groups=_named(parts, "JobSet", found.metadata, "spec.replicatedJobs"),
        min_sub_groups=min(least, len(jobs)),
    )


def _job_members(job: ReplicatedJob) -> int:
    if least := number(job.template.annotations.get(MIN_MEMBER)):
        return least
    spec = job.template.spec
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions)


def read_ray_cluster(found: RayCluster, settings: Settings) -> WorkloadSpec:
    """The head, and the minimum of each worker group: all replicas if it has no minReplicas, none if an autoscaler may scale it
    to zero."""
    spec = found.spec
    parts = [SubGroupSpec(HEAD_GROUP, 1, topology=topology_in(spec.head_group_spec.template.annotations))]
    for i, group in enumerate(spec.worker_group_specs or ()):
        replicas, least = group.replicas or 0, group.min_replicas or 0
        if group.suspend or not (replicas or least):
            continue
        counted = least if least or spec.enable_in_tree_autoscaling else replicas
        hosts = 1 if group.num_of_hosts is None else group.num_of_hosts
        parts.append(SubGroupSpec(_ray_name(group, i), counted * hosts, topology=topology_in(group.template.annotations)))
    return replace(
        spec_of("RayCluster", found.metadata),
        min_member=sum(part.min_member for part in parts),
        sub_groups=_named(parts, "RayCluster", found.metadata, "spec.workerGroupSpecs"),
    )


def _ray_name(group: WorkerGroup, index: int) -> str:
    return group.group_name or f"worker-group-{index}"


def read_leader_worker_set(found: LeaderWorkerSet, settings: Settings) -> WorkloadSpec:
    """All pods of each group; at first only the leader, if workers are created after it is ready."""
    spec = found.spec
    template, policy = spec.leader_worker_template, spec.leader_worker_template.sub_group_policy
    size = 1 if template.size is None else template.size
    segment = (policy.sub_group_size or 0) if policy else 0
    apart = policy is not None and policy.sub_group_policy_type == "LeaderExcluded"
    return replace(
        spec_of("LeaderWorkerSet", found.metadata),
        min_member=size,
        sub_groups=leader_and_workers(size, segment, leader_apart=apart),
        early=("leader", 1) if spec.startup_policy == "LeaderReady" else None,
    )


def read_pod_gang(found: PodGang, settings: Settings) -> WorkloadSpec:
    """Grove's gang: its pod groups as sub-groups; pod groups that are placed together have a common parent."""
    meta, spec = found.metadata, found.spec
    name = meta.annotation_map.get(GROVE_TOPOLOGY) or meta.annotation_map.get(TOPOLOGY, "")
    parents: dict[str, str] = {}
    parts: list[SubGroupSpec] = []
    for group in spec.topology_constraint_group_configs or ():
        if group.pod_group_names:
            parts.append(SubGroupSpec(group.name, 0, topology=_packed(name, group.topology_constraint)))
            parents.update(dict.fromkeys(group.pod_group_names, group.name))
    for member in spec.podgroups or ():
        least = 1 if member.min_replicas is None else member.min_replicas
        parent = parents.get(member.name, "")
        parts.append(SubGroupSpec(member.name, least, parent, topology=_packed(name, member.topology_constraint)))
    return replace(
        spec_of("PodGang", meta),
        min_member=sum(part.min_member for part in parts),
        sub_groups=_named(parts, "PodGang", meta, "spec.podgroups"),
        priority_class=spec.priority_class_name or "",
        topology=_packed(name, spec.topology_constraint),
    )


def _named(parts: list[SubGroupSpec], kind: str, meta: Metadata, path: str) -> tuple[SubGroupSpec, ...]:
    """Pods find their sub-group by name, so names must differ."""
    seen: set[str] = set()
    for part in parts:
        if not part.name or part.name in seen:
            name = f"{meta.namespace or 'default'}/{meta.name}"
            raise ObjectError(kind, name, path, repr(part.name), "names that all differ")
        seen.add(part.name)
    return tuple(parts)


def _packed(topology: str, constraint: GangTopology | None) -> TopologyDemand | None:
    pack = constraint.pack_constraint if constraint else None
    return demand(topology, pack.required, pack.preferred) if pack else None


def _kubeflow_kind(kind: str, plural: str, *versions: str) -> Kind:
    def read(job: KubeflowJob, settings: Settings) -> WorkloadSpec:
        return read_kubeflow(kind, job)

    return Kind(tuple(f"kubeflow.org/{version}" for version in versions), kind, plural, KubeflowJob, read)


KINDS: Final = (
    _kubeflow_kind("PyTorchJob", "pytorchjobs", "v1"),
    _kubeflow_kind("TFJob", "tfjobs", "v1"),
    _kubeflow_kind("MPIJob", "mpijobs", "v2beta1", "v1"),
    _kubeflow_kind("XGBoostJob", "xgboostjobs", "v1"),
    _kubeflow_kind("JAXJob", "jaxjobs", "v1"),
    Kind(("jobset.x-k8s.io/v1alpha2",), "JobSet", "jobsets", JobSet, read_job_set),
    Kind(("ray.io/v1", "ray.io/v1alpha1"), "RayCluster", "rayclusters", RayCluster, read_ray_cluster),
    Kind(("leaderworkerset.x-k8s.io/v1",), "LeaderWorkerSet", "leaderworkersets", LeaderWorkerSet, read_leader_worker_set),
    Kind(("scheduler.grove.io/v1alpha1",), "PodGang", "podgangs", PodGang, read_pod_gang),
)
