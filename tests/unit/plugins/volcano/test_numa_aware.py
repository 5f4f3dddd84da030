"""Numa-aware: hints of each policy, CPUs that containers get, what strict mode mends, and predictions of earlier cycles."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.worlds.plugin_session import World, job_of

from navarch.engine.session import Session
from navarch.model.cpu_sets import read_cpu_list, write_cpu_list
from navarch.model.objects.numa import CpuSpec, CpuTopologySpec
from navarch.model.spec import ObjectSpec
from navarch.model.status import TaskStatus
from navarch.plugins.volcano.numa_aware.alignment import NumaNode
from navarch.plugins.volcano.numa_aware.cpu_choice import CpuLayout
from navarch.plugins.volcano.numa_aware.plugin import POLICY, NumaAware


def cpus(zones: int, cores: int, threads: int = 1) -> tuple[CpuSpec, ...]:
    """Zones of so many cores, one socket a zone; second threads are numbered after all first ones."""
    total = zones * cores
    return tuple(CpuSpec(t * total + c, c // cores, c // cores, c) for t in range(threads) for c in range(total))


def topology(
    node: str, free: str, policy: str, layout: tuple[CpuSpec, ...], *, reserved: int = 0, assigned: tuple[str, ...] = ()
) -> ObjectSpec:
    spec = CpuTopologySpec(node, "static", policy, layout, read_cpu_list(free), reserved, frozenset(assigned))
    return ObjectSpec("Numatopology", "", node, spec)


def world(*topologies: ObjectSpec) -> World:
    made = World().queue("q").job("j")
    for each in topologies:
        made.node(each.name, cpu=64)
        made.cluster.put_object(each.kind, each.namespace, each.name, each.value)
    return made


def pod(made: World, count: int, policy: str = "", pods: int = 1) -> World:
    hints = ((POLICY, policy),) if policy else ()
    return made.pods("j", pods, exclusive_cpus=(("main", count),), qos="Guaranteed", hints=hints, cpu=count)


def place(session: Session, node: int = 0) -> str | None:
    """The CPUs of the job's next pod on a node; None if it is refused there."""
    job = job_of(session, "j")
    task = job.tasks_in(TaskStatus.PENDING)[0]
    if not session.view(session.class_of(task)).feasible()[node]:
        return None
    session.statement().allocate(job, [task], [node], session.class_of(task))
    return session.cpus.get(task)


@pytest.mark.parametrize(
    ("policy", "free", "count", "got"),
    [
        ("single-numa-node", "0-7", 3, "0-2"),
        ("single-numa-node", "0-2,4-7", 4, "4-7"),
        ("single-numa-node", "0-2,4-6", 4, None),
        ("single-numa-node", "0-7", 5, None),
        ("restricted", "0-7", 5, "0-4"),
        ("restricted", "0-2,4-6", 4, None),
        ("best-effort", "0-2,4-6", 4, "0-2,4"),
        ("none", "0-2,4-6", 4, "0-2,4"),
    ],
)
def test_each_policy_admits_its_hints(policy: str, free: str, count: int, got: str | None) -> None:
    made = pod(world(topology("n0", free, policy, cpus(2, 4))), count, policy if policy != "none" else "")
    assert place(made.session(NumaAware)) == (got if policy != "none" else None)


def test_too_few_free_cpus_under_best_effort() -> None:
    made = pod(world(topology("n0", "0-2", "best-effort", cpus(2, 4))), 4, "best-effort")
    assert place(made.session(NumaAware)) is None


def test_refusals_say_why() -> None:
    nodes = [
        topology("n0", "0-3", "restricted", cpus(1, 4)),
        topology("n1", "", "single-numa-node", cpus(1, 4)),
        topology("n2", "0", "single-numa-node", cpus(1, 4)),
    ]
    session = pod(world(*nodes).node("n3", cpu=64), 2, "single-numa-node").session(NumaAware)
    assert session.view(session.class_of(next(iter(job_of(session, "j").tasks)))).explain().nodes == {
        "cpu allocatable map is empty": 1,
        "node(s) have too few free CPUs for container main": 1,
        "numa info is empty": 1,
        "task topology policy[single-numa-node] is different with node[restricted]": 1,
    }


