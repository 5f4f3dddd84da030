"""Whether a kubelet would admit a pod's containers under its topology policy, and the CPUs that they would get.

Each container wants the fewest NUMA zones whose CPUs could hold it. Among zones with enough free CPUs the narrowest set with the
lowest numbers is the best hint. It is preferred if no set of fewer zones could hold the container on an empty node. `restricted`
admits preferred hints, `single-numa-node` preferred hints of one zone, the other policies every hint.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from navarch.model.objects.numa import CpuTopologySpec
from navarch.plugins.numa_policies import BEST_EFFORT, RESTRICTED, SINGLE, fewest_zones
from navarch.plugins.volcano.numa_aware.cpu_choice import CpuLayout

Containers = Sequence[tuple[str, int]]
"""Name of each container, and the CPUs that it gets alone."""


class Answer(Struct, frozen=True):
    """`refused`: the container that is not admitted, empty if all are. `lacks`: it is refused because too few CPUs are free."""

    refused: str = ""
    lacks: bool = False
    cpus: int = 0
    zones: int = 0


class NumaNode(Struct, frozen=True):
    """Nodes of one kind: layout, policy and what the kubelet keeps."""

    layout: CpuLayout
    policy: str
    reserved: int
    """Bits of the CPUs that no container gets."""

    def answer(self, free: int | None, containers: Containers) -> Answer:
        """`free`: bits of the CPUs that are free; None: not reported. A container that would not get all of its CPUs is refused under
        every policy."""
        taken, left = 0, (free or 0) & ~self.reserved & self.layout.every
        for name, count in containers:
            if free is not None and count > left.bit_count():
                return Answer(name, lacks=True)
            zones = self._hint(None if free is None else left, count)
            if zones is None:
                return Answer(name)
            got = self._cpus(left, zones, count)
            taken |= got
            left &= ~got
        return Answer(cpus=taken, zones=sum(1 for bits in self.layout.zones.values() if bits & taken))

    def _hint(self, free: int | None, count: int) -> list[int] | None:
        """The zones of the best hint; None if the policy does not admit it. All zones: the container has no wish."""
        zones = list(self.layout.zones)
        if self.policy not in (BEST_EFFORT, RESTRICTED, SINGLE):
            return []
        if free is None or not count:
            return zones
        least = fewest_zones(count, (bits.bit_count() for bits in self.layout.zones.values())) or len(zones)
        for width in range(least, len(zones) + 1):
            found = self._lowest(free, count, width)
            if found is not None:
                preferred = width == least
                if self.policy == BEST_EFFORT or (preferred and (self.policy == RESTRICTED or width == 1)):
                    return found
                return None
        return zones if self.policy == BEST_EFFORT else None

    def _lowest(self, free: int, count: int, width: int) -> list[int] | None:
        """So many zones with enough free CPUs: the lowest set as the kubelet compares sets, where the highest zone decides."""
        room = {zone: (bits & free).bit_count() for zone, bits in self.layout.zones.items()}
        open_to, kept = sorted(room), list[int]()
        if not _enough(room, open_to, kept, count, width):
            return None
        for zone in sorted(room, reverse=True):
            without = [each for each in open_to if each != zone]
            if _enough(room, without, kept, count, width):
                open_to = without
            else:
                kept.append(zone)
                open_to = without
        return sorted(kept)

    def _cpus(self, free: int, zones: list[int], count: int) -> int:
        """The CPUs for a container: first in its zones, then anywhere. None at all if its CPUs cannot be put together."""
        got = 0
        if zones:
            near = 0
            for zone in zones:
                near |= self.layout.zones[zone] & free
            found = self.layout.take(near, min(count, near.bit_count()))
            if found is None:
                return 0
            got = found
        rest = self.layout.take(free & ~got, count - got.bit_count())
        return 0 if rest is None else got | rest


def _enough(room: dict[int, int], open_to: Sequence[int], kept: Sequence[int], count: int, width: int) -> bool:
    """Whether the kept zones and the best of the open ones, `width` together, have so many free CPUs."""
    more = width - len(kept)
    if more < 0 or more > len(open_to):
        return False
    best = sorted((room[zone] for zone in open_to), reverse=True)[:more]
    return sum(best) + sum(room[zone] for zone in kept) >= count


def numa_node(spec: CpuTopologySpec, layout: CpuLayout) -> NumaNode:
    return NumaNode(layout, spec.topology_manager, layout.take(layout.every, spec.reserved) or 0)
