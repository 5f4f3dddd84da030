"""Recorded cycles of Volcano with an HTTP extender, decided by Navarch with a server that answers the same.

Three marks a case: the decision with phases and conditions of PodGroups, the order in which the server was asked, and the bodies of
the requests. Volcano asks the same question several times in a row where Navarch asks once, so calls are counted only up to its
number.
"""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest
from tests.parity.mended import PLUGINS, why
from tests.parity.recorded import ABSENT, Case, recorded_cases
from tests.parity.volcano_inputs import cycle_of
from tests.parity.volcano_judge import judged, judged_groups, outcome_of, policy_of
from tests.worlds.extender_server import Seen, extender

FILE = "extender-protocol"
CASES = recorded_cases(f"volcano-plugins/{FILE}.jsonl")
TRANSPORT = ("failed predicate with extender", "invalid character", "EOF", 'Post "')
"""How Go tells of a failed request. Ours says the same in other words."""
OF_GO = ("daemonEndpoints", "nodeInfo", "lastHeartbeatTime", "lastTransitionTime", "guarantee", "reservation")
"""Empty parts of API objects that Go writes although the objects lack them."""
OTHERWISE = ("ScheduleStartTimestamp", "LastTransaction", "Priority")
"""The moment of the recording, what Volcano's own transaction log holds, and a priority of one for pods that state none."""


def asked(case: Case, *, patient: bool = False) -> tuple[dict[str, Any], Seen]:
    """What was decided, and what the server was asked. A busy machine is no slow extender: where the recording gave up on one after
    milliseconds, the server answers after the time-out however long. `patient`: no time-out, and every answer comes at once."""
    delay = 0 if patient else 60_000
    answers = {
        verb: [{**each, "delayMs": delay} if "delayMs" in each else each for each in found]
        for verb, found in (case["inputs"].get("answers") or {}).items()
    }
    with extender(answers) as seen:
        policy = json.loads(json.dumps(policy_of(case)).replace("EXTENDER_URL", seen.url))
        for option in (option for tier in policy["tiers"] for option in tier["plugins"] if option["name"] == "extender"):
            arguments = option.setdefault("arguments", {})
            arguments["extender.httpTimeout"] = "2s" if "extender.httpTimeout" in arguments and not patient else "60s"
        return outcome_of(cycle_of(case, policy, asks=True)), seen


def in_other_words(case: Case) -> Case:
    """The case with messages that end where Go tells of a failed request."""
    found = copy.deepcopy(case)
    for outcome in found["expect"]["allowed"]:
        conditions = (each for group in outcome["podGroups"].values() for each in group["conditions"] or ())
        for condition in conditions:
            ends = [condition.get("message", "").find(text) for text in TRANSPORT if text in condition.get("message", "")]
            if ends:
                condition["messagePrefix"] = condition.pop("message")[: min(ends)]
    return found


def otherwise(case: Case) -> list[str]:
    """What differs in the decision, in the order of questions, and in the bodies of the requests."""
    outcome, seen = asked(case)
    expect = case["expect"]
    found = [*filter(None, (judged(case, outcome), judged_groups(in_other_words(case), outcome)))]
    verbs, wanted = [verb for verb, _ in itertools.groupby(seen.verbs())], expect.get("verbOrder", [])
    if verbs != wanted:
        found.append(f"asked {verbs}, wanted {wanted}")
    for verb, (_, most) in expect.get("callCounts", {}).items():
        if not 1 <= seen.count(verb) <= most:
            found.append(f"{verb} was asked {seen.count(verb)} times, wanted at most {most}")
    _, seen = asked(case, patient=True)
    sent = [(verb, plain(body)) for verb, body in seen.requests]
    for request in expect.get("requests") or ():
        if request["body"].get("evictees", ()) is not None:  # Navarch does not ask which of no pods may be evicted
            if (request["verb"], plain(request["body"])) not in sent or request["path"] not in seen.paths:
                found.append(f"no such request: {request['verb']}")
    return found


@pytest.mark.parametrize("number", range(len(CASES)))
def test_decision_and_questions(number: int) -> None:
    case, accident = CASES[number].values[0], why(PLUGINS, FILE, number)
    if not case:
        pytest.skip(ABSENT)
    wrong = otherwise(case)
    if accident:
        assert wrong, "this case agrees now: take it off the list of mended cases"
        pytest.xfail(accident)
    assert not wrong, wrong


def plain(value: Any) -> Any:
    """Without what only Go writes."""
    if isinstance(value, dict):
        kept = {key: plain(each) for key, each in value.items() if key not in (*OF_GO, *OTHERWISE)}
        return {key: each for key, each in kept.items() if not (key == "spec" and each == {})}
    return [plain(each) for each in value] if isinstance(value, list) else value
