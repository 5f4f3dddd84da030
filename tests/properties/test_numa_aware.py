"""CPUs of containers on random machines, against a slow reference."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.numa import Cpu, Machine

from navarch.model.cpu_sets import cpu_numbers
from navarch.model.objects.numa import CpuSpec, CpuTopologySpec
from navarch.plugins.volcano.numa_aware.alignment import numa_node
from navarch.plugins.volcano.numa_aware.cpu_choice import CpuLayout


def drawn(draw: Random) -> Machine:
    """Up to twelve cores. Second threads follow after all first ones, or beside them; cores may be numbered by socket."""
    sockets, zones_each, threads = draw.choice((1, 2, 3)), draw.choice((1, 1, 2)), draw.choice((1, 2))
    cores = draw.choice([n for n in (1, 2, 4) if n * zones_each * sockets <= 12])
    total, beside, own_numbers = sockets * zones_each * cores, draw.random() < 0.4, draw.random() < 0.3
    found = []
    for core in range(total):
        zone, socket = core // cores, core // (cores * zones_each)
        named = core % (cores * zones_each) if own_numbers else core
        for thread in range(threads):
            number = core * threads + thread if beside else thread * total + core
            found.append(Cpu(number, zone, socket, named))
    policy = draw.choice(("none", "best-effort", "restricted", "single-numa-node"))
    return Machine(tuple(sorted(found, key=lambda cpu: cpu.number)), policy, draw.choice((0, 0, 1, 2)))


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_containers_get_the_cpus_of_the_reference(seed: int) -> None:
    draw = Random(seed)
    machine = drawn(draw)
    free = {cpu.number for cpu in machine.cpus if draw.random() < draw.choice((0.5, 0.9, 1.0))}
    counts = [draw.randint(0, max(1, len(machine.cpus) // 2)) for _ in range(draw.randint(1, 3))]
    cpus = tuple(sorted(CpuSpec(cpu.number, cpu.zone, cpu.socket, cpu.core) for cpu in machine.cpus))
    bits = sum(1 << number for number in free)
    spec = CpuTopologySpec("n", "static", machine.policy, cpus, bits, machine.reserved, frozenset())
    node = numa_node(spec, CpuLayout(cpus))
    answer = node.answer(bits, [(str(number), count) for number, count in enumerate(counts)])
    expected = machine.give(free, counts)
    if isinstance(expected, int):
        assert answer.refused == str(expected)
    else:
        assert (answer.refused, set(cpu_numbers(answer.cpus))) == ("", expected)
        assert answer.zones == len({cpu.zone for cpu in machine.cpus if cpu.number in expected})
