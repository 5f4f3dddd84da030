"""Resource names, units and vectors."""

from __future__ import annotations

import numpy as np
import pytest

from navarch.model.resources import BOUND, PODS, ResourceSpace, format_amount, parse_amount, requests_from, unit_of


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("cpu", "milli"),
        ("memory", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("pods", "count"),
        ("nvidia.com/gpu", "milli"),
        ("example.com/memory", "milli"),
    ],
)
def test_each_resource_has_one_unit(name: str, unit: str) -> None:
    assert unit_of(name) == unit


@pytest.mark.parametrize(
    ("name", "quantity", "amount"),
    [
        ("cpu", "1", 1000),
        ("cpu", "0.1m", 1),
        ("cpu", 2, 2000),
        ("memory", "1Ki", 1024),
        ("memory", "0.5", 1),
        ("nvidia.com/gpu", "8", 8000),
        ("pods", "110", 110),
        ("pods", "1500m", 2),
    ],
)
def test_amounts_are_rounded_up_to_their_unit(name: str, quantity: str | int, amount: int) -> None:
    assert parse_amount(name, quantity) == amount


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [("cpu", 1500, "1500m"), ("cpu", 2000, "2"), ("memory", 1 << 30, "1Gi"), ("memory", 1000, "1k"), ("pods", 3, "3")],
)
def test_amounts_are_shown_as_users_write_them(name: str, amount: int, text: str) -> None:
    assert format_amount(name, amount) == text


def test_a_resource_list_is_sorted_so_equal_lists_are_equal() -> None:
    assert requests_from({"memory": "1Gi", "cpu": 1}) == requests_from({"cpu": "1000m", "memory": 1 << 30})


def test_a_name_keeps_its_column() -> None:
    space = ResourceSpace()
    gpu = space.index("nvidia.com/gpu")
    space.learn((("a", 1), ("cpu", 1), ("nvidia.com/gpu", 1)))
    assert space.index("nvidia.com/gpu") == gpu
    assert len(space) == 5
    assert space.find("b") is None
    assert len(space) == 5, "looking for a name does not learn it"


def test_a_vector_has_every_name_that_was_learned() -> None:
    space = ResourceSpace()
    space.learn((("nvidia.com/gpu", 0),))
    assert space.vector((("nvidia.com/gpu", 2000), ("cpu", 100)), pods=1).tolist() == [100, 0, 1, 2000]
    assert space.vector((("cpu", 5),), missing=-1).tolist() == [5, -1, -1, -1]
    with pytest.raises(KeyError):
        space.vector((("never/learned", 1),))


def test_absurd_requests_are_bounded_so_that_sums_do_not_overflow() -> None:
    space = ResourceSpace()
    most = space.bounded_vector((("cpu", (1 << 63) - 1), ("memory", 5)), pods=1)
    assert most.tolist() == [BOUND, 5, 1]
    assert (np.tile(most, (5000, 1)).sum(axis=0) > 0).all()


def test_a_vector_is_told_without_its_zeros_and_by_name() -> None:
    space = ResourceSpace()
    vector = space.vector((("memory", 7), ("cpu", 1)))
    assert list(space.as_mapping(vector).items()) == [("cpu", 1), ("memory", 7)]
    assert space.as_mapping(vector, keep_zero=True)["pods"] == vector[PODS] == 0
