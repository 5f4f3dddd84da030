"""What the live core tells the shell to do. The core decides these and carries out none of them (see `core`)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from navarch.engine.record import Eviction, JobDecision, Nomination, QueueFigures
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.model.spec import JobSpec, TaskSpec


class StartCycle(Struct, frozen=True):
    """Start a cycle soon. (`SchedulingQueue.next_retry` says when the next one is due without this.)"""


class BindPod(Struct, frozen=True):
    """Write the binding. The outcome comes back to `LiveCore.bind_succeeded`, `bind_failed` or `resolve_bind`."""

    bind: AssumedBind


class BindResult(StrEnum):
    BOUND = "ok"
    FAILED = "failed"
    DROPPED = "dropped"
    """The pod was deleted, or bound by another scheduler, before its binding was written."""


class EndBind(Struct, frozen=True):
    """The outcome of a bind is known: keep or undo what was prepared for it. `announce`: tell users that the pod is scheduled."""

    bind: AssumedBind
    result: BindResult
    announce: bool = False


class EvictPod(Struct, frozen=True):
    """Evict the pod. `task` is the pod as it was before."""

    eviction: Eviction
    task: TaskSpec


class AbandonEviction(Struct, frozen=True):
    """The pod does not leave although its eviction was accepted: say so on it, and choose it as a victim only after a while."""

    task: TaskSpec
    reason: str


class NominateNode(Struct, frozen=True):
    """Write `nominatedNodeName` on the pod."""

    nomination: Nomination
    task: TaskSpec


class AbandonPreparation(Struct, frozen=True):
    """Stop preparing volumes and devices for the pods of this job."""

    job: str
    reason: str


class MarkGang(Struct, frozen=True):
    """Write on the pod whether its gang was complete (see `gang_history`)."""

    task: TaskSpec
    complete: bool


class WriteGroupStatus(Struct, frozen=True):
    """The group's status may have changed. `decision`: what the last cycle decided about it, if it did."""

    job: str
    decision: JobDecision | None = None


class WriteRefusals(Struct, frozen=True):
    """Write on the pods of this job why they were not placed. `nominated`: uids of pods that got the promise of a node."""

    decision: JobDecision
    job: JobSpec
    nominated: frozenset[str]


class WriteRefusal(Struct, frozen=True):
    """Write on this pod why it is not bound. `at_once`: the next attempt would overwrite it."""

    task: TaskSpec
    reason: str
    message: str
    at_once: bool = False


class WriteQueueStatuses(Struct, frozen=True):
    figures: list[QueueFigures]


class ReleaseClaim(Struct, frozen=True):
    """Take the devices from a ResourceClaim that only this pod may use, and that holds it to nodes where it does not fit."""

    namespace: str
    name: str
    uid: str


class CheckVolumes(Struct, frozen=True):
    """A volume or a claim changed: preparations may have to look at it."""


Instruction = (
    StartCycle
    | BindPod
    | EndBind
    | EvictPod
    | AbandonEviction
    | NominateNode
    | AbandonPreparation
    | MarkGang
    | WriteGroupStatus
    | WriteRefusals
    | WriteRefusal
    | WriteQueueStatuses
    | CheckVolumes
    | ReleaseClaim
)
