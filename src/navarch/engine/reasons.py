"""Why something was refused: a code, the numbers, whom it concerns, and which event would undo it.

Every part of Navarch that says no returns a Reason. Events, conditions, the tables of `navarch plan` and the retry logic of the
live scheduler read the same value; nothing is explained afterwards by guessing.

    Reason("QuietHours", "queue night waits until 18:00 UTC", figures={"until": 18}, undone_by=(Event.TIME_PASSED,))
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
    """One word in CamelCase: what programs look for."""
    message: str
    """A sentence with the numbers in it: what users read."""
    nodes: Mapping[str, int] = field(default_factory=_nothing)
    figures: Mapping[str, int | float | str] = field(default_factory=lambda: MappingProxyType({}))
    undone_by: tuple[Event, ...] = ()
    """The live scheduler tries the job again when one of these happens, and by its back-off (ten seconds at most, for gangs longer)
    in any case."""
