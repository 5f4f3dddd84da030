"""The blocking set: a minimal set of jobs such that the job starts, in one cycle, when their pods are gone.

QuickXplain (Junker, AAAI 2004) finds a minimal set of k among n in about 2k log2(n/k) + 2k trials where more room never hurts.
Scheduling is not monotone: freed room can go to another job. So the set is verified, and each member is put back once more; a set
that fails this is shrunk member by member until it passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from navarch.explanation.subject import Unit
from navarch.explanation.trials import Spent

Test = Callable[[Sequence[Unit]], bool]


@dataclass(frozen=True, slots=True)
class BlockingSet:
    units: list[Unit]
    minimal: bool
    """Each member was put back alone, and the job did not start."""


def blocking_set(candidates: Sequence[Unit], starts_without: Test, may_start_without: Test) -> BlockingSet | None:
    """None: the job does not start even without all candidates. Those that come first are preferred. `may_start_without` is asked of
    the set with one member back, and may be the more lenient of the two tests."""
    if not starts_without(candidates):
        return None
    known = list(candidates)
    try:
        found = _quick_xplain(starts_without, [], [], known) if known else []
        if starts_without(found):
            known = found
        while (smaller := _without_one(known, starts_without)) is not None:
            known = smaller
        needed = not any(may_start_without(known[:number] + known[number + 1 :]) for number in range(len(known)))
    except Spent:
        return BlockingSet(known, False)
    return BlockingSet(known, needed)


def _quick_xplain(test: Test, background: list[Unit], added: list[Unit], candidates: list[Unit]) -> list[Unit]:
    if added and test(background):
        return []
    if len(candidates) == 1:
        return candidates
    half = len(candidates) // 2
    first, second = candidates[:half], candidates[half:]
    late = _quick_xplain(test, background + first, first, second)
    early = _quick_xplain(test, background + late, late, first)
    return early + late


def _without_one(units: list[Unit], test: Test) -> list[Unit] | None:
    """The set without a member that is not needed, the last first; None: all are needed."""
    for number in range(len(units) - 1, -1, -1):
        rest = units[:number] + units[number + 1 :]
        if test(rest):
            return rest
    return None