def test_nodes_where_a_pod_spans_fewer_zones_score_higher() -> None:
    made = pod(
        world(topology("n0", "0-3", "best-effort", cpus(2, 2)), topology("n1", "0-3", "best-effort", cpus(1, 4))), 4, "best-effort"
    )
    for weight, scores in ((1, [0.0, 50.0]), (3, [0.0, 150.0]), (0, [0.0, 0.0])):
        session = made.session(NumaAware, arguments={"weight": weight})
        view = session.view(session.class_of(next(iter(job_of(session, "j").tasks))))
        assert view.totals(view.feasible()).tolist() == scores


def test_pods_take_cpus_one_after_the_other_and_give_them_back() -> None:
    session = pod(world(topology("n0", "0-7", "single-numa-node", cpus(2, 4))), 3, "single-numa-node", pods=3).session(NumaAware)
    assert [place(session) for _ in range(3)] == ["0-2", "4-6", None]
    job = job_of(session, "j")
    statement = session.statement()
    statement.evict(next(iter(job.tasks)))
    assert place(session) == "0-2"


def test_predictions_count_until_the_node_has_reported_the_pods() -> None:
    made = pod(world(topology("n0", "0-3", "restricted", cpus(1, 4))), 2, "restricted", pods=2)
    session = made.session(NumaAware)
    job = job_of(session, "j")
    first = next(iter(job.tasks))
    statement = session.statement()
    statement.allocate(job, [first], [0], session.class_of(first))
    statement.commit()
    session.plugins[0].close()
    spec = session.task(first)
    made.cluster.put_task(replace(spec, node="n0", status=TaskStatus.RUNNING))
    assert place(made.session(NumaAware)) == "2-3"
    made.cluster.put_object("Numatopology", "", "n0", topology("n0", "0-1", "restricted", cpus(1, 4), assigned=(spec.uid,)).value)
    assert place(made.session(NumaAware)) == "0-1"


def test_cores_that_are_free_in_part_are_taken_after_whole_ones() -> None:
    """CPU 0 is taken and its second thread, 8, is free."""
    found = CpuLayout(cpus(2, 4, threads=2)).take(read_cpu_list("1,8-9"), 2)
    assert found is not None and write_cpu_list(found) == "1,9"


def test_cores_of_two_sockets_with_one_number_are_two_cores() -> None:
    layout = tuple(CpuSpec(n, n // 2, n // 2, n % 2) for n in range(4))
    assert CpuLayout(layout).take(0b1111, 1) == 0b0001


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=5),
    st.integers(1, 12),
    st.sampled_from(("best-effort", "restricted", "single-numa-node")),
)
def test_the_best_hint_is_the_narrowest_and_lowest(free: list[int], count: int, policy: str) -> None:
    """Against all sets of zones, one by one."""
    layout = CpuLayout(cpus(len(free), 4))
    bits = sum(((1 << n) - 1) << 4 * zone for zone, n in enumerate(free))
    every = [set(c) for size in range(1, len(free) + 1) for c in combinations(range(len(free)), size)]
    least = min((len(zones) for zones in every if 4 * len(zones) >= count), default=len(free))
    hints = [zones for zones in every if sum(free[z] for z in zones) >= count]
    hints.sort(key=lambda zones: (len(zones) != least, len(zones), sum(1 << zone for zone in zones)))
    best = hints[0] if hints else None
    preferred = best is not None and len(best) == least
    one_zone = preferred and best is not None and len(best) == 1
    admitted = {"best-effort": best is not None, "restricted": preferred, "single-numa-node": one_zone}[policy]
    answer = NumaNode(layout, policy, 0).answer(bits, (("c", count),))
    assert (answer.refused == "") == admitted
    if admitted and best is not None:
        assert answer.cpus.bit_count() == count and answer.cpus & ~bits == 0
        assert answer.zones == len(best)
        assert all(layout.zones[zone] & answer.cpus for zone in best)
