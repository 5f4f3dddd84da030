"""What the owner of a job can change, what costs least first: constraints, queue, priority, the gang's minimum, amounts."""

from __future__ import annotations

from fractions import Fraction

from navarch.explanation.changes.attempts import Changes
from navarch.explanation.changes.clauses import Clause
from navarch.explanation.changes.cluster_edits import is_kai
from navarch.explanation.changes.job_edits import (
    amounts_of,
    new_group,
    scaled,
    steps_of,
    with_amount,
    with_min_member,
    with_priority,
    with_queue,
    without_topology,
)
from navarch.explanation.subject import Object, Subject
from navarch.ingest.groups import is_shadow
from navarch.model.resources import format_amount
from navarch.object_types import ReadOnlyManifest

_MOST_QUEUES = 4
_MOST_VALUES = 3
BY = "user"
_SYSTEM = "system-"
"""Priority classes of the cluster's own components."""


def missing_group(changes: Changes) -> None:
    """The PodGroup that the pods name, where it does not exist."""
    subject = changes.subject
    if subject.spec is None and not is_shadow(subject.key) and (group := new_group(subject)) is not None:
        text = f"create the PodGroup {subject.name} with minMember {group['spec']['minMember']}"
        changes.attempt(BY, "podGroup", text, [group])


def drop_clauses(changes: Changes, clauses: list[Clause]) -> None:
    for clause in clauses:
        objects = changes.subject.edited(clause.edit)
        if changes.attempt(BY, clause.kind, clause.without, objects) and clause.kind == "selector":
            _other_values(changes, clause)


def _other_values(changes: Changes, clause: Clause) -> None:
    """Where the job starts without a selector: another value of the same label that will do."""
    key, _, value = clause.text.partition("=")
    nodes = changes.trials.input.of_kind("Node")
    others = {str(found) for node in nodes if (found := (node["metadata"].get("labels") or {}).get(key)) is not None} - {value}
    for other in sorted(others)[:_MOST_VALUES]:

        def edit(pod: Object, other: str = other) -> None:
            selector = pod["spec"].get("nodeSelector")
            if selector and str(selector.get(key)) == value:
                selector[key] = other

        if changes.attempt(BY, "selector", f"node selector {key}={other} instead of {value}", changes.subject.edited(edit)):
            return


def relax_topology(changes: Changes) -> None:
    changes.attempt(BY, "topology", "make the demand for nodes close together a wish", without_topology(changes.subject))


def other_queues(changes: Changes, queues: list[ReadOnlyManifest]) -> None:
    """Queues without queues below them, those of the same system first."""
    subject = changes.subject
    own = subject.spec.queue if subject.spec else ""
    parents = {str((each.get("spec") or {}).get(field) or "") for each in queues for field in ("parent", "parentQueue")}
    leaves = [each for each in queues if each["metadata"]["name"] not in parents | {own, "root"}]
    for queue in leaves[:_MOST_QUEUES]:
        name = str(queue["metadata"]["name"])
        objects = with_queue(subject, name, "kai" if is_kai(queue) else "")
        changes.attempt(BY, "queue", f"submit it to queue {name} instead of {own or 'none'}", objects)


def higher_classes(changes: Changes) -> list[tuple[int, str]]:
    """Value and name of priority classes above the job's, by value."""
    subject = changes.subject
    now = max((task.pod_priority for task in subject.tasks), default=0)
    if subject.groups and subject.spec is not None:
        now = max(now, subject.spec.priority)
    return sorted(
        (value, name)
        for each in changes.trials.input.of_kind("PriorityClass")
        if (value := int(each.get("value") or 0)) > now and not (name := str(each["metadata"]["name"])).startswith(_SYSTEM)
    )


def higher_priority(changes: Changes) -> None:
    """The least higher priority class with which it starts."""
    subject, higher = changes.subject, higher_classes(changes)
    if not higher:
        return

    def change(step: int) -> list[Object]:
        value, name = higher[step - 1]
        return with_priority(subject, name, value)

    def text(step: int) -> str:
        value, name = higher[step - 1]
        return f"priority class {name} ({value})"

    changes.least(len(higher), BY, "priorityClass", text, change)


def smaller_gang(changes: Changes) -> None:
    """The largest smaller minimum with which it starts."""
    subject = changes.subject
    least = subject.spec.min_member if subject.spec else 1
    if least > 1 and with_min_member(subject, 1):
        changes.least(
            least - 1,
            BY,
            "minMember",
            lambda step: f"minMember {least - step} instead of {least}",
            lambda step: with_min_member(subject, least - step),
        )


def smaller_pods(changes: Changes) -> None:
    """For each resource, the largest smaller amount with which it starts."""
    subject = changes.subject
    for resource, amount in amounts_of(subject).items():
        steps = steps_of(resource, amount)
        if steps > 1:
            _smaller(changes, subject, resource, amount, steps)


def _smaller(changes: Changes, subject: Subject, resource: str, amount: int, steps: int) -> None:
    now = format_amount(resource, amount)

    def part(step: int) -> Fraction:
        return Fraction(steps - step, steps)

    changes.least(
        steps - 1,
        BY,
        "resources",
        lambda step: f"{resource} {scaled(resource, now, part(step))} a pod instead of {now}",
        lambda step: with_amount(subject, resource, part(step)),
    )
