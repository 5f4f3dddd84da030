"""What the owner of pods says of the group that they form, in whatever kind it is written.

A training operator's job, a Ray cluster or a set of Jobs knows how many pods make sense together; its pods do not. The reader of
each kind (`workload_objects`) reduces it to this, `Owners` keeps them, and the group in memory is made from both.
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
    """`min_member`, `sub_groups` and `min_sub_groups` mean what they mean in a job; None: nothing is said of a minimum."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    created: float = 0.0
    labels: Labels = field(default_factory=nothing)
    annotations: Labels = field(default_factory=nothing)
    owner: tuple[str, str] | None = None
    """Kind and name of what owns it in turn."""
    min_member: int | None = None
    sub_groups: tuple[SubGroupSpec, ...] = ()
    min_sub_groups: int | None = None
    early: tuple[str, int] | None = None
    """A role whose pods come first, and how many of them are needed: until a pod of another role is there, only they count."""
    priority_class: str = ""
    topology: TopologyDemand | None = None

    @property
    def key(self) -> WorkloadKey:
        return self.namespace, self.kind, self.name


class PodMaker(Struct, frozen=True):
    """What makes pods once the group that it made is admitted, and the schedulers that they will name."""

    namespace: str
    name: str
    schedulers: frozenset[str]


def topology_in(annotations: Mapping[str, str]) -> TopologyDemand | None:
    """
    >>> topology_in({"kai.scheduler/topology": "racks", "kai.scheduler/topology-required-placement": "rack"}).required
    'rack'
    """
    return demand(annotations.get(TOPOLOGY), annotations.get(REQUIRED_PLACEMENT), annotations.get(PREFERRED_PLACEMENT))


def demand(topology: str | None, required: str | None, preferred: str | None) -> TopologyDemand | None:
    """Nothing without a topology, and nothing without a level of it."""
    if not topology or not (required or preferred):
        return None
    return TopologyDemand(topology, required or "", preferred or "", hard=bool(required))


def number(text: str | None) -> int:
    """A count as annotations carry it; 0 for whatever is none."""
    return int(text) if text and len(text) < 10 and text.isascii() and text.isdecimal() else 0
