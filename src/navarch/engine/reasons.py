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


def dominant(reasons: Sequence[Reason]) -> Reason | None:
    """The reason to tell first: the one that has to go before any of the others matters. None where there is none.

    Conditions, events and `navarch explain` all tell this one."""
    return min(reasons, key=_rank, default=None)


def _rank(reason: Reason) -> int:
    if reason.nodes and "nodes" in reason.figures:
        return _NO_NODE_EVER
    return _RANKS.get(reason.code, _ROOM)
