"""The rule that decides alone: the one whose relaxation, and nothing else, starts the job.

What a cycle says first is what it met first. Whether that rule decides is established here: a limit, the share of its queue, its
priority, a node, or one other job is changed alone, and the scheduler is run. The rule that the job's sentence names comes first.
Where none of them starts it, that is said, if all were tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from navarch.explanation.changes.admin import demand_of, queues_above
from navarch.explanation.changes.attempts import Changes, told_object
from navarch.explanation.changes.cluster_edits import further_node, kinds_of_nodes, lifted, raised, with_weight
from navarch.explanation.changes.job_edits import with_priority
from navarch.explanation.changes.user import higher_classes
from navarch.explanation.result import Deciding
from navarch.explanation.subject import Object, Unit
from navarch.explanation.trials import MOST_CYCLES, Spent

NONE = "none"
_MOST_WEIGHT = 1000
_MOST = {"node": 3, "end": 24}
"""Kinds of nodes and other jobs that are tried. With more of them it is not said that no single one decides."""
_FIRST = {
    "QueueLimit": ("limit", "share", "end", "priority", "node"),
    "OverShare": ("share", "end", "node", "priority", "limit"),
}
"""Code of the job's sentence -> the order in which rules are tried."""
_ORDER = ("node", "end", "share", "priority", "limit")


@dataclass(frozen=True, slots=True)
class _Try:
    text: str
    objects: Sequence[Object]
    remove: Sequence[str] = ()


def deciding(changes: Changes, others: Sequence[Unit], names: Mapping[str, str], code: str) -> Deciding | None:
    """None: not established. `others`: the other jobs, those that run first. `names`: by which people know them. `code`: of the
    job's sentence."""
    sure = True
    try:
        for rule in _FIRST.get(code, _ORDER):
            tries = list(_tries(changes, others, names, rule))
            for each in tries[: _MOST.get(rule, len(tries))]:
                outcome = changes.outcome(each.objects, each.remove, MOST_CYCLES)
                if outcome is None:
                    sure = False
                elif outcome.starts:
                    objects = [told_object(one) for one in each.objects]
                    return Deciding(rule, f"{each.text} alone starts it", objects, list(each.remove), outcome.cycles or MOST_CYCLES)
            sure = sure and len(tries) <= _MOST.get(rule, len(tries))
    except Spent:
        return None
    return Deciding(NONE, "no single limit, share, priority, node or other job decides alone") if sure else None


def _tries(changes: Changes, others: Sequence[Unit], names: Mapping[str, str], rule: str) -> Iterator[_Try]:
    given, subject = changes.trials.input, changes.subject
    chain = queues_above(given, subject.spec.queue) if subject.spec is not None else []
    match rule:
        case "limit":
            free = [found for queue in chain if (found := lifted(queue, ("limit",))) is not None]
            if free:
                yield _Try(f"no limit of {' and '.join(str(each['metadata']['name']) for each in free)}", free)
        case "share":
            for queue in chain[:1]:
                name = queue["metadata"]["name"]
                yield _Try(f"a larger weight of queue {name}", [with_weight(queue, _MOST_WEIGHT)])
                demand = {each: 1000 * value for each, value in demand_of(subject).items()}
                more = raised(queue, ("quota",), demand)
                if more is not None and more != queue:
                    yield _Try(f"a larger quota of queue {name}", [more])
        case "priority":
            for value, name in higher_classes(changes)[-1:]:
                yield _Try(f"priority class {name} ({value})", with_priority(subject, name, value))
        case "node":
            for node in kinds_of_nodes(given.of_kind("Node")):
                yield _Try(f"one more node like {node['metadata']['name']}", [further_node(given, node, 1)])
        case "end":
            for unit in others:
                yield _Try(f"the end of {names.get(unit.name, unit.name)}", [], [*unit.references, *dict.fromkeys(unit.owners)])
