"""What a queue is owed and how that came about, which queues borrow from it, and what waits in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from navarch.engine.close import queue_figures
from navarch.engine.policy import Policy
from navarch.engine.reasons import dominant
from navarch.engine.record import CycleRecord, QueueFigures
from navarch.explanation.cause import NOT_REACHED
from navarch.explanation.nodes import opened
from navarch.explanation.result import Loan, QueueExplanation, ShareStep, WaitingJob
from navarch.explanation.standing import held_parts
from navarch.explanation.trials import Run, tally_of
from navarch.ingest.groups import shown_key
from navarch.model.cluster import Cluster
from navarch.model.resources import UNLIMITED, format_amount
from navarch.model.spec import QueueSpec, Requests
from navarch.views.queues import with_below

Amounts = Mapping[str, float]
_LEAST = 0.5
"""Smaller differences are those of rounding: amounts are told in whole units."""


def explain_queue(run: Run, name: str) -> QueueExplanation:
    """What the queue holds is told as it is now, what waits in it as the next cycle leaves it."""
    session = opened(run)
    figures, holds = queue_figures(session), held_parts(session, name)
    session.dissolve()
    found = queue_explained(run.cluster, replace(run.decide(), queues=figures), name, run.rules.policy)
    found.holds = holds
    return found


def queue_explained(cluster: Cluster, record: CycleRecord, name: str, policy: Policy) -> QueueExplanation:
    """The same from a record whose queues have the figures to tell."""
    spec, figures = cluster.queues[name], {each.queue: each for each in record.queues}
    own = figures.get(name)
    found = QueueExplanation(queue=name, state=spec.state or "Open", parent=spec.parent)
    if own is not None:
        found.share, found.allocated, found.request = own.share, _shown(own.allocated), _shown(own.request)
        found.deserved = _shown(due(own))
        found.steps = _steps(cluster, spec, own, figures, policy)
    found.borrows, found.lends = _loans(cluster, figures, name)
    place = {key: number for number, key in enumerate(record.tried)}
    waiting = [each for each in record.jobs if each.queue == name and each.pods.get("Pending") and not tally_of(each).started]
    for each in sorted(waiting, key=lambda job: (place.get(job.job, len(place)), job.job)):
        reason = dominant(each.reasons)
        found.waiting.append(WaitingJob(shown_key(each.job), each.pods["Pending"], reason.code if reason else NOT_REACHED.code))
    return found


def due(figures: QueueFigures) -> Amounts:
    """What the queue is owed."""
    return figures.deserved if figures.fair_share is None else figures.fair_share


def _without_pods(amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if name != "pods"}


def _shown(amounts: Amounts) -> dict[str, str]:
    return {name: format_amount(name, amount) for name, amount in sorted(amounts.items()) if amount < UNLIMITED}


def _steps(
    cluster: Cluster, spec: QueueSpec, own: QueueFigures, figures: Mapping[str, QueueFigures], policy: Policy
) -> list[ShareStep]:
    """How the share came about. Steps that add or take something add up to what the queue is owed."""
    capacity, asked = _capacity(cluster), _without_pods(own.request)
    steps = [_step("the cluster has", capacity), _step("it asks for", asked)]
    owed, divides = _without_pods(due(own)), _divides(policy)
    if divides == "quota":
        steps += _quota_steps(spec, owed)
    elif divides == "weight":
        steps += _weight_steps(spec, owed, capacity, [each for each in figures.values() if each.request], cluster)
    elif divides == "deserved" and spec.deserved:
        steps.append(ShareStep("its object says that it deserves", _amounts(spec.deserved)))
    if divides != "quota" and spec.guarantee:
        steps.append(ShareStep("it is guaranteed", _amounts(spec.guarantee)))
    if divides != "quota" and spec.capability:
        steps.append(ShareStep("it may hold at most", _amounts(spec.capability)))
    if divides:
        steps.append(_step("so it is owed", owed))
    else:
        steps.append(ShareStep("no plugin of the policy divides the cluster among queues, so it is owed nothing", {}))
    steps.append(_step("it holds", _without_pods(own.allocated)))
    if not own.with_below and any(each.parent == spec.name and each.name != spec.name for each in cluster.queues.values()):
        together = with_below(cluster.queues, figures, "allocated")[spec.name]
        steps.append(_step("with the queues below it, it holds", _without_pods(together)))
        steps.append(ShareStep("the policy divides no tree of queues: its share and its bounds count for its own jobs alone", {}))
    return steps


def _step(text: str, amounts: Amounts) -> ShareStep:
    return ShareStep(text, shown) if (shown := _shown(amounts)) else ShareStep(f"{text} nothing", {})


def _divides(policy: Policy) -> str:
    """By what the first plugin that accounts for queues divides the cluster; empty: there is none."""
    rules = {"proportion": "quota" if policy.dialect == "kai" else "weight", "capacity": "deserved"}
    return next((rules[plugin.name] for plugin in policy.plugins if plugin.name in rules), "")


def _weight_steps(
    spec: QueueSpec, owed: Amounts, capacity: Amounts, asking: Sequence[QueueFigures], cluster: Cluster
) -> list[ShareStep]:
    """Its part by weight alone, less what it does not ask for or may not hold, and what others leave over."""
    weights = {each.queue: cluster.queues[each.queue].weight for each in asking if each.queue in cluster.queues}
    total = sum(weights.values())
    if not total or spec.name not in weights:
        return []
    by_weight = {name: amount * spec.weight / total for name, amount in capacity.items()}
    names = sorted(by_weight.keys() | owed.keys())
    change = {name: owed.get(name, 0.0) - by_weight.get(name, 0.0) for name in names}
    text = f"its weight is {spec.weight} of {total} among the {len(weights)} queues that ask for something, which gives it"
    steps = [ShareStep(text, _shown(by_weight))]
    if less := _shown({name: -amount for name, amount in change.items() if amount <= -_LEAST}):
        steps.append(ShareStep("less what it does not ask for or may not hold:", less))
    if more := _shown({name: amount for name, amount in change.items() if amount >= _LEAST}):
        beyond_weight = "and what is guaranteed or left over:" if spec.guarantee else "and what other queues leave over:"
        steps.append(ShareStep(beyond_weight, more))
    return steps


def _quota_steps(spec: QueueSpec, owed: Amounts) -> list[ShareStep]:
    """Its quota as far as it asks for it, and its part of what quotas leave over."""
    if not spec.shares:
        return []
    quota = {_of_cluster(name): _in_units(name, share.quota) for name, share in spec.shares.items() if share.quota >= 0}
    weights = {_of_cluster(name): share.over_quota_weight for name, share in spec.shares.items()}
    limit = {_of_cluster(name): _in_units(name, share.limit) for name, share in spec.shares.items() if share.limit >= 0}
    steps = [_step("its quota is", quota)]
    if unbounded := sorted(_of_cluster(name) for name, share in spec.shares.items() if share.quota < 0):
        steps.append(ShareStep(f"its quota has no bound for {', '.join(unbounded)}", {}))
    if limit:
        steps.append(ShareStep("it may hold at most", _shown(limit)))
    within = {name: min(amount, owed.get(name, 0.0)) for name, amount in quota.items()}
    beyond_quota = {name: owed[name] - within[name] for name in within if name in owed and owed[name] - within[name] >= _LEAST}
    steps.append(_step("of its quota it is given what it asks for:", {name: amount for name, amount in within.items() if amount}))
    if beyond_quota:
        told = ", ".join(f"{name} {weights[name]:g}" for name in sorted(beyond_quota))
        steps.append(ShareStep(f"and of what quotas leave over, by its weights ({told}):", _shown(beyond_quota)))
    return steps


def _capacity(cluster: Cluster) -> dict[str, float]:
    table = cluster.nodes
    total = table.allocatable[:, : table.rows.top][:, table.alive[: table.rows.top]].sum(axis=1)
    return {name: float(amount) for name, amount in zip(cluster.space.names, total.tolist()) if amount and name != "pods"}


def _in_units(name: str, amount: float) -> float:
    """Of a quota: devices are whole there, and in thousandths elsewhere."""
    return amount * 1000 if name == "gpu" else amount


def _of_cluster(name: str) -> str:
    """The cluster's name of a resource that a quota names."""
    return "nvidia.com/gpu" if name == "gpu" else name


