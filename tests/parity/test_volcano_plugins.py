"""Recorded cycles of Volcano with one of its rarer plugins, decided by Navarch under `compat: volcano`.

Three tests a case: the decision with everything that it carries (PodGroups, CPU ids, annotations written with the bind), the answers
of the plugin alone at the start of the cycle, and the answers of the whole configuration.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.parity.recorded import Case, cases_of, skipped
from tests.parity.volcano_inputs import cycle_of
from tests.parity.volcano_judge import PLUGIN_OF, judged, judged_extras, judged_groups, outcome_of, policy_of
from tests.parity.volcano_probes import check_probe, plugin_alone, session_of

from navarch.installed import installed


def cases(field: str = "allowed") -> list[Any]:
    """One parameter for each case that has this recorded answer. Those of the extender need a server: `test_volcano_extender`."""
    every = [each for each in cases_of("volcano-plugins") if each[0] != "extender-protocol"]
    found = [(file, number, case) for file, number, case in every if case["expect"].get(field)]
    parameters = [pytest.param(case, id=f"{file}-{number}-{case['name']}") for file, number, case in found]
    return parameters or [skipped({}, id="volcano-plugins")]


def test_every_recorded_plugin_is_installed() -> None:
    assert set(PLUGIN_OF.values()) <= set(installed().catalogue().plugins)


@pytest.mark.parametrize("case", cases())
def test_decision(case: Case) -> None:
    outcome = outcome_of(cycle_of(case, policy_of(case)))
    for wrong in (judged(case, outcome), judged_groups(case, outcome), judged_extras(case, outcome)):
        assert not wrong, wrong


@pytest.mark.parametrize("case", cases("pluginProbe"))
def test_answers_of_the_plugin(case: Case) -> None:
    probe = case["expect"]["pluginProbe"]
    check_probe(session_of(case, plugin_alone(policy_of(case), probe["plugin"])), probe)


@pytest.mark.parametrize("case", cases("probe"))
def test_answers_of_the_configuration(case: Case) -> None:
    check_probe(session_of(case, policy_of(case)), case["expect"]["probe"])
