"""What an explanation says, as plain values. `to_dict` is the documented form (docs/explain.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

Object = dict[str, Any]
NOTHING_STARTS_IT = "anything that starts it"
"""What is not established where all was tried and nothing helped."""
HELD = ("Binding", "Bound", "Running")
"""Statuses of pods that hold a node and keep it."""


class _Part(Struct, rename="camel"):
    pass


class Cause(_Part):
    """The dominant cause. `only`: whether lifting it alone starts the job; None: not established."""

    code: str
    message: str
    figures: dict[str, int | float | str] = field(default_factory=dict)
    only: bool | None = None
    proof: str = ""
    """What was tried to establish `only`."""


class ClauseAnswer(_Part):
    """A clause of the job's own. `nodes`: how many nodes would take one of its pods without it."""

    clause: str
    nodes: int
    starts: bool


class NodesAnswer(_Part):
    total: int = 0
    feasible: int = 0
    """Nodes that would take one of its pods, if it were placed before other waiting pods."""
    reasons: dict[str, int] = field(default_factory=dict)
    """What nodes said of the pod that found no node in the cycle, after other pods were placed."""
    message: str = ""
    """The sentence that `reasons` are from."""
    clauses: list[ClauseAnswer] = field(default_factory=list)


class Ahead(_Part):
    """A job that is tried before this one. `because`: whose order decided, such as priority, share or age."""

    job: str
    queue: str
    pods: int
    requests: dict[str, str]
    priority: int
    because: str


class OrderAnswer(_Part):
    queue: str = ""
    place: int | None = None
    of: int = 0
    overall: int | None = None
    overall_of: int = 0
    ahead: list[Ahead] = field(default_factory=list)
    starts_alone: bool | None = None


class MayTake(_Part):
    """Whether the policy lets the job evict another. `until`: when a protection ends."""

    job: str
    allowed: bool
    reason: str = ""
    until: str | UnsetType = UNSET


class BlockersAnswer(_Part):
    jobs: list[str] = field(default_factory=list)
    minimal: bool = False
    may_take: list[MayTake] = field(default_factory=list)


class Price(_Part):
    """What a change costs others: jobs that are evicted for it, that start no longer, that start as well, that are ended."""

    evicts: list[str] = field(default_factory=list)
    delays: list[str] = field(default_factory=list)
    also_starts: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)


class Change(_Part):
    """A change that was tried. Apply `objects` and `remove` to the input and run as many cycles to see the same."""

    by: str
    kind: str
    text: str
    objects: list[Object]
    remove: list[str]
    starts: bool
    cycles: int
    price: Price = field(default_factory=Price)
    because: str = ""
    """Of one more node with which the job does not start: why not."""


class Deciding(_Part):
    """The rule whose relaxation alone starts the job (`limit`, `share`, `priority`, `node`, `end` of a job), and the change that did.
    `none`: no single one does."""

    rule: str
    text: str
    objects: list[Object] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    cycles: int = 0


class Eta(_Part):
    p05: str
    p50: str
    p90: str
    p95: str
    basis: str


class NodeScores(_Part):
    node: str
    total: float
    scores: dict[str, float]
    """By plugin or rule, weights included."""


class Placement(_Part):
    """Why a pod is where it is. `rank`: among the nodes that would take it, were it to be placed again now."""

    pod: str
    node: str
    feasible: int = 0
    rank: int | None = None
    scores: NodeScores | None = None
    runner_up: NodeScores | None = None
    note: str = ""


class EvictionAnswer(_Part):
    """A pod that the cycle evicts. `instead`: other jobs that hold nodes, and whether they could have gone."""

    pod: str
    node: str
    action: str
    gains: str
    reason: str
    message: str
    instead: list[MayTake] = field(default_factory=list)


class ShareStep(_Part):
    text: str
    amounts: dict[str, str]


class Loan(_Part):
    queue: str
    amounts: dict[str, str]


