"""Why something was refused: a code, the numbers, whom it concerns, and which event would undo it.

Every part of Navarch that says no returns a Reason. Events, conditions, metrics, `explain`, the tables of `navarch plan`
and the retry logic of the live scheduler read the same value; nothing is explained afterwards by guessing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct, field


class Event(StrEnum):
    """What can happen in a cluster that may turn a refusal into a placement."""

    NODE_ADDED = "node added"
    NODE_CHANGED = "node changed"
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
    message: str
    nodes: Mapping[str, int] = field(default_factory=_nothing)
    figures: Mapping[str, int | float | str] = field(default_factory=lambda: MappingProxyType({}))
    undone_by: tuple[Event, ...] = ()
