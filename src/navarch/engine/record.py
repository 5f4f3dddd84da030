"""The record of one cycle: its decisions and the reasons.

A record is plain data in a total order, so two runs over the same input compare equal byte for byte, apart from the timings.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from navarch.engine.points.conversation import Exchange, Notice, Question
from navarch.engine.reasons import Reason
from navarch.model.objects.devices import AllocatedDevice
from navarch.model.spec import Condition, Requests


class Bind(msgspec.Struct, frozen=True):
    """A Struct because a large cycle makes tens of thousands of them."""

    pod: str
    node: str
    uid: str
    job: str = ""
    gpu_groups: tuple[str, ...] = ()
    numa_zones: tuple[int, ...] = ()
    cpus: str | None = None
    """The CPU ids that the pod would get, as a list of ranges. None: no plugin predicts them."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Annotations that the pod gets together with its binding, by name: what a device plugin on the node reads."""
    numa_placement: tuple[tuple[str, Requests], ...] = ()
    """What the pod takes of each NUMA zone, by the zone's name. Only where a plugin predicts it."""


class Eviction(msgspec.Struct, frozen=True):
    """`for_` is the key of the job that gets the resources, `reason` a word for events ("preempt"), `message` the sentence."""

    pod: str
    node: str
    uid: str
    job: str
    action: str
    for_: str
    reason: str
    message: str = ""
    together: int = 1
    """How many pods are evicted for the same purpose at once, this one included."""


class Nomination(msgspec.Struct, frozen=True):
    """A pending pod, or a pod that is being moved, is promised this node once the resources it waits for are released."""

    pod: str
    node: str
    uid: str
    job: str = ""
    evicting: bool = False
    """Something was evicted for it, so the promise is written to the pod's status."""
    gpu_groups: tuple[str, ...] = ()
    numa_zones: tuple[int, ...] = ()


class ClaimAllocation(msgspec.Struct, frozen=True):
    """Devices for a ResourceClaim (`claim` is namespace/name) that a pod which is bound in this cycle waits for."""

    claim: str
    uid: str
    node: str
    devices: tuple[AllocatedDevice, ...]
    extended: tuple[tuple[str, str, str, int], ...] = ()
    """(resource, request, device class, count) of a claim that is yet to be made, for the pod's extended resources."""


class ClaimRelease(msgspec.Struct, frozen=True):
    """A ResourceClaim (`claim` is namespace/name) that loses its devices: no other pod uses it, and the pod `uid` fits on no node that
    reaches them."""

    claim: str
    uid: str


class TaskRefusal(msgspec.Struct, frozen=True):
    """The text for a pending pod's PodScheduled condition and FailedScheduling event. A Struct for the same reason as `Bind`."""

    pod: str
    uid: str
    reason: str
    """What autoscalers act on (see `pod_conditions`)."""
    message: str
    had_room: bool = False
    """A node was found for it, and given back because its gang did not start."""


class JobDecision(msgspec.Struct, frozen=True):
    job: str
    queue: str
    phase: str
    min_member: int
    pods: Mapping[str, int]
    conditions: tuple[Condition, ...] = ()
    reasons: tuple[Reason, ...] = ()
    refusals: tuple[TaskRefusal, ...] = ()
    shadow: bool = False
    dialect: str = "pod"
    changed: bool = True
    """Phase, conditions or counts differ from what the API object carries."""
    last_started: float | None = None
    """When it started, last lost a pod by eviction, and fell below its minimum. None: never, or unknown."""
    last_evicted: float | None = None
    stale_since: float | None = None


class JobFailure(msgspec.Struct, frozen=True):
    """A job that was set aside because something raised while it worked on it. `where` names the plugin or module."""

    job: str
    where: str
    error: str
    traceback: str = ""
    took_too_long: bool = False
    """It did not raise: the watchdog ended the cycle, or the process was ended."""


class NodeFailure(msgspec.Struct, frozen=True):
    """A node that was left out because something raised while it read the node. `where` names the plugin or module."""

    node: str
    where: str
    error: str
    traceback: str = ""


class PluginFailure(msgspec.Struct, frozen=True):
    """A plugin that failed without a job or node at hand, or on too many jobs: where it fails, it refuses. `where` names it, its file
    and line."""

    plugin: str
    where: str
    error: str
    traceback: str = ""


class QueueFigures(msgspec.Struct, frozen=True):
    """Amounts by resource name in the model's units (`resources.unit_of`)."""

    queue: str
    deserved: Mapping[str, float]
    allocated: Mapping[str, int]
    request: Mapping[str, int]
    share: float
    fair_share: Mapping[str, float] | None = None
    with_below: bool = False
    """The amounts include those of the queues below."""


class CycleRecord(msgspec.Struct):
    binds: list[Bind] = msgspec.field(default_factory=list)
    evictions: list[Eviction] = msgspec.field(default_factory=list)
    nominations: list[Nomination] = msgspec.field(default_factory=list)
    claims: list[ClaimAllocation] = msgspec.field(default_factory=list)
    releases: list[ClaimRelease] = msgspec.field(default_factory=list)
    jobs: list[JobDecision] = msgspec.field(default_factory=list)
    queues: list[QueueFigures] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)
    failures: list[JobFailure] = msgspec.field(default_factory=list)
    node_failures: list[NodeFailure] = msgspec.field(default_factory=list)
    plugin_failures: list[PluginFailure] = msgspec.field(default_factory=list)
    left_out_nodes: list[str] = msgspec.field(default_factory=list)
    """Nodes that took no part from the beginning: something failed on them in an earlier cycle. An input, here for replays."""
    set_aside: list[str] = msgspec.field(default_factory=list)
    """Jobs that took no part from the beginning: something failed on them in an earlier cycle. An input, here for replays."""
    failed_before: list[JobFailure] = msgspec.field(default_factory=list)
    """Those of `failures` that happened before this cycle, in a process that was ended. An input, here for replays."""
    tried: list[str] = msgspec.field(default_factory=list)
    """Keys of jobs in the order in which idle room was first looked for on their behalf."""
    last_runs: dict[str, float] = msgspec.field(default_factory=dict)
    """Rules that act once an interval and did so in this cycle -> the moment of the cycle (`model/objects/last_runs.py`)."""
    cut: bool = False
    """The steps were used up: jobs of this cycle that have no decision here are untried."""
    steps: int = 0
    """How many steps the cycle took."""
    steps_allowed: int | None = None
    """How many it might take; None: any number. An input, here for replays."""
    question: Question | None = None
    """What a server outside has to be asked before anything can be decided; nothing else is in the record then."""
    notices: list[Notice] = msgspec.field(default_factory=list)
    """What servers outside are told of the cycle, in order."""
    exchanges: list[Exchange] = msgspec.field(default_factory=list)
    """What servers outside answered. An input, here for replays."""
    timings: dict[str, float] = msgspec.field(default_factory=dict)