class WaitingJob(_Part):
    job: str
    pods: int
    code: str


class HeldPart(_Part):
    """Running pods of a queue that are equally safe from eviction: `within its share`, `in a lump` or `borrowed`."""

    standing: str
    pods: int
    jobs: list[str]


class QueueExplanation(_Part):
    """A queue's share and how it came about. `borrows`: what it holds beyond its due while other queues starve; `lends`: what others
    hold so while it starves."""

    queue: str
    state: str
    parent: str = ""
    share: float = 0.0
    deserved: dict[str, str] = field(default_factory=dict)
    allocated: dict[str, str] = field(default_factory=dict)
    request: dict[str, str] = field(default_factory=dict)
    steps: list[ShareStep] = field(default_factory=list)
    holds: list[HeldPart] = field(default_factory=list)
    """Empty where the policy has no action that asks the rule of docs/evictions.md."""
    borrows: list[Loan] = field(default_factory=list)
    lends: list[Loan] = field(default_factory=list)
    waiting: list[WaitingJob] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """As of an `Explanation`."""

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class WaitingShape(_Part):
    """Pods that wait and ask for the same. `refused`: what the node says; empty: it would take one."""

    jobs: list[str]
    pods: int
    requests: dict[str, str]
    refused: Sequence[str]


class NodeExplanation(_Part):
    """What is free on a node. `useless`: what is free there that no waiting pod can use."""

    node: str
    ready: bool
    unschedulable: bool
    taints: list[str]
    pods: int
    free: dict[str, str]
    useless: dict[str, str] = field(default_factory=dict)
    waiting: list[WaitingShape] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """As of an `Explanation`."""

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class Explanation(_Part):
    """Why a job stands as it does, and what would start it."""

    job: str
    state: str
    cause: Cause
    pods: dict[str, int] = field(default_factory=dict)
    """How many pods it has, by status. A job that runs and has pending pods grows: "starts" then means that one more of them does."""
    nodes: NodesAnswer = field(default_factory=NodesAnswer)
    order: OrderAnswer = field(default_factory=OrderAnswer)
    blockers: BlockersAnswer = field(default_factory=BlockersAnswer)
    changes: list[Change] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    evictions: list[EvictionAnswer] = field(default_factory=list)
    eta: Eta | None = None
    eta_reason: str = ""
    """Why there is no estimate."""
    trials: int = 0
    seconds: float = 0.0
    complete: bool = True
    not_established: list[str] = field(default_factory=list)
    """What was not established before trials or time ran out."""
    notes: list[str] = field(default_factory=list)
    sentence: str = ""
    """What the job needs and which rule does not give it that; empty: the cause says it."""
    deciding: Deciding | None = None
    """None: not established, or the job does not wait."""
    names: dict[str, str] = field(default_factory=dict)
    """Job of this explanation -> the workload that people created, where that has another name."""

    @property
    def grows(self) -> bool:
        return self.state == "running" and self.pods.get("Pending", 0) > 0

    @property
    def held(self) -> int:
        """Pods that hold a node."""
        return sum(self.pods.get(each, 0) for each in HELD)

    def known(self, job: str) -> str:
        """The name by which people know a job."""
        return self.names.get(job, job)

    def mentioned(self) -> set[str]:
        """All jobs that it names."""
        found = {self.job, *self.blockers.jobs}
        found.update(each.job for each in self.order.ahead)
        found.update(each.job for each in self.blockers.may_take)
        found.update(each.job for eviction in self.evictions for each in eviction.instead)
        for change in self.changes:
            found.update(change.price.evicts, change.price.delays, change.price.also_starts, change.price.ends)
        return found

    def __repr__(self) -> str:
        starting = sum(change.starts for change in self.changes)
        found = f"; {starting} change{'' if starting == 1 else 's'} would start it" if self.changes else ""
        return f"<Explanation: {self.job} {self.state}, {self.cause.code}{found}>"

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found
