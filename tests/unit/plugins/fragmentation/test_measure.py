"""The columns say what the plain reference says, node by node; the terms that FGD lacks do what they are for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import fgd
from tests.reference.fgd import SlowNode

from navarch.plugins.fragmentation.free_gpus import FreeGpus
from navarch.plugins.fragmentation.measure import Measure
from navarch.plugins.fragmentation.placement import Need, fits, gains, option_gains
from navarch.plugins.fragmentation.typical_pods import PodKind, TypicalPod

TYPES = ("", "A", "B")
PARTS = st.sampled_from([50, 190, 320, 470, 650, 810])
CPU = st.integers(0, 16).map(lambda cores: cores * 1000)
KINDS = st.one_of(
    st.builds(PodKind, CPU),
    st.builds(PodKind, CPU, PARTS, st.just(1), st.sampled_from([(), ("A",), ("A", "B")])),
    st.builds(PodKind, CPU, st.just(1000), st.integers(1, 4), st.sampled_from([(), ("B",)])),
)
NODES = st.builds(
    SlowNode,
    st.integers(0, 32).map(lambda cores: cores * 1000),
    st.lists(st.one_of(st.just(1000), st.just(0), PARTS), max_size=5).map(tuple),
    st.sampled_from(TYPES),
)


@st.composite
def typical(draw: st.DrawFn) -> tuple[TypicalPod, ...]:
    kinds = draw(st.lists(KINDS, min_size=1, max_size=8, unique=True))
    return tuple(TypicalPod(kind, 1 / len(kinds)) for kind in kinds)


def columns(nodes: list[SlowNode]) -> FreeGpus:
    shared = [[free for free in node.gpus if free < 1000] for node in nodes]
    width = max(map(len, shared))
    return FreeGpus(
        np.array([node.cpu for node in nodes]),
        np.array([node.gpus.count(1000) for node in nodes]),
        np.array([row + [0] * (width - len(row)) for row in shared], dtype=np.int64).reshape(len(nodes), width),
    )


def allowed(nodes: list[SlowNode], measure: Measure) -> np.ndarray:
    rows = [[not kind.types or node.type in kind.types for kind in measure.kinds] for node in nodes]
    return np.array(rows, dtype=bool).reshape(len(nodes), len(measure.kinds))


@given(typical(), st.lists(NODES, min_size=1, max_size=6), KINDS)
def test_gains_of_columns_are_those_of_the_plain_reference(pods: tuple[TypicalPod, ...], nodes: list[SlowNode], pod: PodKind) -> None:
    measure, free = Measure(pods, 0.0, 0.0), columns(nodes)
    part = pod.gpus == 1 and pod.gpu_milli < 1000
    need = Need(pod.cpu, 0 if part else pod.gpus, 1 if part else 0)
    milli = np.full(len(nodes), pod.gpu_milli if part else 0)
    slow = [fgd.gain(node, pod, pods) for node in nodes]
    possible = fits(need, milli, free)
    assert possible.tolist() == [each is not None for each in slow]
    rows = np.flatnonzero(possible)
    some = FreeGpus(free.cpu[rows], free.whole[rows], free.shared[rows])
    found = gains(measure, need, milli[rows], some, allowed(nodes, measure)[rows]) if len(rows) else np.zeros(0)
    assert found.tolist() == pytest.approx([each for each in slow if each is not None], abs=1e-5)


@given(typical(), NODES)
def test_fragmentation_of_a_node(pods: tuple[TypicalPod, ...], node: SlowNode) -> None:
    measure, free = Measure(pods, 0.0, 0.0), columns([node])
    found = measure.loss(measure.sums(free.whole, free.shared), free.cpu, free.total, allowed([node], measure))
    assert found[0] == pytest.approx(fgd.fragmentation(node, pods))


@given(typical(), st.lists(NODES, min_size=2, max_size=6), PARTS)
def test_one_node_alone_and_among_others_gets_the_same_answer(pods: tuple[TypicalPod, ...], nodes: list[SlowNode], part: int) -> None:
    measure, free = Measure(pods, 0.3, 8.0), columns(nodes)
    need, milli, may = Need(1000, 0, 1), np.full(len(nodes), part), allowed(nodes, measure)
    together = gains(measure, need, milli, free, may)
    for row in range(len(nodes)):
        one = FreeGpus(free.cpu[row : row + 1], free.whole[row : row + 1], free.shared[row : row + 1])
        assert gains(measure, need, milli[:1], one, may[row : row + 1])[0] == together[row]


def test_cpu_that_runs_out_before_gpus_counts() -> None:
    pods = (TypicalPod(PodKind(4000, 1000, 1), 1.0),)
    node = columns([SlowNode(8000, (1000,) * 4)])
    may = np.ones((1, 1), dtype=bool)

    def loss(limit: float) -> float:
        measure = Measure(pods, limit, 0.0)
        return float(measure.loss(measure.sums(node.whole, node.shared), node.cpu, node.total, may)[0])

    assert loss(0.0) == 0, "one pod fits, so FGD counts nothing as lost"
    assert loss(1.0) == 2000, "cpu is there for two of four GPUs"
    assert loss(0.25) == 500


def test_a_part_goes_where_the_remnant_is_worth_least() -> None:
    # Pods of 470 and 320: a GPU with 470 free has room for one more 470, one with 350 free only for a 320.
    pods = (TypicalPod(PodKind(1000, 470, 1), 0.5), TypicalPod(PodKind(1000, 320, 1), 0.5))
    node = columns([SlowNode(64_000, (470, 350, 1000))])
    found = option_gains(Measure(pods, 0.0, 8.0), Need(1000, 0, 1), np.array([320]), node, np.ones((1, 2), dtype=bool))[0]
    assert int(found.argmax()) == 1


def test_several_parts_take_the_best_devices() -> None:
    pods = (TypicalPod(PodKind(1000, 500, 1), 1.0),)
    node = columns([SlowNode(64_000, (500, 500, 1000, 1000))])
    measure, may = Measure(pods, 0.0, 0.0), np.ones((1, 1), dtype=bool)
    one = option_gains(measure, Need(1000, 0, 1), np.array([500]), node, may)[0]
    assert gains(measure, Need(1000, 0, 3), np.array([500]), node, may)[0] == pytest.approx(np.sort([*one, one[-1]])[-3:].sum())
