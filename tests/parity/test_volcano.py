"""Every recorded cycle of Volcano, decided by Navarch under `compat: volcano` and judged as the recordings' README says.

Two marks a case: the decisions (binds, evictions, promises), and the PodGroups' phases and conditions. The few that differ are
listed below with the reason, and in docs/parity.md; each is expected to differ, so that the list stays honest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.parity.shared_cases import Case, shared_directory
from tests.parity.volcano_judge import judged, judged_groups, outcome_of, policy_of

import navarch

ANCESTOR = "pkg/scheduler/plugins/capacity.Test_capacityPlugin_AncestorReclaimScenarios"
DIFFERENT: dict[tuple[str, str, str], str] = {}
"""(file, suite, name) -> why the decision differs."""
DIFFERENT_STATUS: dict[tuple[str, str, str], str] = {}
"""(file, suite, name) -> why a phase, a condition or its text differs though the decision is right."""


def cases() -> list[Any]:
    shared = shared_directory()
    if shared is None:
        return [pytest.param(None, "", marks=pytest.mark.skip(reason="no recordings: NAVARCH_SHARED and ../shared are absent"))]
    import json

    out = []
    for file in sorted((shared / "parity" / "volcano").glob("*.jsonl")):
        for number, line in enumerate(file.read_text().splitlines()):
            case = json.loads(line)
            out.append(pytest.param(case, file.stem, id=f"{file.stem}-{number}-{Path(case['suite']).name}"))
    return out


@pytest.mark.parametrize(("case", "file"), cases())
def test_volcano_cycle(case: Case, file: str) -> None:
    key = (file, case["suite"], case["name"])
    plan = navarch.plan(case["objects"], policy=policy_of(case))
    outcome = outcome_of(plan.to_dict()["cycles"][0])
    wrong = judged(case, outcome)
    if key in DIFFERENT:
        assert wrong, "this case agrees now: take it off the list here and in docs/parity.md"
        pytest.xfail(DIFFERENT[key])
    assert not wrong, wrong
    status = judged_groups(case, outcome)
    if key in DIFFERENT_STATUS:
        assert status, "this case's status agrees now: take it off the list here and in docs/parity.md"
        pytest.xfail(DIFFERENT_STATUS[key])
    assert not status, status
