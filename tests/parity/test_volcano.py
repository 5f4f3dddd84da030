"""Every recorded cycle of Volcano, decided by Navarch under `compat: volcano` and judged as the recordings' README says.

Two marks a case: the decisions (binds, evictions, promises), and the PodGroups' phases and conditions. The few that differ are
listed in `volcano_judge` and `mended` with the reason, and in docs/parity.md; each is expected to differ, so that the lists stay
honest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.parity.mended import VOLCANO, why
from tests.parity.recorded import Case, cases_of, skipped
from tests.parity.volcano_judge import DIFFERENT, judged, judged_groups, outcome_of, policy_of

import navarch


def cases() -> list[Any]:
    found = cases_of("volcano")
    return [pytest.param(case, file, number, id=f"{file}-{number}-{Path(case['suite']).name}") for file, number, case in found] or [
        skipped(None, "", 0, id="volcano")
    ]


@pytest.mark.parametrize(("case", "file", "number"), cases())
def test_volcano_cycle(case: Case, file: str, number: int) -> None:
    key = (file, case["suite"], case["name"])
    plan = navarch.plan(case["objects"], policy=policy_of(case))
    outcome = outcome_of(plan.to_dict()["cycles"][0])
    wrong = judged(case, outcome)
    if key in DIFFERENT:
        assert wrong, "this case agrees now: take it off the list here and in docs/parity.md"
        pytest.xfail(DIFFERENT[key])
    status = judged_groups(case, outcome)
    if accident := why(VOLCANO, file, number):
        assert wrong or status, "this case agrees now: take it off the list of mended cases"
        pytest.xfail(accident)
    assert not wrong, wrong
    assert not status, status
