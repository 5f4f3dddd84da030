"""Kinds whose pods form one gang, as their operators define them: the fields that give its size."""

from __future__ import annotations

from typing import Annotated

import msgspec

from navarch.apis.core.objects import KubeObject, Part
from navarch.model.spec import NO_LABELS, Labels

Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
"""Pods of one workload. More than a million is a typing mistake."""


class TemplateMetadata(Part, frozen=True):
    annotations: dict[str, str] | None = None


class Template(Part, frozen=True):
    metadata: TemplateMetadata = TemplateMetadata()

    @property
    def annotations(self) -> Labels:
        return self.metadata.annotations or NO_LABELS


class TemplatePod(Part, frozen=True):
    scheduler_name: str | None = None


class PodTemplate(Template, frozen=True):
    spec: TemplatePod = TemplatePod()


class ReplicaSpec(Part, frozen=True):
    replicas: Count | None = None
    template: PodTemplate = PodTemplate()

    @property
    def count(self) -> int:
        return 1 if self.replicas is None else self.replicas


class SchedulingPolicy(Part, frozen=True):
    min_available: Count | None = None


class RunPolicy(Part, frozen=True):
    scheduling_policy: SchedulingPolicy | None = None


class ElasticPolicy(Part, frozen=True):
    min_replicas: Count | None = None


class KubeflowPart(Part, frozen=True):
    pytorch_replica_specs: dict[str, ReplicaSpec] | None = None
    tf_replica_specs: dict[str, ReplicaSpec] | None = None
    mpi_replica_specs: dict[str, ReplicaSpec] | None = None
    xgb_replica_specs: dict[str, ReplicaSpec] | None = None
    jax_replica_specs: dict[str, ReplicaSpec] | None = None
    run_policy: RunPolicy | None = None
    elastic_policy: ElasticPolicy | None = None
    launcher_creation_policy: str | None = None

    @property
    def roles(self) -> dict[str, ReplicaSpec]:
        """Name in lower case, as in the labels of pods."""
        given = (
            self.pytorch_replica_specs
            or self.tf_replica_specs
            or self.mpi_replica_specs
            or self.xgb_replica_specs
            or self.jax_replica_specs
            or {}
        )
        return {name.lower(): role for name, role in given.items()}


class KubeflowJob(KubeObject, frozen=True):
    spec: KubeflowPart = KubeflowPart()


class JobPart(Part, frozen=True):
    parallelism: Count | None = None
    completions: Count | None = None


class JobTemplate(Template, frozen=True):
    spec: JobPart = JobPart()


class ReplicatedJob(Part, frozen=True):
    name: str = ""
    replicas: Count | None = None
    template: JobTemplate = JobTemplate()


class StartupPolicy(Part, frozen=True):
    startup_policy_order: str | None = None


class JobSetPart(Part, frozen=True):
    replicated_jobs: tuple[ReplicatedJob, ...] | None = None
    startup_policy: StartupPolicy | None = None


class JobSet(KubeObject, frozen=True):
    spec: JobSetPart = JobSetPart()


class HeadGroup(Part, frozen=True):
    template: Template = Template()


class WorkerGroup(Part, frozen=True):
    group_name: str | None = None
    replicas: Count | None = None
    min_replicas: Count | None = None
    num_of_hosts: Count | None = None
    suspend: bool | None = None
    template: Template = Template()


class RayClusterPart(Part, frozen=True):
    head_group_spec: HeadGroup = HeadGroup()
    worker_group_specs: tuple[WorkerGroup, ...] | None = None
    enable_in_tree_autoscaling: bool | None = None


class RayCluster(KubeObject, frozen=True):
    spec: RayClusterPart = RayClusterPart()


class SubGroupPolicy(Part, frozen=True):
    sub_group_size: Count | None = None
    sub_group_policy_type: str | None = None


class LeaderWorkerTemplate(Part, frozen=True):
    size: Count | None = None
    sub_group_policy: SubGroupPolicy | None = None


class LeaderWorkerPart(Part, frozen=True):
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()
    startup_policy: str | None = None


class LeaderWorkerSet(KubeObject, frozen=True):
    spec: LeaderWorkerPart = LeaderWorkerPart()


class PackConstraint(Part, frozen=True):
    required: str | None = None
    preferred: str | None = None


class GangTopology(Part, frozen=True):
    pack_constraint: PackConstraint | None = None


class GangMember(Part, frozen=True):
    name: str = ""
    min_replicas: Count | None = None
    topology_constraint: GangTopology | None = None


class GangGroup(Part, frozen=True):
    name: str = ""
    pod_group_names: tuple[str, ...] | None = None
    topology_constraint: GangTopology | None = None


class PodGangPart(Part, frozen=True):
    podgroups: tuple[GangMember, ...] | None = None
    topology_constraint: GangTopology | None = None
    topology_constraint_group_configs: tuple[GangGroup, ...] | None = None
    priority_class_name: str | None = None


class PodGang(KubeObject, frozen=True):
    spec: PodGangPart = PodGangPart()
