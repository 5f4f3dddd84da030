"""Rescaling over the candidates, and integer division as Go has it."""

from __future__ import annotations


def truncated_division(number: int, divisor: int) -> int:
    quotient = abs(number) // abs(divisor)
    return quotient if (number < 0) == (divisor < 0) else -quotient


def default_normalise(scores: list[int], top: int = 100, *, reverse: bool = False) -> list[int]:
    highest = max([0, *scores])
    if highest == 0:
        return [top] * len(scores) if reverse else scores
    scaled = [truncated_division(top * score, highest) for score in scores]
    return [top - score for score in scaled] if reverse else scaled


def broken_linear(points: list[tuple[int, int]], utilization: int) -> int:
    """Piecewise linear between (utilization, score) points, flat outside them."""
    for i, (x, y) in enumerate(points):
        if utilization <= x:
            if i == 0:
                return y
            x0, y0 = points[i - 1]
            return y0 + truncated_division((y - y0) * (utilization - x0), x - x0)
    return points[-1][1]


def nodes_to_find(all_nodes: int, percentage: int, profile_percentage: int | None = None) -> int:
    if all_nodes < 100:
        return all_nodes
    if profile_percentage is not None:
        percentage = profile_percentage
    if percentage == 0:
        percentage = max(5, 50 - all_nodes // 125)
    return max(100, all_nodes * percentage // 100)
