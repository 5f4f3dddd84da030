"""Typical pods: the kinds of pods that a cluster sees, and how often.

A kind is (cpu, thousandths of each GPU, number of GPUs, GPU types). Memory is no part of it. The most frequent kinds that together
cover a share of all pods are typical; their weights add up to one. They come from the policy file or from the pods that the
snapshot holds, whatever state they are in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from navarch.engine.arguments import WrongKind
from navarch.model.gpus import GPU_RESOURCES
from navarch.model.node_facts import gpu_memories
from navarch.model.resources import CPU, parse_amount
from navarch.model.spec import Shape

if TYPE_CHECKING:
    from navarch.engine.session import Session

WHOLE: Final = 1000
"""Thousandths of a whole GPU."""
_STEPS: Final = 64
"""Weights of pods that were counted in a snapshot are rounded to such parts, so that they stay the same for many cycles."""
_FIELDS: Final = ("cpu", "gpu", "types", "count")


class PodKind(Struct, frozen=True, order=True):
    """`gpu_milli` on each of `gpus` devices; `types` empty: any GPU will do."""

    cpu: int
    gpu_milli: int = 0
    gpus: int = 0
    types: tuple[str, ...] = ()

    @property
    def gpu_total(self) -> int:
        return self.gpus * self.gpu_milli


class TypicalPod(Struct, frozen=True):
    kind: PodKind
    weight: float


class TypicalPodError(WrongKind):
    """An entry of a policy file that is no typical pod; the text names the entry, the field, what was found and what was expected."""


def most_frequent(counts: Mapping[PodKind, int], coverage: float) -> tuple[TypicalPod, ...]:
    """The most frequent kinds until `coverage` of all pods are covered; of equally frequent ones the smaller kind first.

    >>> counts = {PodKind(1000): 1, PodKind(4000, 500, 1): 3, PodKind(8000, 1000, 1): 4}
    >>> [(pod.kind.cpu, pod.weight) for pod in most_frequent(counts, 0.5)], len(most_frequent(counts, 1.0))
    ([(8000, 1.0)], 3)
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    total, covered, taken = sum(counts.values()), 0, 0
    for _, count in ordered:
        if covered >= coverage * total:
            break
        covered += count
        taken += 1
    return tuple(TypicalPod(kind, count / covered) for kind, count in ordered[:taken])


def counted(entries: Sequence[object]) -> dict[PodKind, int]:
    """The kinds that a policy file lists.

    >>> counted([{"cpu": "4", "gpu": 0.5, "count": 3}, {"cpu": 8, "gpu": 2, "types": ["A100"]}])
    {PodKind(cpu=4000, gpu_milli=500, gpus=1, types=()): 3, PodKind(cpu=8000, gpu_milli=1000, gpus=2, types=('A100',)): 1}
    """
    counts: dict[PodKind, int] = {}
    for number, entry in enumerate(entries):
        kind, count = _entry(f"[{number}]", entry)
        counts[kind] = counts.get(kind, 0) + count
    return counts


def _entry(where: str, entry: object) -> tuple[PodKind, int]:
    if not isinstance(entry, Mapping):
        raise TypicalPodError(f"{where}: found {entry!r}, expected a mapping of {', '.join(_FIELDS)}")
    unknown = sorted(str(name) for name in entry if name not in _FIELDS)
    if unknown:
        raise TypicalPodError(f"{where}: found the field {unknown[0]!r}, expected one of {', '.join(_FIELDS)}")
    try:
        cpu = parse_amount("cpu", entry.get("cpu", 0))
        gpu = round(float(entry.get("gpu", 0)) * WHOLE)
    except (TypeError, ValueError) as error:
        raise TypicalPodError(f"{where}: {error}") from error
    types, count = entry.get("types") or (), entry.get("count", 1)
    if isinstance(types, str) or not all(isinstance(each, str) for each in types):
        raise TypicalPodError(f"{where}.types: found {types!r}, expected a list of GPU types")
    if not isinstance(count, int) or count < 1:
        raise TypicalPodError(f"{where}.count: found {count!r}, expected a whole number above 0")
    if cpu < 0 or gpu < 0 or (gpu > WHOLE and gpu % WHOLE):
        raise TypicalPodError(f"{where}.gpu: found {entry.get('gpu')!r}, expected part of one GPU or a whole number of GPUs")
    return PodKind(cpu, min(gpu, WHOLE), max(1, gpu // WHOLE) if gpu else 0, tuple(sorted(types))), count


def seen(session: Session, label: str) -> dict[PodKind, int]:
    """The kinds of pods in the snapshot."""
    tasks = session.snapshot.tasks
    counts = np.bincount(session.shape[tasks.alive], minlength=len(session.snapshot.shapes))
    kinds: dict[PodKind, int] = {}
    for number in np.flatnonzero(counts).tolist():
        kind = kind_of(session, session.snapshot.shapes[number], label)
        kinds[kind] = kinds.get(kind, 0) + int(counts[number])
    return kinds


def rounded(counts: Mapping[PodKind, int]) -> dict[PodKind, int]:
    """Counts as whole parts of `_STEPS` of all; kinds below half a part are left out.

    >>> rounded({PodKind(1000): 13, PodKind(2000): 1, PodKind(3000): 1000})
    {PodKind(cpu=1000, gpu_milli=0, gpus=0, types=()): 1, PodKind(cpu=3000, gpu_milli=0, gpus=0, types=()): 63}
    """
    total = sum(counts.values())
    parts = {kind: (2 * _STEPS * count + total) // (2 * total) for kind, count in counts.items()}
    return {kind: count for kind, count in parts.items() if count}


def kind_of(session: Session, shape: Shape, label: str) -> PodKind:
    """The kind of pods of a shape."""
    amounts = dict(shape.requests)
    names = session.snapshot.resource_names
    whole = sum(amounts.get(name, 0) for name in GPU_RESOURCES)
    devices, cpu = shape.devices, amounts.get(names[CPU], 0)
    types = gpu_types(shape, label)
    if devices is not None and (devices.fraction or devices.memory):
        milli = devices.fraction
        if devices.memory:
            memory = int(np.median(gpu_memories(session.snapshot))) if len(session.nodes) else devices.memory
            milli = -(-WHOLE * devices.memory // memory)
        return PodKind(cpu, min(milli, WHOLE), devices.count, types)
    return PodKind(cpu, WHOLE, whole // WHOLE, types) if whole >= WHOLE else PodKind(cpu)


def gpu_types(shape: Shape, label: str) -> tuple[str, ...]:
    """The values of the label among which the pod's node must be; empty: the pod says nothing of it.

    >>> gpu_types(Shape(node_selector=(("type", "T4"),)), "type")
    ('T4',)
    """
    own = [value for key, value in shape.node_selector if key == label]
    if own:
        return tuple(sorted(own))
    required = shape.node_affinity.required if shape.node_affinity is not None else None
    found: set[str] = set()
    for term in required or ():
        values = _values(((each.key, each.operator, each.values) for each in term.expressions), label)
        if values is None:
            return ()
        found |= values
    return tuple(sorted(found))


def _values(expressions: Iterable[tuple[str, str, Sequence[str]]], label: str) -> set[str] | None:
    named = [set(values) for key, operator, values in expressions if key == label and operator == "In"]
    return set.intersection(*named) if named else None
