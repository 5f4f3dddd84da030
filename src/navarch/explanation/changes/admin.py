"""What an administrator can change: queues, nodes, and the jobs that stand in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from navarch.engine.record import CycleRecord
from navarch.explanation.changes.attempts import Changes
from navarch.explanation.changes.clauses import tolerates
from navarch.explanation.changes.cluster_edits import (
    CORDONED,
    bounds_text,
    further_node,
    is_kai,
    kinds_of_nodes,
    lifted,
    new_queue,
    raised,
    uncordoned,
    weight_of,
    with_quota,
    with_weight,
    without_taint,
)
from navarch.explanation.changes.cluster_edits import opened as opened_queue
from navarch.explanation.changes.job_edits import amounts_of
from navarch.explanation.documents import Input
from navarch.explanation.subject import Object, Subject, Unit
from navarch.model.resources import parse_amount
from navarch.object_types import ReadOnlyManifest

BY = "admin"
_STEPS = 8
_MOST_NODES = 4
_MOST_KINDS = 3
_MOST_WEIGHT = 7
"""Powers of two by which a weight is raised at most."""
_BOUNDS = (("limit",), ("quota",), ("limit", "quota"))


def queues_above(given: Input, name: str) -> list[ReadOnlyManifest]:
    """The queue and those above it that are in the input, from below."""
    found: list[ReadOnlyManifest] = []
    while name:
        queue = next(iter(given.find("Queue", "", name)), None)
        if queue is None or queue in found:
            break
        found.append(queue)
        spec = queue.get("spec") or {}
        name = str(spec.get("parentQueue") or spec.get("parent") or "")
    return found


def demand_of(subject: Subject) -> dict[str, int]:
    """What the pods of the job that wait ask for together, in the model's units."""
    total: dict[str, int] = {}
    for task in subject.tasks:
        if not task.node:
            for name, amount in task.shape.requests:
                total[name] = total.get(name, 0) + amount
            if task.shape.devices is not None:
                total["nvidia.com/gpu"] = total.get("nvidia.com/gpu", 0) + 1000 * max(1, task.shape.devices.count)
    return total


def missing_queue(changes: Changes) -> None:
    """A queue that does not exist, or is not open."""
    given, spec = changes.trials.input, changes.subject.spec
    if spec is None or not spec.queue:
        return
    chain = queues_above(given, spec.queue)
    if not chain:
        changes.attempt(BY, "queue", f"create the queue {spec.queue}", [new_queue(spec.queue, given.of_kind("Queue"), spec.dialect)])
    for queue in chain:
        if not is_kai(queue) and (queue.get("status") or {}).get("state") not in (None, "", "Open"):
            changes.attempt(BY, "queue", f"open the queue {queue['metadata']['name']}", [opened_queue(queue)])


def more_quota(changes: Changes, record: CycleRecord) -> None:
    """The least raise of the bounds of its queue, and of those above it, with which the job starts."""
    spec = changes.subject.spec
    chain = queues_above(changes.trials.input, spec.queue) if spec is not None else []
    for bounds in _BOUNDS:
        free = [found for queue in chain if (found := lifted(queue, bounds)) is not None]
        if bounds != ("quota",) and not free:
            continue
        if bounds == ("quota",) and not any(is_kai(queue) for queue in chain):
            free = [found for queue in chain if (found := raised(queue, bounds, _plenty(demand_of(changes.subject)))) is not None]
        if not free or not changes.starts(free):
            continue
        needed = [queue for queue in chain if queue["metadata"]["name"] in {each["metadata"]["name"] for each in free}]
        for queue in needed:  # one alone may do
            alone = [each for each in free if each["metadata"]["name"] == queue["metadata"]["name"]]
            if len(needed) > 1 and changes.starts(alone):
                needed, free = [queue], alone
                break
        if not _bisected(changes, record, needed, bounds):
            names = ", ".join(str(queue["metadata"]["name"]) for queue in needed)
            changes.attempt(BY, "quota", f"lift the {' and '.join(bounds)} of {names}", free)
        return


