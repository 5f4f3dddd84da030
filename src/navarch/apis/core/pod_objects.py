"""A pod as the API defines it, reduced to what scheduling reads. `objects` explains absent and empty fields."""

from __future__ import annotations

import datetime

import msgspec

from navarch.apis.core.objects import (
    Int32,
    Int64,
    KubeObject,
    LabelSelectorPart,
    LabelSelectorRequirement,
    Part,
    ResourceList,
)


class ResourceRequirements(Part, frozen=True):
    requests: ResourceList | None = None
    limits: ResourceList | None = None


class ContainerPort(Part, frozen=True):
    container_port: Int32 | None = None
    host_port: Int32 | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class RestartRule(Part, frozen=True):
    action: str | None = None


class Container(Part, frozen=True):
    name: str = ""
    image: str | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] | None = None
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None


class NodeSelectorTerm(Part, frozen=True):
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None
    match_fields: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelector(Part, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredNodeTerm(Part, frozen=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinityPart(Part, frozen=True):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredNodeTerm, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Part, frozen=True):
    topology_key: str = ""
    label_selector: LabelSelectorPart | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelectorPart | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class PreferredPodTerm(Part, frozen=True):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinityPart(Part, frozen=True):
    required: tuple[PodAffinityTerm, ...] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredPodTerm, ...] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Part, frozen=True):
    node_affinity: NodeAffinityPart | None = None
    pod_affinity: PodAffinityPart | None = None
    pod_anti_affinity: PodAffinityPart | None = None


class TopologySpreadConstraint(Part, frozen=True):
    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelectorPart | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class TolerationPart(Part, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class ClaimVolume(Part, frozen=True):
    claim_name: str = ""


class EphemeralVolume(Part, frozen=True):
    pass


class GcePersistentDisk(Part, frozen=True):
    pd_name: str = ""
    read_only: bool | None = None


class AwsElasticBlockStore(Part, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool | None = None


class Iscsi(Part, frozen=True):
    target_portal: str = ""
    iqn: str = ""
    lun: int | None = None
    read_only: bool | None = None


class Rbd(Part, frozen=True):
    monitors: tuple[str, ...] | None = None
    image: str = ""
    pool: str | None = None
    read_only: bool | None = None


class AzureDisk(Part, frozen=True):
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    read_only: bool | None = None


class Cinder(Part, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool | None = None


class Portworx(Part, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool | None = None


class ImageVolume(Part, frozen=True):
    reference: str | None = None


class Volume(Part, frozen=True):
    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None
    portworx_volume: Portworx | None = None
    image: ImageVolume | None = None

    @property
    def matters(self) -> bool:
        """Whether scheduling depends on this volume. It does not on config maps, secrets, host paths and projected tokens, and their
        generated names would give equal pods different shapes."""
        return self != Volume(name=self.name)


class PodResourceClaim(Part, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGate(Part, frozen=True):
    name: str = ""


class SchedulingGroup(Part, frozen=True):
    """The PodGroup of scheduling.k8s.io that the pod belongs to (Kubernetes 1.36)."""

    pod_group_name: str | None = None


class WorkloadReference(Part, frozen=True):
    """The group of a Workload that the pod belongs to (Kubernetes 1.35)."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(Part, frozen=True):
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    resources: ResourceRequirements | None = None
    overhead: ResourceList | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[TolerationPart, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    scheduler_name: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    runtime_class_name: str | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    restart_policy: str | None = None
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None


class ContainerStatus(Part, frozen=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None


class PodCondition(Part, frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime.datetime | None = None


class ResourceClaimStatus(Part, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Part, frozen=True):
    phase: str | None = None
    start_time: datetime.datetime | None = None
    nominated_node_name: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None
    resource_claim_statuses: tuple[ResourceClaimStatus, ...] | None = None
    qos_class: str | None = None


class Pod(KubeObject, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace or 'default'}/{self.metadata.name}"
