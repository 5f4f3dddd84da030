"""Registers of cards on nodes, and the annotations that name the cards of a pod."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.model.registered_cards import (
    MOST_CARDS,
    REGISTER,
    UNHEALTHY,
    Card,
    HeldCard,
    gpu_cards,
    read_gpu_index,
    read_register,
    read_vgpu_ids,
    vgpu_cards,
    write_vgpu_ids,
)
from navarch.model.resources import requests_from
from navarch.model.spec import NodeSpec

OFFERED = {"volcano.sh/vgpu-number": 10, "volcano.sh/vgpu-memory": 16000, "volcano.sh/vgpu-cores": 100}
ONE = "GPU-1,10,16000,NVIDIA-T4,true,hami-core:"


def node(register: str = ONE, **offered: int) -> NodeSpec:
    amounts = requests_from({**OFFERED, **{key.replace("_", "-"): value for key, value in offered.items()}})
    return NodeSpec("n", allocatable=amounts, capacity=amounts, annotations={REGISTER: register})


def test_a_register_has_a_card_an_entry() -> None:
    assert read_register(ONE + "GPU-2,x,-1,T4,False,mig:") == (
        Card("GPU-1", 10, 16000, "NVIDIA-T4", True, "hami-core"),
        Card("GPU-2", 0, 0, "T4", False, "mig"),
    )


@pytest.mark.parametrize("text", ["", "no colon", ":", "GPU-1,10,16000,NVIDIA-T4,true:", ONE * (MOST_CARDS + 1)])
def test_other_texts_are_no_register(text: str) -> None:
    assert read_register(text) is None


def test_a_node_must_offer_number_memory_and_cores() -> None:
    assert vgpu_cards(node()) is not None
    for name in OFFERED:
        amounts = requests_from({key: value for key, value in OFFERED.items() if key != name})
        assert vgpu_cards(NodeSpec("n", allocatable=amounts, annotations={REGISTER: ONE})) is None
    assert vgpu_cards(NodeSpec("n", allocatable=requests_from(OFFERED))) is None


@pytest.mark.parametrize(
    ("capacity", "broken", "cards"),
    [
        ({"volcano.sh/gpu-memory": 16000, "volcano.sh/gpu-number": 3}, "", (5333, (0, 1, 2))),
        ({"volcano.sh/gpu-memory": 16000, "volcano.sh/gpu-number": 2}, "x,1", (8000, (0,))),
        ({"volcano.sh/gpu-memory": 16000}, "", None),
        ({"volcano.sh/gpu-memory": 16000, "volcano.sh/gpu-number": 0}, "", None),
        ({"volcano.sh/gpu-memory": 16000, "volcano.sh/gpu-number": 10**9}, "", None),
    ],
)
def test_equal_cards_by_capacity(capacity: dict[str, int], broken: str, cards: object) -> None:
    assert gpu_cards(NodeSpec("n", capacity=requests_from(capacity), annotations={UNHEALTHY: broken})) == cards


@given(
    st.lists(
        st.lists(st.builds(HeldCard, st.from_regex(r"GPU-[0-9a-f]{1,8}", fullmatch=True), st.integers(0, 2**31), st.integers(0, 100)))
    )
)
def test_written_cards_are_read_back(containers: list[list[HeldCard]]) -> None:
    made = tuple(tuple(each) for each in containers)
    assert read_vgpu_ids(write_vgpu_ids(made)) == (made if write_vgpu_ids(made) else ())


@pytest.mark.parametrize("text", ["GPU-1,NVIDIA,1", "GPU-1,NVIDIA,-1,0:", "GPU-1,NVIDIA,99999999999,0:", "GPU-1,NVIDIA,1,x:"])
def test_entries_that_cannot_be_read_are_left_out(text: str) -> None:
    assert read_vgpu_ids(text) == ((),)


def test_a_gpu_index_that_is_no_list_of_numbers_is_empty() -> None:
    assert read_gpu_index("0,2") == (0, 2)
    assert [read_gpu_index(text) for text in ("", "a", "0,", "-1", "9" * 30)] == [()] * 5
