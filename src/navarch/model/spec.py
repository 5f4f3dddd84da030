"""What the cluster says about its objects, in scheduling terms and free of any API dialect.

A *spec* is an immutable value: the API readers make one from an API object, tables store it, everything else reads it. Figures
that a cycle changes (used resources of a node, status of a task) are columns of the tables, never fields here.

Requests are tuples of (resource name, integer) sorted by name, in the units of `resources.unit_of`: so they hash, compare
and sum exactly. `Shape` holds just what decides where a task may go and how a node scores for it: two tasks with equal
shapes are interchangeable to every node function, and all work over nodes is done once per shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from navarch.model.status import TaskStatus

Requests = tuple[tuple[str, int], ...]
Labels = Mapping[str, str]
NO_LABELS: Labels = MappingProxyType({})


def nothing() -> Mapping[str, Any]:
    return NO_LABELS


class Spec(Struct, frozen=True, gc=False):
    """The base of every spec. Structs are made, compared and copied in C, which matters because each pod event makes several. The
    garbage collector skips them: a value made of older values is never part of a reference cycle."""


class Taint(Spec, frozen=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Toleration(Spec, frozen=True):
    """An empty key with operator Exists tolerates everything; an empty effect matches every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Requirement(Spec, frozen=True):
    """One test on a label (or a field): In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Spec, frozen=True):
    """AND of its requirements; no requirement at all matches everything. An absent selector is None, and matches nothing."""

    requirements: tuple[Requirement, ...] = ()


class NodeTerm(Spec, frozen=True):
    """AND of label and field requirements. A term without any matches no node."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class NodeAffinity(Spec, frozen=True):
    """`required` None: no demand. `required` (): present but empty, which no node satisfies."""

    required: tuple[NodeTerm, ...] | None = None
    preferred: tuple[tuple[int, NodeTerm], ...] = ()


class PodTerm(Spec, frozen=True):
    """Other pods in a topology domain. Match and mismatch label keys are already folded into `selector` by the dialect."""

    topology_key: str
    selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class PodAffinity(Spec, frozen=True):
    required: tuple[PodTerm, ...] = ()
    preferred: tuple[tuple[int, PodTerm], ...] = ()
    anti_required: tuple[PodTerm, ...] = ()
    anti_preferred: tuple[tuple[int, PodTerm], ...] = ()


class SpreadConstraint(Spec, frozen=True):
    max_skew: int
    topology_key: str
    hard: bool
    selector: LabelSelector | None = None
    min_domains: int | None = None
    honor_node_affinity: bool = True
    honor_node_taints: bool = False


class HostPort(Spec, frozen=True):
    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"


class VolumeUse(Spec, frozen=True):
    """A pod's volumes as far as scheduling sees them.

    `claims`: (claim name, is a generic ephemeral volume's). `disks`: (kind, identity, read-only) of the inline volumes which
    only one node, or one writer, may hold (GCE PD, AWS EBS, iSCSI, RBD)."""

    claims: tuple[tuple[str, bool], ...] = ()
    disks: tuple[tuple[str, tuple[str, ...], bool], ...] = ()


class DeviceRequest(Spec, frozen=True):
    """Shared or partitioned GPUs: `fraction` in thousandths of one device or `memory` in MiB, on `count` devices each;
    `profiles` are whole MIG slices (name, count)."""

    fraction: int = 0
    memory: int = 0
    count: int = 1
    profiles: Requests = ()


class VgpuRequest(Spec, frozen=True):
    """What one container asks of each of `count` cards: `memory` in the units of the card (0: all of it), `cores` in percent."""

    count: int
    memory: int = 0
    cores: int = 0


class CardRequest(Spec, frozen=True):
    """Parts of GPU cards that a device plugin gives out by annotations: vGPUs for each container that asks for them, or `memory`
    of one card, or `number` whole cards for the pod."""

    vgpus: tuple[VgpuRequest, ...] = ()
    memory: int = 0
    number: int = 0


class ContainerSpec(Spec, frozen=True):
    """One container of a pod. `phase`: an "init" container ends before the next starts, a "sidecar" starts before the "main"
    ones and stays."""

    phase: str
    requests: Requests


