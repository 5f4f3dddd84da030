"""Volumes for the claims of a pod, on every node at once: reach bound ones, match free ones, or have new ones made.

For each delayed claim a column says which volume it would get on each node: the smallest that fits and that no earlier claim
of the pod took there. What finds none is to be provisioned, where the class's topology and the driver's capacity allow it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from navarch.engine.figures import Rows
from navarch.model.objects import storage
from navarch.model.objects.storage import IN_TREE, ClaimSpec, StorageClassSpec, VolumeSpec
from navarch.model.objects.typed import of_kind
from navarch.model.resources import BoolArray
from navarch.model.selectors import node_selector_matches, selector_matches
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NodeSpec, NodeTerm, Requirement
from navarch.plugins.predicates.nodes.properties import NodeProperties, node_properties
from navarch.plugins.predicates.volumes.claims import csi_nodes, storage_classes, volumes
from navarch.plugins.predicates.volumes.zone import GA_LABEL

_BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
_GA_ZONE = GA_LABEL[_BETA_ZONE]
_TOPOLOGY_KEY = {
    "kubernetes.io/aws-ebs": "topology.ebs.csi.aws.com/zone",
    "kubernetes.io/gce-pd": "topology.gke.io/zone",
    "kubernetes.io/azure-disk": "topology.disk.csi.azure.com/zone",
    "kubernetes.io/cinder": "topology.cinder.csi.openstack.org/zone",
}
NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")


class PromisedVolumes(Struct):
    """What placements of this cycle promised: volumes kept for claims, and nodes chosen for claims."""

    claim_of: dict[str, tuple[str, str]] = field(default_factory=dict)
    node_of: dict[tuple[str, str], str] = field(default_factory=dict)
    version: int = 0


class VolumeMatches(Struct):
    """By node: what keeps the pod's claims from it, and for each delayed claim the volume it would get (-1: a new one)."""

    unreachable: BoolArray
    lost: BoolArray
    nothing: BoolArray
    no_space: BoolArray
    matched: list[tuple[ClaimSpec, list[VolumeSpec], Rows]]
    version: int = -1


class VolumeSearch:
    def __init__(self, snapshot: Snapshot, assumed: PromisedVolumes) -> None:
        self.snapshot = snapshot
        self.assumed = assumed
        self._reach: dict[tuple[NodeTerm, ...], BoolArray] = {}

    @property
    def columns(self) -> NodeProperties:
        return node_properties(self.snapshot)

    def find(self, bound: Sequence[ClaimSpec], delayed: Sequence[ClaimSpec]) -> VolumeMatches:
        size = len(self.columns)
        none = np.zeros(size, dtype=bool)
        found = VolumeMatches(none, none.copy(), none.copy(), none.copy(), [], self.assumed.version)
        self._check_bound(bound, found)
        self._check_delayed(delayed, found)
        return found

    # bound claims

    def _check_bound(self, claims: Sequence[ClaimSpec], found: VolumeMatches) -> None:
        """In order, and the first failure on a node is the one it tells."""
        open_ = np.ones(len(self.columns), dtype=bool)
        for claim in claims:
            volume = volumes(self.snapshot).get(("", claim.volume))
            if volume is None:
                found.lost |= open_
                return
            bad = open_ & ~self._reachable_through_csi(volume)
            found.unreachable |= bad
            open_ &= ~bad

    def reachable(self, terms: tuple[NodeTerm, ...] | None) -> BoolArray:
        if terms is None:
            return np.ones(len(self.columns), dtype=bool)
        known = self._reach.get(terms)
        if known is None:
            known = self._reach[terms] = self.columns.terms(terms, names=False)
        return known

    def _reachable_through_csi(self, volume: VolumeSpec) -> BoolArray:
        """On nodes whose in-tree plugin became a CSI driver, the volume's zone is looked for under the driver's label."""
        plain = self.reachable(volume.node_affinity)
        plugin = IN_TREE[volume.in_tree[0]][0] if volume.in_tree is not None else ""
        if plugin not in _TOPOLOGY_KEY:
            return plain
        names = [name for (_, name), csi in csi_nodes(self.snapshot).items() if plugin in csi.migrated]
        if not names:
            return plain
        moved = self.reachable(as_csi(volume, _TOPOLOGY_KEY[plugin]))
        return np.where(self.columns.named(names), moved, plain)

    # claims that wait for a node

    def _check_delayed(self, claims: Sequence[ClaimSpec], found: VolumeMatches) -> None:
        size = len(self.columns)
        to_make: list[tuple[ClaimSpec, BoolArray]] = []
        to_match = []
        stopped = np.zeros(size, dtype=bool)
        for claim in claims:
            selected = self.assumed.node_of.get(claim.key, claim.selected_node)
            if selected is None:
                to_match.append(claim)
            else:
                stopped |= ~self.columns.named((selected,))
                to_make.append((claim, np.ones(size, dtype=bool)))
        found.nothing |= stopped
        taken: list[tuple[list[VolumeSpec], Rows]] = []
        for claim in sorted(to_match, key=lambda each: each.requested or 0):
            candidates, chosen = self._match(claim, taken)
            taken.append((candidates, chosen))
            found.matched.append((claim, candidates, chosen))
            to_make.append((claim, chosen < 0))
        open_ = ~stopped
        for claim, where in to_make:
            impossible, full = self._provision(claim)
            here = open_ & where
            found.nothing |= here & impossible
            found.no_space |= here & full & ~impossible
            open_ &= ~(here & (impossible | full))

    def _match(self, claim: ClaimSpec, taken: Sequence[tuple[list[VolumeSpec], Rows]]) -> tuple[list[VolumeSpec], Rows]:
        """The free volumes that fit a claim, smallest first, and on each node which of them it gets."""
        size = len(self.columns)
        wanted = claim.requested or 0
        fitting: list[VolumeSpec] = []
        mine: list[VolumeSpec] = []
        for volume in self._of_class(claim.storage_class):
            owner = self.assumed.claim_of.get(volume.name)
            reference = (owner[0], owner[1], "") if owner is not None else volume.claim
            points_here = reference is not None and reference[:2] == claim.key and reference[2] in ("", claim.uid)
            if (
                (reference is not None and not points_here)
                or volume.capacity < wanted
                or volume.volume_mode != claim.volume_mode
                or volume.attributes_class != claim.attributes_class
                or volume.deleting
            ):
                continue
            if points_here:
                mine.append(volume)
            elif (
                volume.phase == "Available"
                and (claim.selector is None or selector_matches(claim.selector, volume.labels))
                and claim.access_modes <= volume.access_modes
            ):
                fitting.append(volume)
        candidates = mine + sorted(fitting, key=lambda v: (v.capacity, v.name))
        chosen: Rows = np.full(size, -1, dtype=np.intp)
        open_ = np.ones(size, dtype=bool)
        for number, volume in enumerate(candidates):
            free = open_ & ~_taken_at(volume, taken) if taken else open_
            reached = free & self.reachable(volume.node_affinity)
            chosen[reached] = number
            # A volume that is kept for this claim is taken or nothing is; any other is one of several.
            open_ = open_ & ~(free if number < len(mine) else reached)
            if not open_.any():
                break
        return candidates, chosen

    def _of_class(self, name: str) -> list[VolumeSpec]:
        """Volumes of a class by name."""
        return [volume for volume in volumes(self.snapshot).values() if volume.storage_class == name]

    def _provision(self, claim: ClaimSpec) -> tuple[BoolArray, BoolArray]:
        """Nodes where no volume can be made for the claim, and nodes where there is no space for it."""
        size = len(self.columns)
        found = storage_classes(self.snapshot).get(("", claim.storage_class))
        if found is None or found.provisioner in NO_PROVISIONER:
            return np.ones(size, dtype=bool), np.zeros(size, dtype=bool)
        return ~self._topology(found), ~self._capacity(claim, found)

    def _topology(self, found: StorageClassSpec) -> BoolArray:
        size = len(self.columns)
        if not found.topologies:
            return np.ones(size, dtype=bool)
        out = np.zeros(size, dtype=bool)
        for term in found.topologies:
            if term:
                here = np.ones(size, dtype=bool)
                for key, values in term:
                    here &= self.columns.label(key).equals(values)
                out |= here
        return out

    def _capacity(self, claim: ClaimSpec, found: StorageClassSpec) -> BoolArray:
        size = len(self.columns)
        drivers: Mapping[tuple[str, str], storage.CSIDriverSpec] = of_kind(self.snapshot, storage.CSI_DRIVER, storage.read_csi_driver)
        driver = drivers.get(("", found.provisioner))
        if claim.requested is None or driver is None or not driver.tracks_capacity:
            return np.ones(size, dtype=bool)
        out = np.zeros(size, dtype=bool)
        known = of_kind(self.snapshot, storage.CSI_CAPACITY, storage.read_capacity, namespaced=True)
        for capacity in known.values():
            if capacity.storage_class == found.name and capacity.largest is not None:
                if capacity.largest >= claim.requested:
                    out |= self.columns.selector(capacity.topology)
        return out


