"""Network-topology-aware: which domains, which of them is best, and which node in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.worlds.plugin_session import World, job_of, place

from navarch.engine.points.protocols import Purpose
from navarch.engine.session import Session
from navarch.model.objects.topologies import HyperNodeSpec, MemberSpec
from navarch.model.spec import TopologyDemand
from navarch.plugins.gang import Gang
from navarch.plugins.volcano.network_topology_aware import NetworkTopologyAware

RACKS = {"a": ("a0", "a1"), "b": ("b0", "b1"), "c": ("c0", "c1")}
HALLS = {"east": ("a", "b"), "west": ("c",)}


def world() -> World:
    """Two nodes of 4 cpus in each of three racks, racks in two halls."""
    made = World().queue("q")
    for tier, table in ((1, RACKS), (2, HALLS)):
        for name, members in table.items():
            specs = tuple(MemberSpec(tier == 1, member) for member in members)
            made.cluster.put_object("HyperNode", "", name, HyperNodeSpec(name, tier, "", specs))
    for nodes in RACKS.values():
        for node in nodes:
            made.node(node, cpu=4, memory="8Gi")
    return made


def names(session: Session, lists: list[list[int]]) -> list[list[str]]:
    return [[session.domains.tree.names[domain] for domain in each] for each in lists]


def lists_for(session: Session, job: str, purpose: Purpose = Purpose.ALLOCATE) -> list[list[str]]:
    tree = session.domains.tree
    return names(session, session.gradient_for_job(job_of(session, job), tree.top, purpose))


def session_of(made: World, **given: Any) -> Session:
    return made.session(Gang, NetworkTopologyAware, **given)


def test_low_tiers_come_first_and_none_above_the_bound() -> None:
    made = world()
    for name, demand in (
        ("one", TopologyDemand(highest_tier=1)),
        ("two", TopologyDemand(highest_tier=2)),
        ("soft", TopologyDemand(hard=False)),
        ("free", None),
    ):
        made.job(name, topology=demand).pods(name, 1, cpu=1)
    session = session_of(made)
    racks, halls, top = ["a", "b", "c"], ["east", "west"], ["<cluster-top-hypernode>"]
    assert lists_for(session, "one") == [racks]
    assert lists_for(session, "two") == [racks, halls]
    assert lists_for(session, "soft") == [racks, halls, top]
    assert lists_for(session, "free") == [top]


def test_domains_that_cannot_hold_the_minimum_are_left_out() -> None:
    made = world().job("old").pods("old", 2, "a0", cpu=2)
    made.job("new", topology=TopologyDemand(highest_tier=2), min_resources={"cpu": 6}).pods("new", 1, cpu=1)
    session = session_of(made)
    assert lists_for(session, "new") == [["b", "c"], ["east", "west"]]
    assert lists_for(session, "new", Purpose.EVICT) == [["east", "west"], ["a", "b", "c"]]


def test_evictions_look_at_so_many_of_the_widest() -> None:
    made = world().job("new", topology=TopologyDemand(highest_tier=2)).pods("new", 1, cpu=1)
    session = session_of(made, arguments={"hypernode.gradient.evict.max-hypernodes": 3})
    assert lists_for(session, "new", Purpose.EVICT) == [["east", "west"], ["c"]]


def test_a_running_job_stays_below_the_highest_domain_its_bound_allows() -> None:
    made = world()
    for name, tier in (("near", 1), ("far", 2)):
        made.job(name, topology=TopologyDemand(highest_tier=tier)).pods(name, 1, "a0", cpu=1).pods(name, 1, cpu=1)
    made.job("split", topology=TopologyDemand(highest_tier=1)).pods("split", 1, "a0", cpu=1).pods("split", 1, "b0", cpu=1)
    session = session_of(made)
    assert lists_for(session, "near") == [["a"]]
    assert lists_for(session, "far") == [["a", "b"], ["east"]]
    assert lists_for(session, "split") == [], "it spreads further than it may already"


def test_the_domain_that_a_part_fills_most_is_best() -> None:
    made = world().job("old").pods("old", 1, "b0", cpu=2)
    made.job("new", topology=TopologyDemand(highest_tier=1)).pods("new", 2, cpu=2)
    session = session_of(made)
    part, tree = job_of(session, "new").sub_jobs[0], session.domains.tree
    scores = session.hyper_node_scores(part, [tree.names.index(name) for name in ("a", "b", "c")])
    assert scores == pytest.approx([100 * 4 / 8, 100 * 6 / 8, 100 * 4 / 8])
    full = session_of(made, arguments={"weight": 3, "hypernode.binpack.memory": 5})
    assert full.hyper_node_scores(part, [tree.names.index("b")]) == pytest.approx([3 * 100 * 6 / 8]), "memory is not asked for"


def test_among_equals_the_domain_that_holds_more_of_the_part() -> None:
    made = world().job("new", topology=TopologyDemand(highest_tier=2))
    made.pods("new", 1, "a0", cpu=1).pods("new", 1, "b0", cpu=1).pods("new", 1, "b1", cpu=1).pods("new", 9, cpu=1)
    session = session_of(made)
    part, tree = job_of(session, "new").sub_jobs[0], session.domains.tree
    scores = session.hyper_node_scores(part, [tree.names.index(name) for name in ("a", "b", "c")])
    assert scores == pytest.approx([100 * 1 / 12, 100 * 2 / 12, 0.0]), "twelve pods overflow any rack, so all start at 0"


def scores(session: Session, job: str) -> dict[str, float]:
    view = session.view(session.class_of(job_of(session, job).tasks[-1]))
    totals = view.totals(view.feasible())
    return dict(zip(session.nodes.names, np.round(totals, 6).tolist()))


def test_a_pod_is_drawn_to_what_was_placed_before() -> None:
    made = world().job("new", topology=TopologyDemand(highest_tier=2)).pods("new", 3, cpu=1)
    session = session_of(made)
    part = job_of(session, "new").sub_jobs[0]
    assert set(scores(session, "new").values()) == {0.0}, "nothing draws the first"
    session.domains.start_anchor(part)
    session.domains.move_anchor(part, [session.nodes.names.index("a0")])
    found = scores(session, "new")
    assert (found["a1"], found["b0"], found["c0"]) == (100.0, 50.0, 0.0), "tiers 1, 2 and 3 of lowest 1 and highest 3"
    place(session, "new", "a1")
    assert scores(session, "new")["a0"] == pytest.approx(100 * (1 + 1 / 3), abs=1e-5), "among the closest, where more of it is"


def test_other_pods_fill_hyper_nodes() -> None:
    made = world().job("old").pods("old", 1, "b0", cpu=4).job("new").pods("new", 1, cpu=2)
    session = session_of(made)
    total = 1 + 0.8 + 0.64
    top = 6 / 24
    assert scores(session, "new") == pytest.approx(
        {
            "a0": 100 * (2 / 8 + 0.8 * 6 / 16 + 0.64 * top) / total,
            "a1": 100 * (2 / 8 + 0.8 * 6 / 16 + 0.64 * top) / total,
            "b0": 100 * (6 / 8 + 0.8 * 6 / 16 + 0.64 * top) / total,
            "b1": 100 * (6 / 8 + 0.8 * 6 / 16 + 0.64 * top) / total,
            "c0": 100 * (2 / 8 + 0.8 * 2 / 8 + 0.64 * top) / total,
            "c1": 100 * (2 / 8 + 0.8 * 2 / 8 + 0.64 * top) / total,
        },
        abs=1e-5,
    )
    off = session_of(made, arguments={"hypernode.binpack.normal-pod.enable": False})
    assert set(scores(off, "new").values()) == {0.0}
    lowest = session_of(made, arguments={"hypernode.binpack.normal-pod.fading": 0.0})
    assert scores(lowest, "new")["b1"] == pytest.approx(100 * 6 / 8)


def test_undone_placements_leave_its_figures() -> None:
    made = world().job("new").pods("new", 2, cpu=2)
    session = session_of(made)
    plugin = next(p for p in session.plugins if isinstance(p, NetworkTopologyAware))
    before = plugin.used.copy()
    job = job_of(session, "new")
    statement = session.statement()
    statement.allocate(job, job.tasks, [0, 3], session.class_of(job.tasks[0]))
    assert (plugin.used != before).any()
    statement.discard()
    assert (plugin.used == before).all()