class Shape(Spec, frozen=True, cache_hash=True):
    """What decides where a task may go and how nodes score for it. Tables and caches look shapes up by value in every cycle, so the
    hash is computed once."""

    requests: Requests = ()
    scoring: tuple[int, int] = (100, 200 << 20)
    """cpu and memory of the incoming pod for scoring, defaults filled in for containers without requests."""
    footprint: tuple[int, int] = (100, 200 << 20)
    """cpu and memory that the placed pod adds to its node's scoring figures."""
    limits: tuple[int, int] = (0, 0)
    """cpu and memory that the pod may use, where that is more than it requests; else 0."""
    node_name: str = ""
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: NodeAffinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    ports: tuple[HostPort, ...] = ()
    pod_affinity: PodAffinity | None = None
    spread: tuple[SpreadConstraint, ...] = ()
    has_own_spread: bool = False
    volumes: VolumeUse | None = None
    claims: tuple[tuple[str, str], ...] = ()
    """(name in the pod, ResourceClaim name) of dynamic resources; an empty claim name: not made yet."""
    extended: tuple[tuple[str, Requests], ...] = ()
    """Extended resource -> (name, count) of the requests for devices that would stand for it on a node that does not report it."""
    images: tuple[str, ...] = ()
    containers: int = 0
    """How many containers there are, init containers included: bounds what images on a node can be worth."""
    parts: tuple[ContainerSpec, ...] = ()
    """The containers as they start, where `requests` is not just what the only one asks for."""
    devices: DeviceRequest | None = None
    cards: CardRequest | None = None
    qos: str = "BestEffort"
    exclusive_cpus: tuple[tuple[str, int], ...] = ()
    """Containers of a Guaranteed pod: name, and the CPUs that a static CPU manager gives it alone (0: it asks for a part of one)."""
    namespace: str = ""
    """Set only where it matters to a node function: pod affinity, spread, volumes, claims."""
    unsupported: tuple[str, ...] = ()
    """Features the pod needs that Navarch does not model; such a pod is refused with a Reason, never placed by guess."""
    features: tuple[str, ...] = ()
    """Features of the kubelet that the pod needs, by the names under which nodes declare them."""
    hints: tuple[tuple[str, str], ...] = ()
    """Labels and annotations that a node function reads from the task (revocable zone, strategy of scoring ...)."""


class TaskSpec(Spec, frozen=True):
    """One pod."""

    uid: str
    namespace: str
    name: str
    shape: Shape
    job: str = ""
    """Key of its job; empty for a pod that only occupies its node."""
    node: str = ""
    status: TaskStatus = TaskStatus.PENDING
    priority: int = 1
    """What orders tasks: a dialect's task priority, else the pod's."""
    pod_priority: int = 0
    """spec.priority as kube-scheduler's preemption reads it."""
    has_priority: bool = True
    """False: the pod states no priority, and no admission gave it one."""
    created: float = 0.0
    started: float | None = None
    role: str = ""
    sub_group: str = ""
    preemptable: bool = True
    preemption_policy: str = ""
    gates: tuple[str, ...] = ()
    labels: Labels = field(default_factory=nothing)
    annotations: Labels = field(default_factory=nothing)
    nominated_node: str = ""
    scheduler_name: str = ""
    priority_class: str = ""
    owner: tuple[str, str, str] | None = None
    """(kind, name, uid) of the controller."""
    conditions: tuple[tuple[str, str, str, float], ...] = ()
    """(type, status, reason, last transition) of the pod's conditions."""
    deleting: bool = False
    deleted: float | None = None
    """When its deletion was asked for."""
    phase: str = ""
    """As the API has it: tells a pod that runs while it is being deleted from one that never started."""
    disruption_target: bool = False
    gpu_groups: tuple[str, ...] = ()
    """The shared GPUs that it uses, by the names that its binder gave them."""
    numa_placement: tuple[tuple[str, Requests], ...] = ()
    """What it holds in each NUMA zone of its node, where an annotation records it."""
    active_deadline: float | None = None
    """Seconds after its start at which the kubelet ends it; None: never."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def annotations_with(self, more: tuple[tuple[str, str], ...]) -> Labels:
        """Its annotations after a binding that brings these."""
        return {**self.annotations, **dict(more)} if more else self.annotations


class TopologyDemand(Spec, frozen=True):
    """A job or sub-group wants its tasks close together. `required`/`preferred` name a level of `topology` (KAI);
    `highest_tier`/`tier_name` bound the tier of a HyperNode, `hard` says whether that may be exceeded (Volcano); all nodes have the
    same value of `label` (Kubernetes)."""

    topology: str = ""
    required: str = ""
    preferred: str = ""
    hard: bool = True
    highest_tier: int | None = None
    tier_name: str = ""
    label: str = ""

    @property
    def is_of_hyper_nodes(self) -> bool:
        return not self.topology and not self.label


class SubGroupSpec(Spec, frozen=True):
    """A part of a job with a minimum of its own. Named members (KAI) or members by selector and keys (Volcano)."""

    name: str
    min_member: int = 1
    parent: str = ""
    min_groups: int = 0
    min_sub_groups: int | None = None
    selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    topology: TopologyDemand | None = None


class Condition(Spec, frozen=True):
    type: str
    status: str
    reason: str
    message: str = ""
    transition_id: str = ""
    last_transition: float = 0.0
    node_pool: str = ""
    observed_generation: int = 0
    """The generation of the object that it tells of; 0: unknown."""


class JobSpec(Spec, frozen=True):
    """A gang: tasks that start together or not at all. `dialect` names the API its status is written back in."""

    key: str
    queue: str
    min_member: int = 1
    namespace: str = ""
    name: str = ""
    uid: str = ""
    dialect: str = "pod"
    api_version: str = ""
    roles: Requests = ()
    min_resources: Requests | None = None
    priority: int = 0
    priority_class: str = ""
    default_priority: int = 0
    """Its priority where its class is unknown and no class is the global default."""
    priority_of_tasks: bool = False
    """It has none of its own: that of its tasks counts, the highest."""
    preemptable: bool = False
    never_preempted: bool = False
    """True if the group itself forbids preemption of its pods."""
    preemptible_below: int | None = None
    """Whether it may be preempted is decided by its priority: below this it may. None: `preemptable` says it."""
    created: float = 0.0
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    counts: Mapping[str, int] = field(default_factory=nothing)
    reported: tuple[tuple[str, str], ...] = ()
    """Further fields of its object's status, as the API has them. Only the writer of that status reads them."""
    sub_groups: tuple[SubGroupSpec, ...] = ()
    min_sub_groups: int | None = None
    """How many of its top sub-groups it needs; None: all."""
    topology: TopologyDemand | None = None
    preemption_delay: float = 0.0
    """Seconds it must have waited, since it was made or last evicted, before it may evict others."""
    staleness_grace: float | None = None
    """Seconds it may run below its minimum; negative: for ever; None: as the policy says."""
    last_started: float | None = None
    last_evicted: float | None = None
    stale_since: float | None = None
    mark_unschedulable: bool = True
    expected_duration: float | None = None
    """Seconds that it runs once it has started, as its owner says."""
    attained_service: float = 0.0
    """GPU seconds that it had before its present run, as far as anyone kept count."""
    tried_once: bool = False
    """Not considered again once it was found unschedulable, until it is moved to another pool of nodes."""
    labels: Labels = field(default_factory=nothing)
    annotations: Labels = field(default_factory=nothing)
    shadow: bool = False
    """Made in memory for pods without a group; never written to the API server."""
    owner: tuple[str, str, str] | None = None
    composite: str = ""
    """The group of groups that it belongs to, by name in its namespace; empty: none."""
    disrupted_together: bool = False
    """Its pods may only be preempted all together."""
    preemption_policy: str = ""
    """`Never`: nothing is evicted for it. Empty: its pods say so."""
    generation: int = 0
    """Of the object, as the API counts changes of its spec."""