def _taken_at(volume: VolumeSpec, taken: Sequence[tuple[list[VolumeSpec], Rows]]) -> BoolArray:
    """Nodes on which an earlier claim of the pod would take the volume."""
    out: BoolArray = np.zeros(len(taken[0][1]), dtype=bool)
    for others, theirs in taken:
        for place, other in enumerate(others):
            if other is volume:
                out |= theirs == place
    return out


def as_csi(volume: VolumeSpec, key: str) -> tuple[NodeTerm, ...] | None:
    """The volume's node affinity with its zone under a CSI driver's label."""
    terms = volume.node_affinity or ()
    if any(r.key in (_GA_ZONE, _BETA_ZONE) for term in terms for r in term.expressions):
        return tuple(
            replace(term, expressions=tuple(_renamed(requirement, key) for requirement in term.expressions)) for term in terms
        )
    zone = volume.labels.get(_GA_ZONE, volume.labels.get(_BETA_ZONE))
    if zone is None:
        return volume.node_affinity
    demand = Requirement(key, "In", tuple(zone.split("__")))
    return tuple(replace(term, expressions=(*term.expressions, demand)) for term in terms or (NodeTerm(),))


def reaches(volume: VolumeSpec, node: NodeSpec, migrated: frozenset[str]) -> bool:
    """Whether one node can use a volume; `migrated`: its in-tree plugins that became CSI drivers (see `VolumeSearch`)."""
    plugin = IN_TREE[volume.in_tree[0]][0] if volume.in_tree is not None else ""
    moved = plugin in _TOPOLOGY_KEY and plugin in migrated
    terms = as_csi(volume, _TOPOLOGY_KEY[plugin]) if moved else volume.node_affinity
    return terms is None or node_selector_matches(terms, node.labels, "")


def _renamed(requirement: Requirement, key: str) -> Requirement:
    return replace(requirement, key=key) if requirement.key in (_GA_ZONE, _BETA_ZONE) else requirement


def chosen_at(found: VolumeMatches, node: int) -> list[tuple[ClaimSpec, VolumeSpec | None]]:
    """What each delayed claim without a node of its own gets on a node; None: a new volume."""
    out: list[tuple[ClaimSpec, VolumeSpec | None]] = []
    for claim, candidates, chosen in found.matched:
        number = int(chosen[node])
        out.append((claim, candidates[number] if number >= 0 else None))
    return out
