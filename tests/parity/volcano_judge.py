"""Judging a cycle against what Volcano decided, by the rules of the recordings' README."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.parity.recorded import Case

Outcome = dict[str, Any]
_PVC = ("actions-allocate", "pkg/scheduler/actions/allocate.TestAllocateWithPVC")
DIFFERENT: dict[tuple[str, str, str], str] = {
    (*_PVC, "static pv matched and node with enough resources"): (
        "recorded where the binder is called, which waits for volumes that no controller binds there; we decide the bind"
    ),
}
"""(file, suite, name) -> why the decision differs."""
PLUGIN_OF = {
    "deviceshare": "deviceshare",
    "extender-protocol": "extender",
    "numaaware": "numa-aware",
    "rescheduling": "rescheduling",
    "task-topology": "task-topology",
    "usage": "usage",
}
"""File of recorded cases -> the plugin that it is about."""


def policy_of(case: Case) -> dict[str, Any]:
    """The case's configuration as a decoded policy file."""
    metrics = {"metrics": case["conf"]["metrics"]} if "metrics" in case["conf"] else {}
    return {
        **metrics,
        "actions": list(case["actions"]),
        "tiers": case["conf"].get("tiers", []),
        "configurations": case["conf"].get("configurations", []),
        "metrics": case["conf"].get("metrics", {}),
        "compat": "volcano",
        "schedulerParams": case.get("options", {}),
    }


def outcome_of(cycle: dict[str, Any]) -> Outcome:
    """One cycle of `navarch.plan(...).to_dict()` in the recordings' terms."""
    groups = {}
    for job in cycle["jobs"]:
        conditions = [{k: c[k] for k in ("type", "status", "reason", "message")} for c in job["conditions"]]
        groups[job["job"]] = {"phase": job["phase"], "conditions": conditions}
    return {
        "binds": {b["pod"]: b["node"] for b in cycle["binds"]},
        "evictions": [e["pod"] for e in cycle["evictions"]],
        "pipelined": {n["pod"]: n["node"] for n in cycle["nominations"]},
        "podGroups": groups,
        "cpus": {b["pod"]: b.get("cpus", "") for b in cycle["binds"]},
        "annotations": {b["pod"]: _without_times(b["annotations"]) for b in cycle["binds"] if b.get("annotations")},
    }


def _without_times(annotations: dict[str, str]) -> dict[str, str]:
    return {key: "<time>" if key.endswith("-time") and value.isdecimal() else value for key, value in annotations.items()}


def same_decision(got: Outcome, wanted: Outcome) -> bool:
    return (
        got["binds"] == wanted["binds"]
        and sorted(got["evictions"]) == sorted(wanted["evictions"])
        and got["pipelined"] == wanted["pipelined"]
    )


def judged(case: Case, got: Outcome) -> str:
    """Empty if the decision is right, else what is wrong with it."""
    allowed = case["expect"]["allowed"]
    if any(same_decision(got, outcome) for outcome in allowed):
        return ""
    if not case["deterministic"] and not (broken := _broken_invariants(case, got)):
        return ""
    if case["deterministic"]:
        return _difference(got, allowed[0])
    return f"none of {len(allowed)} outcomes; invariants broken: {broken}"


def _difference(got: Outcome, wanted: Outcome) -> str:
    parts = []
    for key in ("binds", "pipelined"):
        missing = {p: n for p, n in wanted[key].items() if got[key].get(p) != n}
        extra = {p: n for p, n in got[key].items() if wanted[key].get(p) != n}
        if missing or extra:
            parts.append(f"{key}: wanted {missing}, got {extra}")
    missing_evictions = sorted(set(wanted["evictions"]) - set(got["evictions"]))
    extra_evictions = sorted(set(got["evictions"]) - set(wanted["evictions"]))
    if missing_evictions or extra_evictions:
        parts.append(f"evictions: wanted {missing_evictions}, got {extra_evictions}")
    return "; ".join(parts)


def _broken_invariants(case: Case, got: Outcome) -> list[str]:
    wanted = case["expect"]["invariants"]
    group_of = {f"{p['metadata'].get('namespace', 'default')}/{p['metadata']['name']}": _group(p) for p in _pods(case)}
    broken = []
    found: dict[str, Counter[str]] = {
        "boundPerGroup": Counter(group_of[p] for p in got["binds"]),
        "evictedPerGroup": Counter(group_of[p] for p in got["evictions"]),
        "pipelinedPerGroup": Counter(group_of[p] for p in got["pipelined"]),
    }
    for name, counts in found.items():
        ranges = wanted[name]
        for group in sorted(counts.keys() | ranges.keys()):
            low, high = ranges.get(group, (0, 0))
            if not low <= counts[group] <= high:
                broken.append(f"{name} {group or 'no group'}: {counts[group]} not in [{low}, {high}]")
    for name, value in (("boundTotal", len(got["binds"])), ("evictedTotal", len(got["evictions"]))):
        low, high = wanted[name]
        if not low <= value <= high:
            broken.append(f"{name}: {value} not in [{low}, {high}]")
    return broken


def _pods(case: Case) -> list[dict[str, Any]]:
    return [o for o in case["objects"] if o["kind"] == "Pod"]


def _group(pod: dict[str, Any]) -> str:
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    for key in ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"):
        if annotations.get(key):
            return f"{metadata.get('namespace', 'default')}/{annotations[key]}"
    return ""


def judged_extras(case: Case, got: Outcome) -> str:
    """What binds carry besides the node, where the decision equals a recorded one: CPU ids and annotations."""
    outcome = next((o for o in case["expect"]["allowed"] if same_decision(got, o)), None)
    if outcome is None:
        return ""
    for field in ("cpus", "annotations"):
        vary = outcome.get(f"{field}Vary", {})
        seen = {**{pod: [value] for pod, value in outcome.get(field, {}).items()}, **vary}
        for pod in sorted(seen.keys() | got[field].keys()):
            found = got[field].get(pod)
            if pod not in seen and not found:
                continue
            if found not in seen.get(pod, []):
                return f"{field} of {pod}: {found!r}, wanted one of {seen.get(pod)}"
    return ""


def judged_groups(case: Case, got: Outcome) -> str:
    """The second mark: phases and conditions of the PodGroups, where the decision equals a recorded one."""
    outcome = next((o for o in case["expect"]["allowed"] if same_decision(got, o)), None)
    if outcome is None:
        return ""
    for name, wanted in sorted(outcome["podGroups"].items()):
        mine = got["podGroups"].get(name)
        if mine is None:
            return f"{name}: not reported"
        if mine["phase"] != wanted["phase"]:
            return f"{name}: phase {mine['phase']}, wanted {wanted['phase']}"
        have = {c["type"]: c for c in mine["conditions"]}
        for condition in wanted.get("conditions") or []:
            found = have.get(condition["type"])
            if found is None:
                return f"{name}: no condition {condition['type']}"
            for key in ("status", "reason"):
                if found[key] != condition[key]:
                    return f"{name}: {condition['type']} {key} {found[key]!r}, wanted {condition[key]!r}"
            if "message" in condition and found["message"] != condition["message"]:
                return f"{name}: message {found['message']!r}, wanted {condition['message']!r}"
            if "messagePrefix" in condition and not found["message"].startswith(condition["messagePrefix"]):
                return f"{name}: message {found['message']!r}, wanted it to begin {condition['messagePrefix']!r}"
    return ""
