"""A figure over time: its integral is exact, its points are bounded in number."""

from __future__ import annotations

from navarch.simulator.series import MOST_SPANS, TimeSeries


def test_the_integral_is_exact_and_points_are_means() -> None:
    series = TimeSeries(span=10)
    series.note(0, 4)
    series.note(5, 0)
    series.note(15, 2)
    assert series.integral(25) == 4 * 5 + 2 * 10
    assert series.points(25) == [(5.0, 2.0), (15.0, 1.0), (22.5, 2.0)]


def test_spans_double_instead_of_growing_in_number() -> None:
    series = TimeSeries()
    for second in range(0, 20 * MOST_SPANS, 7):
        series.note(second, second % 3)
    assert len(series.points(20 * MOST_SPANS)) <= MOST_SPANS + 1
    assert series.span == 32
