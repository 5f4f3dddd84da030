"""Which preset to take: what one gets with each, and what it costs. `navarch policy presets` prints it, docs/policy.md shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from navarch.cli.policy.reference import hanging


class Choice(NamedTuple):
    wanted: str
    preset: str
    cost: str


CHOICES: Final = (
    Choice(
        "teams share nodes by weight, gangs start whole, lent GPUs come back",
        "navarch",
        "evicts whole gangs (lower priority, or above their share); a large gang may wait while smaller jobs start",
    ),
    Choice(
        "most GPUs in use, with pods of many sizes",
        "packing",
        "order of arrival alone: no shares, no priorities, no evictions",
    ),
    Choice(
        "as on an HPC system: in order of arrival, and what fits meanwhile passes if it delays nobody",
        "easy",
        "jobs must say how long they run; no shares, no evictions",
    ),
    Choice(
        "strictly in order of arrival, to compare with",
        "fifo",
        "nodes idle while the first job waits; no shares, no evictions",
    ),
    Choice(
        "in order of arrival, and what does not fit is passed, to compare with",
        "fifo-skip",
        "large gangs may wait for ever; no shares, no evictions",
    ),
    Choice(
        "the shortest mean wait, to compare with",
        "sjf",
        "jobs must say how long they run, and long ones may wait for ever; no shares, no evictions",
    ),
    Choice(
        "what Volcano's default file does, ties by node name",
        "volcano",
        "evicts nothing; admission by sums (enqueue) holds jobs back that would fit",
    ),
    Choice(
        "what KAI's default shard does, its Queues and limits",
        "kai",
        "evicts without disruption budgets, as KAI does; in a cluster it needs KAI's binder, or --no-bind-requests",
    ),
    Choice(
        "what kube-scheduler does, pod by pod, with groups of scheduling.k8s.io",
        "kube-scheduler",
        "no queues and no shares; gangs of other APIs are single pods",
    ),
    Choice(
        "what kube-batch's default file does",
        "kube-batch",
        "evicts nothing; its quirks",
    ),
    Choice(
        "what the first releases of kube-batch do without a file",
        "kube-batch-early",
        "evicts pod by pod; its quirks",
    ),
)


def choices_table() -> str:
    """The table in docs/policy.md."""
    rows = [f"| {each.wanted} | `{each.preset}` | {each.cost} |" for each in CHOICES]
    return "\n".join(["| if you want | take | what it costs |", "|---|---|---|", *rows])


def choices_lines(width: int) -> Iterator[str]:
    column = max(len(each.preset) for each in CHOICES) + 2
    for each in CHOICES:
        yield from hanging(f"{each.preset:<{column}}", f"{each.wanted}.", width)
        yield from hanging(" " * column, f"Costs: {each.cost}.", width)
