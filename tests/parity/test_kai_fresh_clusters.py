"""Random clusters of our own that showed a rule of KAI's, each with what KAI's scheduler makes of it (d5bc503a, ten runs)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.parity.kai_judge import after_cycle, differences, standing_at_start
from tests.parity.kai_session import Case, moment_of
from tests.parity.recorded import cases_in

from navarch.offline.plan import plan

CASES = cases_in(Path(__file__).with_name("kai_fresh_clusters.jsonl"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_one_cycle(case: Case) -> None:
    rules = {"compat": "kai", "actions": ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"], "conf": {}}
    cycle = plan(case["objects"], policy="kai", now=moment_of(case)).to_dict()["cycles"][0]
    found = after_cycle(standing_at_start(rules | case), cycle)
    assert [] in [differences(found, allowed) for allowed in case["allowed"]]
