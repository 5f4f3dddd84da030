"""What another policy decides differently for the same objects: which jobs start, which pods are evicted, which go elsewhere."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from navarch.explanation.trials import tally_of
from navarch.ingest.groups import shown_key
from navarch.offline.plan import Plan


class Move(Struct):
    pod: str
    before: str
    after: str


class PolicyDifference(Struct, rename="camel"):
    starts: list[str] = field(default_factory=list)
    """Jobs that hold their minimum at the end under the other policy only."""
    starts_no_longer: list[str] = field(default_factory=list)
    evicts: list[str] = field(default_factory=list)
    """Pods that only the other policy evicts."""
    evicts_no_longer: list[str] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    """Pods that both bind, to different nodes."""

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def policy_difference(before: Plan, after: Plan) -> PolicyDifference:
    """Of two plans for the same objects and as many cycles."""
    started = [{shown_key(job.job) for job in each.records[-1].jobs if tally_of(job).started} for each in (before, after)]
    evicted = [{eviction.pod for record in each.records for eviction in record.evictions} for each in (before, after)]
    bound = [{bind.pod: bind.node for record in each.records for bind in record.binds} for each in (before, after)]
    moved = sorted(pod for pod, node in bound[0].items() if bound[1].get(pod, node) != node)
    return PolicyDifference(
        starts=sorted(started[1] - started[0]),
        starts_no_longer=sorted(started[0] - started[1]),
        evicts=sorted(evicted[1] - evicted[0]),
        evicts_no_longer=sorted(evicted[0] - evicted[1]),
        moves=[Move(pod, bound[0][pod], bound[1][pod]) for pod in moved],
    )
