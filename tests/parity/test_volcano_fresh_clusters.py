"""Random clusters of our own that showed a rule of Volcano's, each with what Volcano's scheduler makes of it (ed72c7c, 80 runs)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.parity.recorded import Case, cases_in
from tests.parity.volcano_judge import judged, judged_groups, outcome_of, policy_of

import navarch

CASES = cases_in(Path(__file__).with_name("volcano_fresh_clusters.jsonl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_one_cycle(case: Case) -> None:
    outcome = outcome_of(navarch.plan(case["objects"], policy=policy_of(case)).to_dict()["cycles"][0])
    assert not judged(case, outcome)
    assert not judged_groups(case, outcome)
