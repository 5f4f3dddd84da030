"""Whether a node function reads only fields of a pod that distinguish task classes, for `check_plugin`.

Pods with equal requests and constraints are one task class. The answer of a node function for the first pod of a class holds for all
of them; a static answer holds for every pod of the shape, also in later cycles. A function that reads another field (a label, the
queue, the priority) must declare it with `distinguish_by`. Otherwise different pods get the same answer, and nothing reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from navarch.engine.node_functions import NodeFilter, NodeScorer, Scope, TaskClass
from navarch.engine.session import Session

Ask = Callable[[TaskClass], object]
Reads = set[tuple[str, str]]
"""(label or annotation, key)."""


class RecordingLabels(dict[str, str]):
    """Labels or annotations that record which keys were read."""

    def __init__(self, kind: str, values: Mapping[str, str], reads: Reads) -> None:
        super().__init__(values)
        self._kind = kind
        self._reads = reads

    def __getitem__(self, key: str) -> str:
        self._reads.add((self._kind, key))
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._reads.add((self._kind, str(key)))
        return super().__contains__(key)

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self._reads.add((self._kind, key))
        return super().get(key, default)


class RecordingSession(Session):
    """A session that records in `declared` what its plugins pass to `distinguish_by`."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.declared: Reads = set()
        super().__init__(*given, **options)

    def distinguish_labels(self, keys: Iterable[str]) -> None:
        wanted = frozenset(keys)
        self.declared |= {("label", key) for key in wanted}
        super().distinguish_labels(wanted)

    def make_classes(self, tasks: Sequence[int], reads: Reads) -> None:
        """The keys that functions passed to `distinguish_by` read count as declared."""
        reads.clear()
        for task in tasks:
            self.class_of(task)
        self.declared |= reads


def check_reading(
    session: RecordingSession, function: NodeFilter | NodeScorer, tasks: Sequence[int], ask: Ask, reads: Reads
) -> Iterator[str]:
    """One message for each undeclared field that the function reads."""
    where = f"{function.name} ({function.scope.value})"
    static = function.scope is Scope.STATIC
    first: dict[int, object] = {}
    differs = False
    reads.clear()
    for row in tasks:
        job, task = session.job_of(row), session.class_of(row)
        task = replace(task, task=row, queue=job.queue.name if job else "")
        answer = ask(task)
        before = first.setdefault(task.shape_number if static else task.number, answer)
        if not _same(before, answer) and _same(ask(task), answer):  # contradictory answers are reported elsewhere
            differs = True
    read = sorted(reads if static else reads - session.declared)
    for kind, key in read:
        if static:
            yield f"{where} reads the {kind} {key!r} of pods, but static answers are kept for all pods of a shape: its scope is row"
        else:
            way = f"distinguish_labels([{key!r}])" if kind == "label" else "distinguish_by"
            yield f"{where} reads the {kind} {key!r} of pods of one task class: `open` must call self.session.{way}"
    if differs and not read:
        if static:
            yield f"{where} answers differently for pods of one shape: its scope is row"
        else:
            way = "self.session.distinguish_queues or distinguish_by"
            yield f"{where} answers differently for pods of one task class: `open` must call {way}"


def _same(one: object, other: object) -> bool:
    return np.array_equal(np.asarray(one), np.asarray(other))