def _bisected(changes: Changes, record: CycleRecord, queues: Sequence[ReadOnlyManifest], bounds: Sequence[str]) -> bool:
    """Raise in steps of what the job asks for beyond what its queue holds now."""
    demand = demand_of(changes.subject)
    held = {each.queue: each.allocated for each in record.queues}
    extra = {name: amount + max((held.get(str(queue["metadata"]["name"]), {}).get(name, 0) for queue in queues), default=0)
             for name, amount in demand.items()}  # fmt: skip
    gpus = max((amount // 1000 for name, amount in extra.items() if name.endswith("/gpu")), default=0)
    steps = gpus if 1 <= gpus <= 128 else _STEPS

    def change(step: int) -> list[Object]:
        more = {name: -(-amount * step // steps) for name, amount in extra.items()}
        return [found for queue in queues if (found := raised(queue, bounds, more)) is not None]

    def text(step: int) -> str:
        parts = [f"{each['metadata']['name']} to {bounds_text(each, bounds)}" for each in change(step)]
        return f"raise the {' and '.join(bounds)} of {'; '.join(parts)}"

    return bool(change(steps)) and changes.starts(change(steps)) and changes.least(steps, BY, "quota", text, change) is not None


def _plenty(demand: Mapping[str, int]) -> dict[str, int]:
    return {name: 1000 * amount for name, amount in demand.items()}


def more_namespace_quota(changes: Changes) -> None:
    """ResourceQuotas of its namespace that leave room for the whole job."""
    subject = changes.subject
    namespace = subject.key.partition("/")[0]
    asked = demand_of(subject)
    for name, amount in (subject.spec.min_resources or ()) if subject.spec is not None else ():
        asked[name] = max(asked.get(name, 0), amount)
    quotas = [
        each for each in changes.trials.input.of_kind("ResourceQuota") if (each["metadata"].get("namespace") or "default") == namespace
    ]
    raised_quotas = [found for quota in quotas if (found := with_quota(quota, asked)) is not None]
    if raised_quotas:
        names = ", ".join(str(each["metadata"]["name"]) for each in raised_quotas)
        changes.attempt(BY, "quota", f"raise the ResourceQuota {names} of {namespace} by what the job asks for", raised_quotas)


def more_weight(changes: Changes) -> None:
    """The least weight of its queue, in powers of two, with which the job starts."""
    spec = changes.subject.spec
    queue = next(iter(queues_above(changes.trials.input, spec.queue)), None) if spec is not None else None
    if queue is None:
        return
    before, name = 1 if is_kai(queue) else weight_of(queue), queue["metadata"]["name"]
    changes.least(
        _MOST_WEIGHT,
        BY,
        "weight",
        lambda step: f"weight {before << step} for queue {name} instead of {before}",
        lambda step: [with_weight(queue, before << step)],
    )


def more_nodes(changes: Changes) -> None:
    """Nodes that take no work now, and one or more further nodes of a kind that there is."""
    given = changes.trials.input
    nodes = given.of_kind("Node")
    cordoned = [node for node in nodes if (node.get("spec") or {}).get("unschedulable")]
    for node in kinds_of_nodes(cordoned)[:_MOST_NODES]:
        changes.attempt(BY, "uncordon", f"uncordon {node['metadata']['name']}", [uncordoned(node)])
    pods = changes.subject.samples()
    tainted: dict[str, ReadOnlyManifest] = {}
    for node in nodes:
        for taint in (node.get("spec") or {}).get("taints") or ():
            if node in cordoned and taint.get("key") == CORDONED:
                continue  # the same as the cordon, and it comes back while that stands
            if not all(any(tolerates(each, taint) for each in (pod.get("spec") or {}).get("tolerations") or ()) for pod in pods):
                tainted.setdefault(str(taint.get("key")), node)
    for key, node in sorted(tainted.items())[:_MOST_NODES]:
        changes.attempt(BY, "taint", f"remove the taint {key} from {node['metadata']['name']}", [without_taint(node, key)])
    pending = sum(not task.node for task in changes.subject.tasks)
    asked = amounts_of(changes.subject)
    kinds = sorted(kinds_of_nodes(nodes), key=lambda node: not all(_could_take(node, pod, asked) for pod in pods))
    for node in kinds[:_MOST_KINDS]:
        name = node["metadata"]["name"]

        def add(count: int, node: ReadOnlyManifest = node) -> list[Object]:
            return [further_node(given, node, number) for number in range(1, count + 1)]

        if changes.attempt(BY, "node", f"one more node like {name}", add(1)):
            return

        def text(count: int, name: str = name) -> str:
            return f"{count} more nodes like {name}"

        if pending > 1 and changes.starts(add(pending)):
            changes.least(pending, BY, "node", text, add)
            return


def _could_take(node: ReadOnlyManifest, pod: ReadOnlyManifest, asked: Mapping[str, int]) -> bool:
    """Whether an empty node of the kind might take the pod, by its selector and amounts: which kind to try first."""
    labels, amounts = node["metadata"].get("labels") or {}, (node.get("status") or {}).get("allocatable") or {}
    selector = (pod.get("spec") or {}).get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    return all(parse_amount(name, amounts.get(name, 0)) >= amount for name, amount in asked.items())


def end_blockers(changes: Changes, units: Sequence[Unit], known: Mapping[str, str]) -> None:
    """The blocking set, as an order. `known`: names by which people know jobs."""
    if units:
        names = ", ".join(known.get(unit.name, unit.name) for unit in units)
        removed = [each for unit in units for each in unit.references]
        if changes.attempt(BY, "end", f"end {names}", [], removed, cycles=1):
            for each in changes.found:
                if each.kind == "end":
                    each.price.ends = [unit.name for unit in units]
