"""What each plugin of Volcano answered before any action ran: node scores, refusals of nodes, admissions.

A decision can be right for the wrong reason. These are the reasons: every score of every pod on every node that passes the
filters, as the sum of all plugins (recorded to six digits), and the text with which a node was refused.
"""

from __future__ import annotations

import pytest
from tests.parity.recorded import Case, recorded_cases
from tests.parity.volcano_judge import policy_of
from tests.parity.volcano_probes import check_probe, session_of

CASES = [
    case
    for name in ("probes", "random")
    for case in recorded_cases(f"volcano/{name}.jsonl", lambda case: bool(case["expect"].get("probe")))
]


@pytest.mark.parametrize("case", CASES)
def test_answers_at_the_start_of_the_cycle(case: Case) -> None:
    check_probe(session_of(case, policy_of(case)), case["expect"]["probe"])
