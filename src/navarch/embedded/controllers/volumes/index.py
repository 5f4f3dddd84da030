"""Volumes by what is asked of them: those kept for a claim, and the free ones of a class, smallest first."""

from __future__ import annotations

from collections.abc import Iterator

from navarch.model.objects.storage import ClaimSpec, VolumeSpec
from navarch.model.selectors import node_selector_matches, selector_matches
from navarch.model.spec import Labels
from navarch.object_types import ObjectKey


class VolumeIndex:
    """What was last put; the caller looks at the store again before it acts on an answer."""

    def __init__(self) -> None:
        self._volumes: dict[str, VolumeSpec] = {}
        self._free: dict[str, dict[str, VolumeSpec]] = {}
        """By storage class."""
        self._kept: dict[ObjectKey, dict[str, None]] = {}
        """By claim."""

    def put(self, volume: VolumeSpec) -> None:
        self.drop(volume.name)
        self._volumes[volume.name] = volume
        if volume.claim is not None:
            self._kept.setdefault(volume.claim[:2], {})[volume.name] = None
        elif volume.phase == "Available" and not volume.deleting:
            self._free.setdefault(volume.storage_class, {})[volume.name] = volume

    def drop(self, name: str) -> VolumeSpec | None:
        """Forget a volume; what was known of it."""
        before = self._volumes.pop(name, None)
        if before is not None:
            self._free.get(before.storage_class, {}).pop(name, None)
            kept = self._kept.get(before.claim[:2], {}) if before.claim is not None else {}
            kept.pop(name, None)
            if before.claim is not None and not kept:
                self._kept.pop(before.claim[:2], None)
        return before

    def kept_for(self, claim: ObjectKey) -> list[str]:
        return sorted(self._kept.get(claim, ()))

    def free_for(self, claim: ClaimSpec, node: tuple[str, Labels] | None) -> Iterator[str]:
        """Free volumes that fit a claim, and that a node (name, labels) reaches if one is given."""
        found = [
            volume
            for volume in self._free.get(claim.storage_class, {}).values()
            if holds(volume, claim)
            and claim.access_modes <= volume.access_modes
            and (claim.selector is None or selector_matches(claim.selector, volume.labels))
            and (node is None or reaches(volume, *node))
        ]
        return (volume.name for volume in sorted(found, key=lambda each: (each.capacity, each.name)))


def holds(volume: VolumeSpec, claim: ClaimSpec) -> bool:
    """Whether a volume fits a claim, by any path that chose it."""
    return (
        volume.storage_class == claim.storage_class
        and volume.capacity >= (claim.requested or 0)
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.deleting
    )


def is_kept_for(volume: VolumeSpec, claim: ClaimSpec) -> bool:
    """A reference without a uid is a wish for whichever claim has the name."""
    return volume.claim is not None and volume.claim[:2] == claim.key and volume.claim[2] in ("", claim.uid)


def reaches(volume: VolumeSpec, node: str, labels: Labels) -> bool:
    return volume.node_affinity is None or node_selector_matches(volume.node_affinity, labels, node)
