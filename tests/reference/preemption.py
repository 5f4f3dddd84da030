"""DefaultPreemption: the victims and the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from tests.reference.cluster import Cluster, Object, key_of, labels_of, name_of, namespace_of, priority_of, terminating
from tests.reference.cycle import DEFAULT_ARGS, Args, Filtering
from tests.reference.status import NOT_LOOKED_AT, UNRESOLVABLE, Status, error, fit_error, unresolvable, unschedulable

from navarch.model.selectors import read_label_selector, selector_matches

NEVER = datetime.max.replace(tzinfo=UTC)
NO_HELP = unresolvable("Preemption is not helpful for scheduling")


class Candidate(NamedTuple):
    victims: tuple[Object, ...]
    violations: int


def start_time(pod: Object) -> datetime:
    """When the pod started; one that has not counts as the very latest."""
    text = (pod.get("status") or {}).get("startTime")
    return datetime.fromisoformat(text) if text else NEVER


def importance(pod: Object) -> tuple[int, datetime, str]:
    return -priority_of(pod), start_time(pod), key_of(pod)


def eligible(cluster: Cluster, pod: Object, nominated_status: Status | None = None) -> str:
    """Why the pod may not preempt; empty if it may."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    nominated = (pod.get("status") or {}).get("nominatedNodeName")
    if not nominated or (nominated_status is not None and nominated_status.code == UNRESOLVABLE):
        return ""
    for other in cluster.pods_on(nominated):
        if terminating(other) and priority_of(other) < priority_of(pod) and being_preempted(other):
            return "not eligible due to a terminating pod on the nominated node."
    return ""


def being_preempted(pod: Object) -> bool:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "DisruptionTarget":
            return bool(condition["status"] == "True" and condition.get("reason") == "PreemptionByScheduler")
    return False


def split_by_budget(cluster: Cluster, pods: Sequence[Object]) -> tuple[list[Object], list[Object]]:
    """(those whose eviction breaks a disruption budget, the others), each in the order given."""
    budgets = cluster.of_kind("PodDisruptionBudget")
    allowed = {key_of(b): int((b.get("status") or {}).get("disruptionsAllowed") or 0) for b in budgets}
    violating: list[Object] = []
    fine: list[Object] = []
    for pod in pods:
        broken = False
        for budget in budgets if labels_of(pod) else ():
            selector = read_label_selector(budget["spec"].get("selector"))
            exempt = name_of(pod) in ((budget.get("status") or {}).get("disruptedPods") or {})
            if namespace_of(budget) != namespace_of(pod) or selector is None or not selector.requirements or exempt:
                continue
            if selector_matches(selector, labels_of(pod)):
                allowed[key_of(budget)] -= 1
                broken |= allowed[key_of(budget)] < 0
        (violating if broken else fine).append(pod)
    return violating, fine


def dry_run(
    cluster: Cluster, pod: Object, node_name: str, plugins: Sequence[str] | None = None, args: Args = DEFAULT_ARGS
) -> Candidate | Status:
    """Remove every less important pod from the node, then put back those beside which the pod fits."""
    filtering = Filtering(cluster.copy(), pod, plugins, args)
    node = cluster.nodes[node_name]
    lesser = sorted((p for p in cluster.pods_on(node_name) if priority_of(p) < priority_of(pod)), key=importance)
    if not lesser:
        return unresolvable("No preemption victims found for incoming pod")
    for other in lesser:
        filtering.remove(other, node)
    status = filtering.check(node)
    if not status.ok:
        return status
    violating, fine = split_by_budget(cluster, lesser)
    victims: list[Object] = []
    violations = 0
    for group in (violating, fine):
        for other in group:
            filtering.add(other, node)
            if filtering.check(node).ok:
                continue
            filtering.remove(other, node)
            victims.append(other)
            violations += group is violating
    if not victims:
        return error(f'expected at least one victim pod on node "{node_name}"')
    return Candidate(tuple(sorted(victims, key=importance)), violations)


def best_nodes(candidates: Mapping[str, Candidate]) -> list[str]:
    """Every node that may be chosen: the criteria one after another, the rest is a tie."""

    def cost(candidate: Candidate) -> tuple[float, ...]:
        highest = priority_of(candidate.victims[0])
        earliest = min(start_time(victim) for victim in candidate.victims if priority_of(victim) == highest)
        return (
            candidate.violations,
            highest,
            sum(priority_of(victim) + 2**31 for victim in candidate.victims),
            len(candidate.victims),
            -(earliest - datetime.min.replace(tzinfo=UTC)).total_seconds(),
        )

    if not candidates:
        return []
    least = min(cost(candidate) for candidate in candidates.values())
    return sorted(name for name, candidate in candidates.items() if cost(candidate) == least)


class Outcome(NamedTuple):
    status: Status
    chosen: list[str]
    candidates: dict[str, Candidate]


def post_filter(
    cluster: Cluster,
    pod: Object,
    statuses: Mapping[str, Status],
    absent: Status = NOT_LOOKED_AT,
    plugins: Sequence[str] | None = None,
    args: Args = DEFAULT_ARGS,
) -> Outcome:
    """What follows when no node passed the filters."""
    nominated = (pod.get("status") or {}).get("nominatedNodeName") or ""
    refusal = eligible(cluster, pod, statuses.get(nominated))
    if refusal:
        return Outcome(unschedulable(f"preemption: {refusal}"), [], {})
    tried: dict[str, Candidate | Status] = {}
    for name in cluster.nodes:
        if statuses.get(name, absent).code == "Unschedulable":
            tried[name] = dry_run(cluster, pod, name, plugins, args)
    candidates = {name: result for name, result in tried.items() if isinstance(result, Candidate)}
    if candidates:
        return Outcome(Status("Success"), best_nodes(candidates), candidates)
    refusals = {name: result for name, result in tried.items() if isinstance(result, Status)}
    errors = [status.reasons[0] for status in refusals.values() if status.code == "Error"]
    if errors:
        return Outcome(error(f"preemption: {errors[0]}"), [], {})
    shown = {name: refusals.get(name, NO_HELP) for name in cluster.nodes}
    return Outcome(unschedulable(f"preemption: {fit_error(len(cluster.nodes), shown)}"), [], {})