class QueueShare(Spec, frozen=True):
    """One resource of a queue with quota (what it is owed), limit and weight over quota; -1 means unlimited. Millicores of
    "cpu", bytes of "memory", whole devices of "gpu"."""

    quota: float = 0.0
    limit: float = -1.0
    over_quota_weight: float = 1.0


class QueueSpec(Spec, frozen=True):
    name: str
    uid: str = ""
    dialect: str = "implied"
    api_version: str = ""
    parent: str = ""
    weight: int = 1
    priority: int = 0
    capability: Requests | None = None
    deserved: Requests | None = None
    guarantee: Requests | None = None
    reclaimable: bool = True
    state: str = ""
    created: float = 0.0
    shares: Mapping[str, QueueShare] = field(default_factory=nothing)
    node_groups: Mapping[str, tuple[str, ...]] | None = None
    """affinity.required, affinity.preferred, anti.required, anti.preferred -> node group names; None: no affinity."""
    preempt_min_runtime: float | None = None
    reclaim_min_runtime: float | None = None
    labels: Labels = field(default_factory=nothing)
    annotations: Labels = field(default_factory=nothing)
    display_name: str = ""
    """The name for people; empty: none."""


class NodeSpec(Spec, frozen=True):
    name: str
    uid: str = ""
    allocatable: Requests = ()
    capacity: Requests = ()
    labels: Labels = field(default_factory=nothing)
    annotations: Labels = field(default_factory=nothing)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    conditions: tuple[tuple[str, str], ...] = ()
    images: tuple[tuple[tuple[str, ...], int], ...] = ()
    """(names, bytes) of the images that the node holds."""
    declared_features: tuple[str, ...] = ()
    created: float = 0.0


class PriorityClassSpec(Spec, frozen=True):
    name: str
    value: int
    global_default: bool = False
    preemption_policy: str = ""


class DisruptionBudgetSpec(Spec, frozen=True):
    namespace: str
    name: str
    selector: LabelSelector | None
    allowed: int
    disrupted_pods: frozenset[str] = frozenset()
    min_available: int | None = None
    owner: tuple[str, str, str] | None = None


class QuotaSpec(Spec, frozen=True):
    namespace: str
    name: str
    hard: Requests = ()
    used: Requests = ()


class NamespaceSpec(Spec, frozen=True):
    name: str
    labels: Labels = field(default_factory=nothing)
    annotations: Labels = field(default_factory=nothing)


class ObjectSpec(Spec, frozen=True):
    """An object that only some plugins read: `value` is found under `kind` in a snapshot's objects."""

    kind: str
    namespace: str
    name: str
    value: object
