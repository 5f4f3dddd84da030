"""What became of every pod of a recorded case, and whether that is what KAI makes of it.

Read from a plan's output alone: a bind is Binding, a nomination Pipelined, an eviction without one Releasing; every other pod
is as the objects have it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.parity.kai_session import Case, moment_of, session_of

from navarch.model.status import TaskStatus

Outcome = dict[str, dict[str, Any]]


def standing_at_start(case: Case) -> Outcome:
    session = session_of(case)
    session.ignore_stuck_tasks(120.0)
    out: Outcome = {}
    for task, spec in enumerate(session.snapshot.tasks.specs):
        if spec is None:
            continue
        found: dict[str, Any] = {"status": TaskStatus(int(session.status[task])).name.capitalize()}
        if task in session.stuck:
            found["status"] = "StuckInReleasing"
        if spec.gates and found["status"] == "Pending":
            found["status"] = "Gated"
        if spec.node:
            found["node"] = spec.node
        if spec.gpu_groups and found["status"] != "Pending":
            found["gpuGroups"] = list(spec.gpu_groups)
        out[spec.key] = found
    return out


def after_cycle(before: Outcome, cycle: dict[str, Any]) -> Outcome:
    out = {pod: dict(found) for pod, found in before.items()}
    for eviction in cycle["evictions"]:
        out[eviction["pod"]] |= {"status": "Releasing", "node": eviction["node"]}
    for status, placements in (("Binding", cycle["binds"]), ("Pipelined", cycle["nominations"])):
        for placed in placements:
            pod = placed["pod"]
            out[pod] = {"status": status, **{k: v for k, v in placed.items() if k != "pod"}}
    return out


def differences(found: Outcome, wanted: Outcome) -> list[str]:
    """Status and node of every pod; names of groups made in this cycle are renamed pod by pod, old ones are as they are."""
    out = []
    renamed: dict[tuple[str, str], str] = {}
    for pod in sorted(wanted):
        want, have = wanted[pod], found.get(pod, {"status": "absent"})
        placed = want["status"] in ("Binding", "Pipelined")
        same = want["status"] == have["status"]
        same = same and (want["status"] == "Releasing" or want.get("node") == have.get("node"))
        same = same and (not placed or want.get("numaZones") == have.get("numaZones"))
        if not same:
            out.append(f"{pod}: {_text(have)} instead of {_text(want)}")
        elif placed and not _same_groups(want, have, renamed):
            out.append(f"{pod}: {_text(have)} instead of {_text(want)} (groups)")
    return out


def _same_groups(want: dict[str, Any], have: dict[str, Any], renamed: dict[tuple[str, str], str]) -> bool:
    ours, theirs = have.get("gpuGroups", []), want.get("gpuGroups", [])
    if len(ours) != len(theirs):
        return False
    node = want.get("node", "")
    old = sorted(g for g in theirs if not g.startswith("new-"))
    if old != sorted(g for g in ours if not g.startswith("new-")):
        return False
    for mine, group in zip(sorted(g for g in ours if g.startswith("new-")), sorted(g for g in theirs if g.startswith("new-"))):
        if renamed.setdefault((node, mine), group) != group:
            return False
    return True


def _text(found: dict[str, Any]) -> str:
    return " ".join(str(value) for value in found.values())


def judged(case: Case, found: Outcome, expect: dict[str, Any]) -> str:
    """Empty if the outcome is one of those that were seen, or keeps their invariants if there were several. Otherwise how it differs
    from the commonest."""
    allowed = expect.get("allowed", [expect])
    worst = [differences(found, outcome["tasks"]) for outcome in allowed]
    if any(not each for each in worst) or (not expect.get("deterministic", True) and keeps_invariants(case, found, expect)):
        return ""
    return "; ".join(worst[0])


def keeps_invariants(case: Case, found: Outcome, expect: dict[str, Any]) -> bool:
    """Whether every PodGroup has as many pods of each status as were seen, where KAI gave several answers itself."""
    pods: dict[str, list[str]] = {}
    for each in case["objects"]:
        if each["kind"] == "Pod":
            group = each["metadata"]["annotations"].get("pod-group-name", "")
            pods.setdefault(group, []).append(f"{each['metadata']['namespace']}/{each['metadata']['name']}")
    for group, counts in expect["invariants"]["statusPerJob"].items():
        statuses = Counter(found[pod]["status"] for pod in pods.get(group, ()))
        if any(not low <= statuses[status] <= high for status, (low, high) in counts.items()):
            return False
    return True


__all__ = ["after_cycle", "differences", "judged", "moment_of", "standing_at_start"]
