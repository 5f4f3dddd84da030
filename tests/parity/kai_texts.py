"""What a recorded case says of every PodGroup that found no place, beside what the engine notes on the same job.

KAI keeps what it noted on a PodGroup in the whole cycle, in attempts that were only simulated too: a victim that found no other
place in a scenario has "Unable to schedule pod" on it, although nothing refused it. Such notes are told apart; what is
left are refusals, and they are compared letter by letter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.parity.kai_session import Case, session_of

from navarch.installed import installed

_SIMULATED = "due to: Unable to schedule pod"
_MOMENT = re.compile(r"before \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
"""The recordings have the harness's clock in this place, not that of the case."""


@dataclass
class Compared:
    agree: int = 0
    simulated: int = 0
    differ: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    """(test, case, PodGroup) -> texts of KAI that Navarch does not give."""

    def take(self, case: Case) -> None:
        noted = noted_texts(case) if case.get("messages") else {}
        placed = _ever_placed(case)
        for group, texts in case.get("messages", {}).items():
            ours = {_timeless(text) for text in noted[group]}
            for text in texts:
                if _timeless(text) in ours:
                    self.agree += 1
                elif text.endswith(_SIMULATED) and group in placed:
                    self.simulated += 1
                else:
                    key = (case["suite"].rpartition(".")[2], case["name"], group)
                    self.differ.setdefault(key, []).append(text)


def noted_texts(case: Case) -> dict[str, list[str]]:
    """PodGroup -> every refusal that one cycle noted on it, also if it was served later in the cycle."""
    session, registry = session_of(case), installed()
    for name in session.policy.actions:
        action = registry.action(name, session.policy.dialect)
        assert action is not None
        session.action = name
        action(session).execute()
    return {job.spec.name: [reason.message for reason in job.reasons] for job in session.all_jobs()}


def _ever_placed(case: Case) -> set[str]:
    """PodGroups that hold a node or were given one in the cycle: only they can be victims of a scenario."""
    pods = {pod["metadata"]["name"]: pod for pod in case["objects"] if pod["kind"] == "Pod"}
    held = {name for name, pod in pods.items() if pod["spec"].get("nodeName")}
    held |= {pod.partition("/")[2] for _, what, pod, _ in case.get("trace", ()) if what != "evict"}
    return {pods[name]["metadata"]["annotations"]["pod-group-name"] for name in held if name in pods}


def _timeless(text: str) -> str:
    return _MOMENT.sub("before then", text)
