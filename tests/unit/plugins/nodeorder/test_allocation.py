"""Percentages of huge and tiny capacities are whole numbers, truncated, however they are computed."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.plugin_session import World, job_of

from navarch.model.resources import MEMORY
from navarch.plugins.nodeorder.allocation import Allocation

BYTES = st.one_of(
    st.integers(1, 1000),
    st.integers(1, 1 << 48),
    st.integers(0, 45).map(lambda bits: 1 << bits),
    st.integers((1 << 46) - 3, (1 << 46) + 3),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(BYTES, BYTES), min_size=1, max_size=6), st.integers(1, 1 << 30))
def test_the_part_that_is_left_is_a_whole_percentage(nodes: list[tuple[int, int]], asked: int) -> None:
    world = World().queue("q").job("running").job("waiting").pods("waiting", memory=asked, scoring=(0, asked))
    for number, (capacity, used) in enumerate(nodes):
        world.node(f"n{number}", cpu=4, memory=capacity)
        world.pods("running", node=f"n{number}", memory=used, footprint=(0, used))
    session = world.session()
    task = session.class_of(job_of(session, "waiting").tasks[0])
    scorer = Allocation(session, 1.0, "LeastAllocated", (("memory", 1),))
    found = scorer.raw(task, session.nodes)
    assert [session.nodes.allocatable[MEMORY, row] for row in range(len(nodes))] == [capacity for capacity, _ in nodes]
    assert found.tolist() == [max(capacity - used - asked, 0) * 100 // capacity for capacity, used in nodes]
    some = np.arange(0, len(nodes), 2)
    assert scorer.raw(task, session.nodes.at(some)).tolist() == found[some].tolist()
