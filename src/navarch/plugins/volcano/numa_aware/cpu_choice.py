"""Which CPUs of a node a container gets: whole sockets, then whole cores, then single CPUs, as a kubelet takes them.

A set of CPUs is an integer, a bit for each number. A socket or core is free if all of its CPUs are.
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.model.cpu_sets import cpu_numbers
from navarch.model.objects.numa import CpuSpec


class CpuLayout:
    """Where the CPUs of a node are. Nodes of one kind share a layout."""

    def __init__(self, cpus: Sequence[CpuSpec]) -> None:
        self.cpus = tuple(cpus)
        self.every = _bits(cpus)
        self.zones = {zone: _bits([c for c in cpus if c.zone == zone]) for zone in sorted({c.zone for c in cpus})}
        self.sockets = {socket: _bits([c for c in cpus if c.socket == socket]) for socket in sorted({c.socket for c in cpus})}
        self.core_of: dict[int, int] = {}
        """CPU -> the number by which its core is known here."""
        known: dict[tuple[int, int], int] = {}
        for cpu in cpus:
            self.core_of[cpu.number] = known.setdefault((cpu.socket, cpu.core), len(known))
        self.cores: dict[int, int] = {}
        for cpu in cpus:
            core = self.core_of[cpu.number]
            self.cores[core] = self.cores.get(core, 0) | 1 << cpu.number
        self.socket_of = {cpu.number: cpu.socket for cpu in cpus}
        self.per_socket = len(cpus) // len(self.sockets) if cpus else 0
        self.per_core = len(cpus) // len({(c.socket, c.core) for c in cpus}) if cpus else 0

    def take(self, free: int, count: int) -> int | None:
        """So many of the free CPUs; None if there are too few."""
        free &= self.every
        if count < 1:
            return 0
        if count > free.bit_count():
            return None
        taken = 0
        if count >= self.per_socket:
            for socket in self._free_sockets(free):
                taken |= self.sockets[socket] & free & ~taken
                if taken.bit_count() >= count:
                    return taken
                if count - taken.bit_count() < self.per_socket:
                    break
        if count - taken.bit_count() >= self.per_core:
            for core in self._free_cores(free & ~taken):
                taken |= self.cores[core] & free & ~taken
                if taken.bit_count() >= count:
                    return taken
                if count - taken.bit_count() < self.per_core:
                    break
        for core in self._ordered_cores(free & ~taken, taken):
            for cpu in cpu_numbers(self.cores[core] & free & ~taken):
                taken |= 1 << cpu
                if taken.bit_count() >= count:
                    return taken
        return None

    def _free_sockets(self, free: int) -> list[int]:
        return [socket for socket, cpus in self.sockets.items() if cpus & free == cpus]

    def _free_cores(self, free: int) -> list[int]:
        """Cores of the socket with the fewest free cores first."""
        by_socket = []
        for socket, cpus in self.sockets.items():
            here = sorted({self.core_of[cpu] for cpu in cpu_numbers(cpus & free)})
            whole = [core for core in here if self.cores[core] & free == self.cores[core]]
            by_socket.append((len(whole), socket, whole))
        return [core for _, _, cores in sorted(by_socket) for core in cores]

    def _ordered_cores(self, free: int, taken: int) -> list[int]:
        """Cores with a free CPU in the order in which single CPUs are taken: beside what was taken, then where least is free."""
        cores = sorted({self.core_of[cpu] for cpu in cpu_numbers(free)})
        return sorted(cores, key=lambda core: self._marks(core, free, taken))

    def _marks(self, core: int, free: int, taken: int) -> tuple[int, ...]:
        """Smaller is better: CPUs taken on its socket (more first), free on its socket, free on the core, socket, core."""
        first = cpu_numbers(self.cores[core])[0]
        socket = self.socket_of[first]
        here = self.sockets[socket]
        return -(here & taken).bit_count(), (here & free).bit_count(), (self.cores[core] & free).bit_count(), socket, core


def _bits(cpus: Sequence[CpuSpec]) -> int:
    bits = 0
    for cpu in cpus:
        bits |= 1 << cpu.number
    return bits
