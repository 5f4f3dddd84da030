"""What the owner of pods says about their group, in a form that is common to all kinds.

A training operator's job, a Ray cluster or a JobSet has the size of its gang in its spec; its pods do not. The reader of each kind
(`operators.readers`) makes a `WorkloadSpec`, `Owners` stores it, and shadow jobs are made from it and the pods.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from navarch.model.spec import Labels, SubGroupSpec, TopologyDemand, nothing

TOPOLOGY = "kai.scheduler/topology"
REQUIRED_PLACEMENT = "kai.scheduler/topology-required-placement"
PREFERRED_PLACEMENT = "kai.scheduler/topology-preferred-placement"
MIN_MEMBER = "kai.scheduler/batch-min-member"

WorkloadKey = tuple[str, str, str]
"""Namespace, kind and name."""


class WorkloadSpec(Struct, frozen=True):
    """`min_member`, `sub_groups` and `min_sub_groups` have their meanings in `JobSpec`; None: the owner sets no minimum."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    created: float = 0.0
    labels: Labels = field(default_factory=nothing)
    annotations: Labels = field(default_factory=nothing)
    owner: tuple[str, str] | None = None
    """Kind and name of its own owner."""
    min_member: int | None = None
    sub_groups: tuple[SubGroupSpec, ...] = ()
    min_sub_groups: int | None = None
    early: tuple[str, int] | None = None
    """A role whose pods are created first, and how many of them are needed. Until a pod of another role exists, only they count."""
    priority_class: str = ""
    topology: TopologyDemand | None = None
    schedulers: frozenset[str] = frozenset()
    """Scheduler names that its templates give. Empty: none is given, or its kind is not read that far."""

    @property
    def key(self) -> WorkloadKey:
        return self.namespace, self.kind, self.name


class PodMaker(Struct, frozen=True):
    """An object that creates pods after its group is admitted, and the scheduler names that these pods will have."""

    namespace: str
    name: str
    schedulers: frozenset[str]
    uid: str = ""
    created: float = 0.0
    taken_up: bool = True
    """Its controller has written its status."""


def topology_in(annotations: Mapping[str, str]) -> TopologyDemand | None:
    """
    >>> topology_in({"kai.scheduler/topology": "racks", "kai.scheduler/topology-required-placement": "rack"}).required
    'rack'
    """
    return demand(annotations.get(TOPOLOGY), annotations.get(REQUIRED_PLACEMENT), annotations.get(PREFERRED_PLACEMENT))


def demand(topology: str | None, required: str | None, preferred: str | None) -> TopologyDemand | None:
    """None unless a topology and one of its levels are named."""
    if not topology or not (required or preferred):
        return None
    return TopologyDemand(topology, required or "", preferred or "", hard=bool(required))


def number(text: str | None) -> int:
    """A count in an annotation; 0 if the text is not a number."""
    return int(text) if text and len(text) < 10 and text.isascii() and text.isdecimal() else 0
