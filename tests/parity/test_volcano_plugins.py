"""Recorded cycles of Volcano with one of its rarer plugins, decided by Navarch under `compat: volcano`.

Three marks a case: the decision with everything that it carries (PodGroups, CPU ids, annotations written with the bind), the answers
of the plugin alone at the start of the cycle, and the answers of the whole configuration.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.parity.mended import PLUGINS, why
from tests.parity.recorded import Case, cases_of, skipped
from tests.parity.volcano_inputs import cycle_of
from tests.parity.volcano_judge import PLUGIN_OF, judged, judged_extras, judged_groups, outcome_of, policy_of
from tests.parity.volcano_probes import check_probe, plugin_alone, session_of

from navarch.installed import installed


def cases() -> list[Any]:
    """Those of the extender need a server: `test_volcano_extender`."""
    every = [each for each in cases_of("volcano-plugins") if each[0] != "extender-protocol"]
    found = [pytest.param(case, why(PLUGINS, file, n), id=f"{file}-{n}-{case['name']}") for file, n, case in every]
    return found or [skipped({}, "", id="volcano-plugins")]


def test_every_recorded_plugin_is_installed() -> None:
    assert set(PLUGIN_OF.values()) <= set(installed().catalogue().plugins)


def differences(case: Case) -> list[str]:
    """What differs in the decision, in the answers of the plugin alone, and in those of the whole configuration."""
    found: list[str] = []
    if case["expect"].get("allowed"):
        outcome = outcome_of(cycle_of(case, policy_of(case)))
        found += filter(None, (judged(case, outcome), judged_groups(case, outcome), judged_extras(case, outcome)))
    for name in ("pluginProbe", "probe"):
        probe = case["expect"].get(name)
        if probe:
            policy = policy_of(case) if name == "probe" else plugin_alone(policy_of(case), probe["plugin"])
            try:
                check_probe(session_of(case, policy), probe)
            except AssertionError as wrong:
                found.append(f"{name}: {wrong}")
    return found


@pytest.mark.parametrize(("case", "accident"), cases())
def test_decision_and_answers(case: Case, accident: str) -> None:
    wrong = differences(case)
    if accident:
        assert wrong, "this case agrees now: take it off the list of mended cases"
        pytest.xfail(accident)
    assert not wrong, wrong
