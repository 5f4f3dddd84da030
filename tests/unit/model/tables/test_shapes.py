"""Equal pods share one shape; a shape's number lives as long as a pod uses it."""

from __future__ import annotations

from tests.worlds.small_cluster import shape

from navarch.model.resources import PODS, ResourceSpace
from navarch.model.spec import PodAffinity, Shape, SpreadConstraint
from navarch.model.tables.shapes import ShapeTable


def table() -> ShapeTable:
    return ShapeTable(ResourceSpace())


def test_equal_shapes_share_a_number_and_different_ones_do_not() -> None:
    shapes = table()
    first = shapes.acquire(shape(cpu=1))
    assert shapes.acquire(shape(cpu="1000m")) == first
    assert shapes.acquire(shape(cpu=2)) != first
    assert shapes.acquire(Shape(shape(cpu=1).requests, node_selector=(("zone", "a"),))) != first


def test_a_shape_asks_for_one_pod_besides_its_requests() -> None:
    shapes = table()
    number = shapes.acquire(shape(cpu="250m"))
    assert shapes.request[:, number].tolist() == [250, 0, 1]


def test_only_a_shape_that_asks_for_nothing_is_best_effort() -> None:
    shapes = table()
    assert shapes.best_effort[shapes.acquire(shape())]
    assert shapes.best_effort[shapes.acquire(shape(cpu=0))]
    assert not shapes.best_effort[shapes.acquire(shape(memory=1))]


def test_a_number_is_reused_only_after_its_last_pod_left() -> None:
    shapes = table()
    number = shapes.acquire(shape(cpu=1))
    shapes.acquire(shape(cpu=1))
    shapes.release(number)
    assert shapes.acquire(shape(cpu=2)) != number
    shapes.release(number)
    again = shapes.acquire(shape(memory=64))
    assert again == number
    assert shapes.request[:, again].tolist() == [0, 64, 1], "nothing of the former shape is left"
    assert not shapes.best_effort[again]


def test_a_resource_that_comes_late_is_zero_for_earlier_shapes() -> None:
    shapes = table()
    early = shapes.acquire(shape(cpu=1))
    late = shapes.acquire(Shape((("nvidia.com/gpu", 1000),)))
    gpu = shapes.space.find("nvidia.com/gpu")
    assert gpu is not None
    assert shapes.request[gpu, early] == 0
    assert shapes.request[gpu, late] == 1000
    assert shapes.request[PODS, [early, late]].tolist() == [1, 1]


def test_shapes_with_rules_about_other_pods_are_known_while_they_are_in_use() -> None:
    table = ShapeTable(ResourceSpace())
    lonely, spread = Shape(pod_affinity=PodAffinity()), Shape(spread=(SpreadConstraint(1, "zone", hard=True),))
    table.acquire(Shape())
    first, second = table.acquire(lonely), table.acquire(spread)
    table.acquire(lonely)
    assert table.with_pod_rules == {first: lonely, second: spread}
    table.release(first)
    table.release(second)
    assert table.with_pod_rules == {first: lonely}
