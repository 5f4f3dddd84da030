"""What a group in parts needs at least, and which parts it cannot do without."""

from __future__ import annotations

import pytest

from navarch.apis.operators.sub_group_minimums import fewest_pods, marked
from navarch.model.spec import SubGroupSpec

PS = SubGroupSpec("ps", 1)
LEFT, RIGHT = SubGroupSpec("left", 2, "workers"), SubGroupSpec("right", 3, "workers")


def workers(needed: int | None) -> SubGroupSpec:
    """An inner part; its own number of pods means nothing."""
    return SubGroupSpec("workers", 7, min_sub_groups=needed)


@pytest.mark.parametrize(
    ("top", "inner", "fewest", "needed"),
    [
        (None, None, 6, {"ps", "left", "right"}),
        (2, 2, 6, {"ps", "left", "right"}),
        (None, 1, 3, {"ps"}),
        (1, None, 1, set()),
        (1, 1, 1, set()),
        (None, 0, 1, {"ps"}),
        (9, 9, 6, {"ps", "left", "right"}),
    ],
)
def test_the_fewest_pods_of_a_tree_and_the_parts_it_needs(top: int | None, inner: int | None, fewest: int, needed: set[str]) -> None:
    parts = (PS, workers(inner), LEFT, RIGHT)
    assert fewest_pods(parts, top) == fewest
    found = marked(parts, top)
    assert [part.name for part in found] == ["ps", "workers", "left", "right"]
    assert {part.name for part in found if part.min_groups} == needed


def test_a_part_that_needs_no_pods_need_not_be_there() -> None:
    parts = (PS, SubGroupSpec("spare", 0))
    assert fewest_pods(parts, None) == 1
    assert [part.min_groups for part in marked(parts, None)] == [1, 0]


def test_a_group_without_parts_needs_no_pods() -> None:
    assert fewest_pods((), None) == 0 and marked((), None) == ()
