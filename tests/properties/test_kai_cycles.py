"""What must hold of every cycle over a tree of queues, whatever the cluster: gangs whole, limits kept, no eviction in vain."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.worlds.kai_cycles import KAI, NOW, SEEDS, STRICT, finished
from tests.worlds.random_kai_clusters import KaiWorld, kai_world

from navarch.actions.kai.queue_forest import QueueForest
from navarch.engine.cycle import decide
from navarch.engine.placement.shared_devices import ONE
from navarch.engine.policy import PRESETS, load
from navarch.engine.session import Session
from navarch.installed import installed
from navarch.model.status import ON_NODE, TaskStatus


def overfull(session: Session) -> list[str]:
    """Nodes and shared GPUs with more on them than they have once all that leaves has left and all that is promised has come.

    Counted from where every task stands, not from the session's figures: those may be wrong on purpose (`promise_hides_device`
    takes idle GPUs out of them each time a scenario is tried, so that they may say less than nothing is left)."""
    nodes, devices = session.nodes, session.devices
    assert devices is not None
    held = np.zeros_like(nodes.used)
    shares: Counter[tuple[int, str]] = Counter()
    there = (ON_NODE[session.status] & (session.status != TaskStatus.RELEASING)) | (session.status == TaskStatus.PIPELINED)
    for task in np.flatnonzero(session.snapshot.tasks.alive & there).tolist():
        node, kind = int(session.node[task]), session.class_of(task)
        held[:, node] += kind.request
        for group in devices.groups.get(task, ()):
            shares[node, group] += int(devices.amount(kind)[node])
    for node, _ in shares:
        held[devices.dim[node], node] += ONE
    names = session.snapshot.resource_names
    found = [f"{names[dim]} of {nodes.names[node]}" for dim, node in np.argwhere(held > nodes.allocatable).tolist()]
    return found + [f"{group} of {nodes.names[node]}" for (node, group), n in shares.items() if n > devices.memory[node]]


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sampled_from(("strict", "kai")))
@example(8462, "kai")  # promises are evicted and given back: a GPU is hidden twice on a node that has none left
@example(120142, "kai")  # a gang is evicted, and is the next that may evict
@example(700052, "kai")  # a gang lost its minimum in reclaim; preempt moves the one that it had to spare
def test_gangs_are_whole_and_nodes_hold_what_they_have(seed: int, compat: str) -> None:
    session = finished(kai_world(seed), STRICT if compat == "strict" else KAI)
    nodes, devices = session.nodes, session.devices
    assert devices is not None
    assert overfull(session) == [], "more is promised than there will be"
    exact = np.ones(len(nodes.used), dtype=bool)
    if compat == "strict":  # elsewhere a withdrawn promise stands on its node as if it had run there
        assert (nodes.used <= nodes.allocatable).all(), "more is given than there is"
    else:
        exact[devices.dims] = False
    assert (nodes.future_idle[exact] >= 0).all(), "figures say that more is promised than there will be"
    for job in session.all_jobs():
        placed = [task for task in job.tasks if session.status[task] in (TaskStatus.BINDING, TaskStatus.PIPELINED)]
        if placed and len(job.tree.active) < job.spec.min_member:  # only what an eviction left of a gang may be moved on its own
            evicted = any(session.status[task] == TaskStatus.RELEASING for task in job.tasks)
            ran = all(session.task(task).status == TaskStatus.RUNNING for task in placed)
            assert evicted and ran, f"{job.key} was placed in part"


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_no_queue_goes_above_its_limit(seed: int) -> None:
    world = kai_world(seed)
    before = Session(world.cluster.snapshot(), STRICT, installed(), NOW)
    after = finished(world, STRICT)
    held, holds = (_gpus(session, world) for session in (before, after))
    for queue, limit in world.limits.items():
        assert limit < 0 or holds[queue] <= max(limit, held[queue]) + 1e-9, queue


def _gpus(session: Session, world: KaiWorld) -> dict[str, float]:
    out: dict[str, float] = defaultdict(float)
    for job in session.all_jobs():
        for task in job.tree.active:
            shape = session.class_of(task).shape
            amount = dict(shape.requests).get("nvidia.com/gpu", 0) / 1000
            amount += shape.devices.fraction / 1000 if shape.devices else 0
            queue = job.queue.name
            while queue:
                out[queue] += amount
                queue = world.parents[queue]
    return out


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from(("strict", "kai")))
def test_every_pod_that_consolidation_moves_gets_a_place(seed: int, compat: str) -> None:
    world = kai_world(seed)
    only = load({**PRESETS["kai"], "compat": compat, "actions": "allocate, consolidation"}, installed().catalogue(), "test")
    record = decide(world.cluster.snapshot(), only, installed(), NOW)
    promised = {nomination.pod for nomination in record.nominations}
    assert {eviction.pod for eviction in record.evictions} <= promised


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_searches_leave_figures_as_they_found_them(seed: int) -> None:
    """Every trial is taken back to the last byte: figures agree with where tasks stand at the end of the cycle."""
    session = finished(kai_world(seed), STRICT)
    assert session.devices is not None
    if not session.record.evictions and not (session.status == TaskStatus.PIPELINED).any():
        counted = np.zeros_like(session.nodes.used)
        for task in np.flatnonzero(session.snapshot.tasks.alive & ON_NODE[session.status]).tolist():
            counted[:, session.node[task]] += session.class_of(task).request
        shared = session.devices.dims
        rest = [dim for dim in range(counted.shape[0]) if dim not in shared]
        assert (counted[rest] == session.nodes.used[rest]).all()
        assert not session.nodes.releasing.any() and not session.nodes.pipelined.any()


def test_order_of_victims_is_total() -> None:
    session = finished(kai_world(7), STRICT)
    jobs = [job for job in session.all_jobs() if job.tree.active]
    orders = []
    for given_jobs in (jobs, jobs[::-1]):
        forest = QueueForest(session, given_jobs, lambda job: job.tree.active, victims=True)
        order = []
        while (job := forest.pop()) is not None:
            order.append(job.key)
        orders.append(order)
    assert orders[0] == orders[1]
