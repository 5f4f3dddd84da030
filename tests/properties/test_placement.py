"""Placing equal tasks in one step gives exactly what placing them one by one gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.worlds.placement import parts, place, plugin_of
from tests.worlds.small_cluster import add_job, open_session, shape, with_nodes

from navarch.engine.session import Session
from navarch.plugins.gang import Gang

sizes = st.tuples(st.sampled_from(["1", "2", "4", "7"]), st.sampled_from(["1Gi", "4Gi", "9Gi"]))


@given(st.lists(sizes, min_size=1, max_size=8), sizes, st.integers(1, 40), parts)
def test_a_run_equals_single_steps(nodes: list[tuple[str, str]], asked: tuple[str, str], count: int, chosen: frozenset[str]) -> None:
    def world() -> Session:
        cluster = with_nodes(*((f"n{i}{'ab'[i % 2] * i}", {"cpu": c, "memory": m}) for i, (c, m) in enumerate(nodes)))
        add_job(cluster, "gang", [shape(cpu=f"{int(asked[0]) * 250}m", memory=asked[1])] * count)
        return open_session(cluster, Gang, plugin_of(chosen))

    assert place(world(), count, step=count) == place(world(), count, step=1)
