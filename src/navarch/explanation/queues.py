"""What a queue is owed and how that came about, which queues borrow from it, and what waits in it."""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.reasons import dominant
from navarch.engine.record import CycleRecord, QueueFigures
from navarch.explanation.result import Loan, QueueExplanation, ShareStep, WaitingJob
from navarch.explanation.trials import standing_of
from navarch.ingest.groups import shown_key
from navarch.model.cluster import Cluster
from navarch.model.resources import UNLIMITED, format_amount
from navarch.model.spec import QueueSpec, Requests

Amounts = Mapping[str, float]


def explain_queue(cluster: Cluster, record: CycleRecord, name: str) -> QueueExplanation:
    queues = cluster.queues
    spec, figures = queues[name], {each.queue: each for each in record.queues}
    own = figures.get(name)
    found = QueueExplanation(queue=name, state=spec.state or "Open", parent=spec.parent)
    if own is not None:
        found.share, found.allocated, found.request = own.share, _shown(own.allocated), _shown(own.request)
        found.deserved = _shown(due(own))
        found.steps = _steps(cluster, spec, own, figures)
    found.borrows, found.lends = _loans(figures, name)
    place = {key: number for number, key in enumerate(record.tried)}
    waiting = [each for each in record.jobs if each.queue == name and each.pods.get("Pending") and not standing_of(each).started]
    for each in sorted(waiting, key=lambda job: (place.get(job.job, len(place)), job.job)):
        reason = dominant(each.reasons)
        found.waiting.append(WaitingJob(shown_key(each.job), each.pods["Pending"], reason.code if reason else "NotReached"))
    return found


def due(figures: QueueFigures) -> Amounts:
    """What the queue is owed."""
    return figures.deserved if figures.fair_share is None else figures.fair_share


def _shown(amounts: Amounts) -> dict[str, str]:
    return {name: format_amount(name, amount) for name, amount in sorted(amounts.items()) if amount < UNLIMITED}


def _steps(cluster: Cluster, spec: QueueSpec, own: QueueFigures, figures: Mapping[str, QueueFigures]) -> list[ShareStep]:
    """How the share came about, as far as objects and figures tell."""
    steps = [ShareStep("the cluster has", _shown(_capacity(cluster)))]
    siblings = [queue for queue in cluster.queues.values() if queue.parent == spec.parent and figures.get(queue.name)]
    asking = [queue for queue in siblings if figures[queue.name].request]
    if spec.shares:
        quota = {name: share.quota for name, share in spec.shares.items() if share.quota >= 0}
        steps.append(ShareStep("its quota is", {name: _plain(name, amount) for name, amount in sorted(quota.items())}))
        weights = {name: share.over_quota_weight for name, share in spec.shares.items()}
        steps.append(ShareStep("beyond quotas it has the weights", {name: f"{weight:g}" for name, weight in sorted(weights.items())}))
        limit = {name: share.limit for name, share in spec.shares.items() if share.limit >= 0}
        if limit:
            steps.append(ShareStep("it may hold at most", {name: _plain(name, amount) for name, amount in sorted(limit.items())}))
    else:
        total = sum(queue.weight for queue in asking)
        if total and spec in asking:
            text = f"its weight is {spec.weight} of {total} among the {len(asking)} queues that ask for something"
            steps.append(ShareStep(text, {}))
        for word, requests in (("it is guaranteed", spec.guarantee), ("it deserves by its object", spec.deserved)):
            if requests:
                steps.append(ShareStep(word, _amounts(requests)))
        if spec.capability:
            steps.append(ShareStep("it may hold at most", _amounts(spec.capability)))
    steps.append(ShareStep("it asks for", _shown(own.request)))
    steps.append(ShareStep("so it is owed", _shown(due(own))))
    steps.append(ShareStep("it holds", _shown(own.allocated)))
    return steps


def _capacity(cluster: Cluster) -> dict[str, float]:
    table = cluster.nodes
    total = table.allocatable[:, : table.rows.top][:, table.alive[: table.rows.top]].sum(axis=1)
    return {name: float(amount) for name, amount in zip(cluster.space.names, total.tolist()) if amount and name != "pods"}


def _plain(name: str, amount: float) -> str:
    return f"{amount:g}" if name == "gpu" else format_amount(name, amount)


def _amounts(requests: Requests) -> dict[str, str]:
    return {name: format_amount(name, amount) for name, amount in requests}


def _loans(figures: Mapping[str, QueueFigures], name: str) -> tuple[list[Loan], list[Loan]]:
    """What the queue holds beyond its due while another waits below its own, and the other way round."""
    over = {each: beyond(queue) for each, queue in figures.items()}
    starved = {each: lacking(queue) for each, queue in figures.items()}
    borrows = [
        Loan(other, found) for other in sorted(figures) if other != name and (found := _shown(overlap(over[name], starved[other])))
    ]
    lends = [
        Loan(other, found) for other in sorted(figures) if other != name and (found := _shown(overlap(over[other], starved[name])))
    ]
    return (borrows, lends) if name in figures else ([], [])


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
