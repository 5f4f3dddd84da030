"""What a Job makes of a pod that failed: its podFailurePolicy, rule by rule; the first that matches decides."""

from __future__ import annotations

from typing import Literal

from navarch.object_types import Manifest

Verdict = Literal["Count", "Ignore", "FailJob"]


def verdict(job: Manifest, pod: Manifest) -> tuple[Verdict, str]:
    """(what to do, the message if the job is to fail)."""
    for index, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
        why = _on_exit_codes(rule.get("onExitCodes"), pod) or _on_conditions(rule.get("onPodConditions"), pod)
        if why:
            action = rule.get("action")
            name = f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"
            if action == "FailJob":
                return "FailJob", f"{why} for pod {name} matching FailJob rule at index {index}"
            return ("Ignore" if action == "Ignore" else "Count"), ""
    return "Count", ""


def _on_exit_codes(rule: Manifest | None, pod: Manifest) -> str:
    if not rule:
        return ""
    values = set(rule.get("values") or ())
    status = pod.get("status") or {}
    for each in [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]:
        if rule.get("containerName") not in (None, each.get("name")):
            continue
        code = ((each.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
        if code and (code in values) == (rule.get("operator") == "In"):
            return f"Container {each['name']} failed with exit code {code}"
    return ""


def _on_conditions(rules: list[Manifest] | None, pod: Manifest) -> str:
    for rule in rules or ():
        for each in (pod.get("status") or {}).get("conditions") or ():
            if each.get("type") == rule.get("type") and each.get("status") == rule.get("status", "True"):
                return f"Pod has condition {each['type']}"
    return ""
