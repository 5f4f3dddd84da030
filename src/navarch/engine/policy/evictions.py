"""`evictions`: how a victim is removed from its node.

`delete` deletes the pod, as kube-scheduler, Volcano, KAI and kube-batch do. Disruption budgets then steer which victims an action
chooses, and veto nothing. `api` asks the Eviction API, which refuses while a budget allows no disruption, so a pod that such a budget
covers is no victim. A file that follows another system means `delete` where it says nothing; Navarch's own means `api`.

`repeatedEvictions`: with `protect`, a job that is evicted again and again is protected for a growing time; `allow` protects none.
"""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.policy.findings import Findings
from navarch.engine.policy.values import Evictions, RepeatedEvictions

KEY, REPEATED = "evictions", "repeatedEvictions"


def read_evictions(findings: Findings, document: Mapping[str, object], compat: str) -> Evictions:
    found = document.get(KEY)
    if found is None:
        return "api" if compat == "strict" else "delete"
    if found == "api":
        return "api"
    if found != "delete":
        findings.mistake((KEY,), f"found {found!r}, expected 'api' or 'delete'")
    return "delete"


def read_repeated(findings: Findings, document: Mapping[str, object]) -> RepeatedEvictions:
    found = document.get(REPEATED, "protect")
    if found not in ("protect", "allow"):
        findings.mistake((REPEATED,), f"found {found!r}, expected 'protect' or 'allow'")
    return "allow" if found == "allow" else "protect"