def _amounts(requests: Requests) -> dict[str, str]:
    return {name: format_amount(name, amount) for name, amount in requests}


def _loans(cluster: Cluster, figures: Mapping[str, QueueFigures], name: str) -> tuple[list[Loan], list[Loan]]:
    """What the queue holds beyond its due while another waits below its own, and the other way round. A queue and one above it hold
    the same pods, so they lend each other nothing."""
    if name not in figures:
        return [], []
    line = _line(cluster, name)
    others = [other for other in sorted(figures) if other not in line and name not in _line(cluster, other)]
    over, lacks = beyond(figures[name]), lacking(figures[name])
    borrows = [Loan(other, found) for other in others if (found := _shown(overlap(over, lacking(figures[other]))))]
    lends = [Loan(other, found) for other in others if (found := _shown(overlap(beyond(figures[other]), lacks)))]
    return borrows, lends


def _line(cluster: Cluster, name: str) -> set[str]:
    """The queue and those above it."""
    found: set[str] = set()
    while name and name not in found:
        found.add(name)
        spec = cluster.queues.get(name)
        name = spec.parent if spec is not None else ""
    return found


def beyond(queue: QueueFigures) -> dict[str, float]:
    """What the queue holds beyond its due."""
    owed = due(queue)
    return {
        each: held - owed.get(each, 0.0) for each, held in queue.allocated.items() if each != "pods" and held > owed.get(each, 0.0)
    }


def lacking(queue: QueueFigures) -> dict[str, float]:
    """What the queue is owed and asks for, and does not hold."""
    wanted = {each: min(due(queue).get(each, 0.0), amount) for each, amount in queue.request.items() if each != "pods"}
    return {each: most - queue.allocated.get(each, 0) for each, most in wanted.items() if most > queue.allocated.get(each, 0)}


def overlap(left: Amounts, right: Amounts) -> dict[str, float]:
    """What is in both, as far as the smaller of two amounts goes."""
    return {each: min(amount, right[each]) for each, amount in left.items() if each in right and each != "pods"}
