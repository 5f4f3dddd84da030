"""Reasons: why something was refused, as a code, the numbers, and the events that could undo the refusal.

Every refusal in Navarch is a Reason. Events, conditions, the tables of `navarch plan` and the retry logic of the live scheduler
read the same value.

    Reason("QuietHours", "queue night waits until 18:00 UTC", figures={"until": 18}, undone_by=(Event.TIME_PASSED,))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct, field


class Event(StrEnum):
    """Events in a cluster that may undo a refusal."""

    NODE_ADDED = "node added"
    NODE_CHANGED = "node changed"
    NODE_LOAD_CHANGED = "node load changed"
    POD_REMOVED = "pod removed"
    POD_CHANGED = "pod changed"
    JOB_CHANGED = "job changed"
    QUEUE_CHANGED = "queue changed"
    VOLUME_CHANGED = "volume changed"
    CLAIM_CHANGED = "claim changed"
    QUOTA_CHANGED = "quota changed"
    TIME_PASSED = "time passed"
    POLICY_CHANGED = "policy changed"


def _nothing() -> MappingProxyType[str, int]:
    return MappingProxyType({})


class Reason(Struct, frozen=True):
    """`nodes` is the histogram over nodes where the refusal was theirs: text -> how many nodes said it."""

    code: str
    """One word in CamelCase, for programs."""
    message: str
    """A sentence with the numbers, for users."""
    nodes: Mapping[str, int] = field(default_factory=_nothing)
    figures: Mapping[str, int | float | str] = field(default_factory=lambda: MappingProxyType({}))
    undone_by: tuple[Event, ...] = ()
    """The live scheduler tries the job again when one of these happens, and by its back-off (ten seconds at most, for gangs longer)
    in any case."""
    cause: str = ""
    """The code of what stands behind this reason, where its own code does not say it."""

    @property
    def origin(self) -> str:
        return self.cause or self.code


_RANKS: Mapping[str, int] = {
    **dict.fromkeys(
        (
            "PodGroupNotFound",
            "QueueNotFound",
            "QueueDoesNotExist",
            "QueueTreeInvalid",
            "QueueNotLeaf",
            "QueueClosed",
            "SchedulingGated",
            "NotEnoughTasks",
            "NotEnoughPodsOfTask",
            "NotReady",
            "PluginFailed",
            "NoNodeInShard",
        ),
        0,
    ),
    **dict.fromkeys(
        (
            "QueueLimit",
            "QueueQuotaInsufficient",
            "QueueDeviceQuota",
            "OverLimit",
            "NonPreemptibleOverQuota",
            "QuotaExceeded",
            "NotAdmitted",
        ),
        2,
    ),
    **dict.fromkeys(("QueueOverused", "QueueOverDeserved", "ClusterOverused"), 3),
    **dict.fromkeys(("OverFairShare", "VictimsProtected", "PreemptionDelay", "SearchCutShort", "Skipped"), 5),
}
"""Code -> how early a refusal stands in the way: the job cannot take part at all, (1) no node could ever take it, a bound, a share,
(4) room on nodes and all else, what stood against evicting others."""
_NO_NODE_EVER, _ROOM = 1, 4
NEVER = "NeverStarts"
"""The code of a job that does not start on the empty cluster either (`engine/never_starts.py`)."""


def dominant(reasons: Sequence[Reason]) -> Reason | None:
    """The reason to tell first: the one that has to go before any of the others matters. None where there is none.

    Conditions, events and `navarch explain` all tell this one."""
    return min(reasons, key=_rank, default=None)


def takes_no_part(reason: Reason | None) -> bool:
    """Whether the job could not take part in the cycle at all, whatever room and bounds there are."""
    return reason is not None and _rank(reason) < _NO_NODE_EVER


def not_admitted(reason: Reason) -> str:
    """Of a group without pods that this reason keeps out of its queue."""
    return f"it has no pods yet, because it is not admitted: {reason.message}"


def _rank(reason: Reason) -> int:
    if reason.code == NEVER or (reason.nodes and "nodes" in reason.figures):
        return _NO_NODE_EVER
    return _RANKS.get(reason.code, _ROOM)


_NEXT_STEPS: Mapping[str, str] = {
    "PodGroupNotFound": "create the PodGroup, or correct its name in the pods",
    **dict.fromkeys(("QueueNotFound", "QueueDoesNotExist"), "create the queue, or name one that exists (navarch queues)"),
    "QueueTreeInvalid": "an administrator has to correct the parents of the queue",
    "QueueNotLeaf": "name a queue that has no queues below it (navarch queues)",
    "QueueClosed": "name an open queue, or have this one opened",
    "QueueNotPermitted": "name a queue that admits this namespace or user",
    "SchedulingGated": "remove the scheduling gates of its pods",
    **dict.fromkeys(
        ("NotEnoughTasks", "NotEnoughPodsOfTask", "NotReady"),
        "look at the controller that creates its pods, or lower minMember",
    ),
    **dict.fromkeys(
        ("QueueLimit", "QueueQuotaInsufficient", "QueueDeviceQuota", "OverLimit"),
        "wait until jobs of its queue end, request less, or have the queue's limit raised",
    ),
    "NonPreemptibleOverQuota": "make it preemptible, or have the queue's quota raised",
    "QuotaExceeded": "wait until pods of its namespace end, or have the ResourceQuota raised",
    **dict.fromkeys(
        ("QueueOverused", "QueueOverDeserved", "OverFairShare"),
        "wait until jobs of its queue end, or use a queue with an unused share (navarch queues)",
    ),
    **dict.fromkeys(("ClusterOverused", "NotAdmitted"), "wait until running jobs end"),
    "VictimsProtected": "wait until running jobs end",
    "PreemptionDelay": "wait: it may take resources from others after the delay",
    "SearchCutShort": "wait: the search goes on in the next cycle",
    "InternalError": "tell an administrator: a rule of the scheduler failed on this job",
    "PluginFailed": "tell an administrator: a plugin of the scheduler fails",
    "NoNodeInShard": "tell an administrator: the shard of the scheduler has no nodes",
    NEVER: "request less, change its node selector, or add nodes",
    "NoHyperNode": "relax its network topology, or wait until a domain has room",
}
"""Code -> what helps, for users. The other codes are told by the events that undo them."""

RANKED_OR_HELPED: frozenset[str] = frozenset((*_RANKS, *_NEXT_STEPS))
"""Every code that these tables name."""


def comes_first(reasons: Sequence[Reason], never: Reason) -> tuple[Reason, ...]:
    """The reasons with `never` among them: after those for which the job cannot take part at all, before the others."""
    before = tuple(each for each in reasons if _rank(each) < _NO_NODE_EVER)
    return (*before, never, *(each for each in reasons if _rank(each) >= _NO_NODE_EVER))


_NEXT = " Next: "


def without_next_step(message: str) -> str:
    """
    >>> without_next_step(with_next_step("no room.", Reason("PreemptionDelay", "")))
    'no room'
    """
    refusal, told, _ = message.partition(_NEXT)
    return refusal.removesuffix(".") if told else message


def with_next_step(message: str, reason: Reason | None) -> str:
    """One line: the refusal, and what helps.

    >>> with_next_step("no node has a; did you mean b?", Reason(NEVER, ""))
    'no node has a; did you mean b? Next: request less, change its node selector, or add nodes'
    """
    step = "" if reason is None else next_step(reason)
    if not step:
        return message
    message = message.rstrip(".")
    return f"{message}{'' if message.endswith('?') else '.'}{_NEXT}{step}"


def next_step(reason: Reason) -> str:
    """What helps against the refusal, in a few words; empty where nothing is known."""
    known = _NEXT_STEPS.get(reason.code)
    if known is not None:
        return known
    if _rank(reason) == _NO_NODE_EVER:
        return "change its node selector, affinity or tolerations, or add such nodes"
    if Event.POD_REMOVED in reason.undone_by:
        return "wait until running jobs end, or request less"
    if Event.NODE_CHANGED in reason.undone_by or Event.NODE_ADDED in reason.undone_by:
        return "change its node selector, affinity or tolerations, or add such nodes"
    if Event.VOLUME_CHANGED in reason.undone_by:
        return "look at its volume claims (kubectl get pvc), or correct their names in the pods"
    if Event.CLAIM_CHANGED in reason.undone_by:
        return "look at its claims on devices (kubectl get resourceclaims), or correct their names in the pods"
    return "wait" if Event.TIME_PASSED in reason.undone_by else ""
