"""CPUs of one node, slowly: sets of numbers, every set of zones, one container after the other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class Cpu:
    number: int
    zone: int
    socket: int
    core: int


@dataclass(frozen=True)
class Machine:
    cpus: tuple[Cpu, ...]
    policy: str
    reserved: int

    def core_of(self, cpu: Cpu) -> tuple[int, int]:
        return cpu.socket, cpu.core

    def in_zones(self, zones: set[int]) -> set[int]:
        return {cpu.number for cpu in self.cpus if cpu.zone in zones}

    def kept(self) -> set[int]:
        """The CPUs that the kubelet keeps for itself."""
        return self.take({cpu.number for cpu in self.cpus}, self.reserved) or set()

    def give(self, free: set[int], counts: list[int]) -> set[int] | int:
        """The CPUs of all containers, or the number of the container that is refused."""
        left, given = free - self.kept(), set[int]()
        for number, count in enumerate(counts):
            if count > len(left):
                return number
            zones = self.hint(left, count)
            if zones is None:
                return number
            got = self._near(left, zones, count)
            left, given = left - got, given | got
        return given

    def hint(self, free: set[int], count: int) -> set[int] | None:
        """The zones that the container wants; None: not admitted; empty: it has no wish."""
        every = {cpu.zone for cpu in self.cpus}
        if self.policy == "none":
            return set()
        if not count:
            return every
        sets = [set(zones) for size in range(1, len(every) + 1) for zones in combinations(sorted(every), size)]
        least = min((len(zones) for zones in sets if len(self.in_zones(zones)) >= count), default=len(every))
        hints = [zones for zones in sets if len(self.in_zones(zones) & free) >= count]
        hints.sort(key=lambda zones: (len(zones) != least, len(zones), sum(1 << zone for zone in zones)))
        preferred = bool(hints) and len(hints[0]) == least
        if self.policy == "best-effort":
            return hints[0] if hints else every
        if not preferred or (self.policy == "single-numa-node" and least > 1):
            return None
        return hints[0]

    def _near(self, free: set[int], zones: set[int], count: int) -> set[int]:
        near = self.in_zones(zones) & free
        got = self.take(near, min(count, len(near))) if zones else set()
        if got is None:
            return set()
        rest = self.take(free - got, count - len(got))
        return set() if rest is None else got | rest

    def take(self, free: set[int], count: int) -> set[int] | None:
        """Whole sockets, whole cores, single CPUs."""
        if count < 1:
            return set()
        if count > len(free):
            return None
        taken: set[int] = set()
        sockets = sorted({cpu.socket for cpu in self.cpus})
        a_socket = len(self.cpus) // len(sockets)
        a_core = len(self.cpus) // len({(cpu.socket, cpu.core) for cpu in self.cpus})
        if count >= a_socket:
            for socket in sockets:
                own = {cpu.number for cpu in self.cpus if cpu.socket == socket}
                if not own <= free:
                    continue
                taken |= own & free
                if len(taken) >= count:
                    return taken
                if count - len(taken) < a_socket:
                    break
        if count - len(taken) >= a_core:
            for core in self._whole_cores(free - taken):
                taken |= self._of_core(core) & free
                if len(taken) >= count:
                    return taken
                if count - len(taken) < a_core:
                    break
        for number in self._singles(free - taken, taken):
            taken.add(number)
            if len(taken) >= count:
                return taken
        return None

    def _of_core(self, core: tuple[int, int]) -> set[int]:
        return {cpu.number for cpu in self.cpus if self.core_of(cpu) == core}

    def _whole_cores(self, free: set[int]) -> list[tuple[int, int]]:
        by_socket = []
        for socket in sorted({cpu.socket for cpu in self.cpus}):
            here = sorted({self.core_of(cpu) for cpu in self.cpus if cpu.socket == socket and cpu.number in free})
            whole = [core for core in here if self._of_core(core) <= free]
            by_socket.append((len(whole), socket, whole))
        return [core for _, _, cores in sorted(by_socket, key=lambda each: each[:2]) for core in cores]

    def _singles(self, free: set[int], taken: set[int]) -> list[int]:
        order = sorted({self.core_of(cpu) for cpu in self.cpus if cpu.number in free})

        def marks(core: tuple[int, int]) -> tuple[int, int, int, int, int]:
            first = min((cpu for cpu in self.cpus if self.core_of(cpu) == core), key=lambda cpu: cpu.number)
            here = {cpu.number for cpu in self.cpus if cpu.socket == first.socket}
            return -len(here & taken), len(here & free), len(self._of_core(core) & free), first.socket, order.index(core)

        return [number for core in sorted(order, key=marks) for number in sorted(self._of_core(core) & free)]
