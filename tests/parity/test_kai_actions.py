"""Every recorded cycle of KAI: what becomes of each pod, from the cluster's objects and the configuration alone."""

from __future__ import annotations

import pytest
from tests.parity.kai_counts import ONE_CYCLE
from tests.parity.kai_judge import after_cycle, judged, standing_at_start
from tests.parity.kai_rounds import run_rounds
from tests.parity.kai_session import Case, moment_of, policy_document
from tests.parity.mended import KAI, why
from tests.parity.recorded import recorded_cases

from navarch.offline.plan import plan


def cases(*names: str) -> list[object]:
    found = [(name, number, case) for name in names for number, case in enumerate(recorded_cases(f"kai/{name}.jsonl"))]
    return [pytest.param(*case.values, why(KAI, name, number), id=case.id, marks=case.marks) for name, number, case in found]


@pytest.mark.parametrize(("case", "accident"), cases(*ONE_CYCLE))
def test_one_cycle(case: Case, accident: str) -> None:
    cycle = plan(case["objects"], policy=policy_document(case), now=moment_of(case)).to_dict()["cycles"][0]
    expect = case["expect"] if case.get("replayed", True) else case["objectsAnswer"]
    wrong = judged(case, after_cycle(standing_at_start(case), cycle), expect)
    if accident:
        assert wrong, "this case agrees now: take it off the list of mended cases"
        pytest.xfail(accident)
    assert not wrong


@pytest.mark.parametrize("case", recorded_cases("kai/integration.jsonl"))
def test_cycles_until_it_settles(case: Case) -> None:
    first, last = run_rounds(case)
    if case["settle"]:
        assert not judged(case, first, case["expect"]["firstCycle"])
    assert not judged(case, last, case["expect"])
