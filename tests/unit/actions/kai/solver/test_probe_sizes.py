from __future__ import annotations

from collections.abc import Iterator

import pytest

from navarch.actions.kai.solver.probe_sizes import ProbeSizes, most_successes


def sizes(count: int, *, holds: int) -> list[int]:
    """The probes of a search in which up to `holds` tasks find room."""
    probes, out = ProbeSizes(count), []
    while probes.goes_on:
        out.append(probes.size)
        probes.tell(holds=probes.size <= holds)
    return out


@pytest.mark.parametrize(
    ("count", "holds", "expected"),
    [
        (1, 1, [1]),
        (1, 0, [1]),
        (10, 10, [1, 2, 4, 8, 10]),
        (10, 3, [1, 2, 4, 3]),
        (10, 7, [1, 2, 4, 8, 6, 7]),
        (10, 0, [1]),
        (11, 10, [1, 2, 4, 8, 11, 9, 10]),
    ],
)
def test_probes_grow_and_close_the_gap_after_a_failure(count: int, holds: int, expected: list[int]) -> None:
    assert sizes(count, holds=holds) == expected


def successes(count: int, told: tuple[bool, ...] = ()) -> Iterator[int]:
    """Over all outcomes of probes: how many succeed up to the first that places all tasks."""
    probes = ProbeSizes(count)
    for holds in told:
        probes.tell(holds=holds)
    if probes.held == count:
        yield sum(told)
    elif not probes.goes_on:
        yield sum(told) + (probes.held > 0)  # the last probe
    else:
        yield from successes(count, (*told, True))
        yield from successes(count, (*told, False))


@pytest.mark.parametrize("count", [*range(1, 41), 64, 65, 100])
def test_the_largest_number_of_successes_over_all_outcomes(count: int) -> None:
    assert most_successes(count) == max(successes(count))
