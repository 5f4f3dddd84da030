"""Whether a node function reads of a pod only what classes of tasks tell apart, for `check_plugin`.

Pods with equal requests and constraints are one class, and what a node function says of its first pod holds for all of them; a
static answer even for every pod of the shape, in later cycles too. A function that looks at anything else of a pod (a label, its
queue, its priority) and does not say so before treats pods alike that are not, and nothing ever complains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from navarch.engine.node_functions import NodeFilter, NodeScorer, Scope, TaskClass
from navarch.engine.session import Session

Ask = Callable[[TaskClass], object]
Notes = set[tuple[str, str]]
"""(label or annotation, key)."""


class Noting(dict[str, str]):
    """Labels or annotations that note which of them were asked for."""

    def __init__(self, kind: str, values: Mapping[str, str], notes: Notes) -> None:
        super().__init__(values)
        self._kind = kind
        self._notes = notes

    def __getitem__(self, key: str) -> str:
        self._notes.add((self._kind, key))
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._notes.add((self._kind, str(key)))
        return super().__contains__(key)

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self._notes.add((self._kind, key))
        return super().get(key, default)


class NotingSession(Session):
    """A session that keeps in `told` what its plugins want told apart."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.told: Notes = set()
        super().__init__(*given, **options)

    def distinguish_labels(self, keys: Iterable[str]) -> None:
        wanted = frozenset(keys)
        self.told |= {("label", key) for key in wanted}
        super().distinguish_labels(wanted)

    def make_classes(self, tasks: Sequence[int], notes: Notes) -> None:
        """What functions given to `distinguish_by` look at is told apart too."""
        notes.clear()
        for task in tasks:
            self.class_of(task)
        self.told |= notes


def check_reading(
    session: NotingSession, function: NodeFilter | NodeScorer, tasks: Sequence[int], ask: Ask, notes: Notes
) -> Iterator[str]:
    """A sentence for what the function reads of pods that are taken for one."""
    where = f"{function.name} ({function.scope.value})"
    static = function.scope is Scope.STATIC
    first: dict[int, object] = {}
    differs = False
    notes.clear()
    for row in tasks:
        job, task = session.job_of(row), session.class_of(row)
        task = replace(task, task=row, queue=job.queue.name if job else "")
        answer = ask(task)
        before = first.setdefault(task.shape_number if static else task.number, answer)
        if not _same(before, answer) and _same(ask(task), answer):  # whoever contradicts himself is another finding
            differs = True
    read = sorted(notes if static else notes - session.told)
    for kind, key in read:
        if static:
            yield f"{where} reads the {kind} {key!r} of pods, but static answers are kept for all pods of a shape: its scope is row"
        else:
            way = f"distinguish_labels([{key!r}])" if kind == "label" else "distinguish_by"
            yield f"{where} reads the {kind} {key!r} of pods that are taken for one: `open` has to call self.session.{way}"
    if differs and not read:
        if static:
            yield f"{where} answers differently for pods of one shape: its scope is row"
        else:
            way = "self.session.distinguish_queues or distinguish_by"
            yield f"{where} answers differently for pods that are taken for one: `open` has to call {way}"


def _same(one: object, other: object) -> bool:
    return np.array_equal(np.asarray(one), np.asarray(other))
