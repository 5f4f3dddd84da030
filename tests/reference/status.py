"""What a plugin answers, and the sentence users read when every node said no."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

UNRESOLVABLE = "UnschedulableAndUnresolvable"


class Status(NamedTuple):
    code: str
    reasons: tuple[str, ...] = ()
    nodes: frozenset[str] | None = None
    """PreFilter only: the nodes that remain."""

    @property
    def ok(self) -> bool:
        return self.code == "Success"


SUCCESS = Status("Success")
SKIP = Status("Skip")
NOT_LOOKED_AT = Status(UNRESOLVABLE)


def unschedulable(*reasons: str) -> Status:
    return Status("Unschedulable", reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(UNRESOLVABLE, reasons)


def error(reason: str) -> Status:
    return Status("Error", (reason,))


def histogram(reasons: Iterable[str]) -> str:
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    # The finished texts are sorted, not the counts: "10 x" stands before "2 x".
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def fit_error(
    all_nodes: int,
    statuses: Mapping[str, Status],
    absent: Status = NOT_LOOKED_AT,
    pre_filter: str = "",
    post_filter: str = "",
) -> str:
    message = f"0/{all_nodes} nodes are available:"
    if pre_filter:
        message += f" {pre_filter}."
    else:
        reasons = [reason for status in statuses.values() for reason in status.reasons]
        reasons += [reason for reason in absent.reasons for _ in range(all_nodes - len(statuses))]
        if reasons:
            message += f" {histogram(reasons)}."
    if post_filter:
        message += f" {post_filter}"
    return message
