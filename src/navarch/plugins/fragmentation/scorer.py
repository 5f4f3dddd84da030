"""The score of a node by fragmentation: exactly as published (`fgd`), or with all terms (`packing`).

`fgd`: int(100 * sigmoid(gain / 1000)), and of nodes that score the same the one with the least left over (best fit).

`packing`: gain - bestFit * what is left over - compactness * GPUs left over - typePressure * pressure, mapped to 0..100 by a curve
that keeps the order. Compactness counts as far as pods leave again: a node that small pods keep off empties, and large pods start
there. Where pods stay, no node empties, and the term would only blur the others. It fades as the cluster fills, as type pressure does.

Gains depend on a node's own figures, so the engine asks again only about nodes that changed. Answers of earlier cycles are kept too:
a cycle compares the figures of all nodes with those of the last one that asked for such pods, and works out the rest.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Figures, Rows
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.model.gpus import GPU_RESOURCES
from navarch.model.node_facts import node_fact
from navarch.model.resources import CPU, BoolArray, FloatArray, IntArray
from navarch.plugins.fragmentation.free_gpus import FreeGpus, free_gpus
from navarch.plugins.fragmentation.gain_cache import GainCache
from navarch.plugins.fragmentation.measure import Measure
from navarch.plugins.fragmentation.placement import Need, fits, gains, option_gains
from navarch.plugins.fragmentation.type_pressure import GpuTypes
from navarch.plugins.fragmentation.typical_pods import WHOLE, TypicalPod, gpu_types

if TYPE_CHECKING:
    from navarch.engine.session import Session

_HALF: Final = 1000.0
"""A gain of so many thousandths stands half-way between indifferent and best."""
_BELOW_ONE: Final = 0.99


class Weights(Struct, frozen=True):
    """How the terms count, in thousandths of a GPU. `exact_fgd`: the published score, for which only `cpu_share` matters."""

    exact_fgd: bool
    best_fit: float
    cpu_share: float
    """How much of "left over" is cpu; the rest is GPUs."""
    type_pressure: float
    compactness: float


def leaving_part(session: Session) -> float:
    """The part of all pods whose jobs say how long they run: these leave again. About 20 us for 5,000 jobs."""
    jobs = session.snapshot.jobs
    pods = jobs.counts.sum(axis=1)
    total = int(pods.sum())
    return int(pods[np.isfinite(jobs.expected_duration)].sum()) / total if total else 0.0


class FragmentationScorer(NodeScorer):
    name = "fragmentation"
    scope = Scope.ROW

    def __init__(
        self,
        session: Session,
        measure: Measure,
        kinds: tuple[TypicalPod, ...],
        weights: Weights,
        label: str,
        weight: float,
    ) -> None:
        """`kinds`: all kinds of pods with their weights; rare ones too tell which types are wanted."""
        self.session = session
        self.measure = measure
        self.weights = weights
        self.label = label
        self.weight = weight
        self.types = node_fact(session.snapshot, ("gpu types", label), lambda specs: GpuTypes(specs, label))
        self._allowed: BoolArray = self.types.allowed(measure.kinds) > 0
        self._pressure = (
            self._pressure_of(kinds) if weights.type_pressure and not weights.exact_fgd else np.zeros(len(self.types.names))
        )
        self._cache = GainCache.of(session.snapshot.memo, self.types)
        self._needs: dict[int, tuple[Need, IntArray]] = {}
        allocatable = session.nodes.allocatable
        names = session.snapshot.resource_names
        gpus = [names.index(name) for name in GPU_RESOURCES if name in names]
        self._gpus = gpus
        self._most_cpu = max(1, int(allocatable[CPU].max(initial=0)))
        self._most_gpu = max(WHOLE, int(allocatable[gpus].sum(axis=0).max(initial=0)))

    def _pressure_of(self, kinds: tuple[TypicalPod, ...]) -> FloatArray:
        """Kept while neither the nodes nor the kinds of pods change."""
        memo = self.session.snapshot.memo
        kept = memo.get("type pressure")
        if kept is None or kept[0] is not self.types or kept[1] is not kinds:
            kept = memo["type pressure"] = (self.types, kinds, self.types.pressure(kinds))
        pressure: FloatArray = kept[2]
        return pressure

    # what is asked for

    def need(self, task: TaskClass) -> tuple[Need, IntArray]:
        """What a pod of the class asks for, and (N,) the thousandths of each GPU that it shares."""
        found = self._needs.get(task.shape_number)
        if found is None:
            whole = int(task.request[self._gpus].sum()) // WHOLE if self._gpus else 0
            shape, devices = task.shape.devices, self.session.devices
            milli: IntArray = np.zeros(len(self.session.nodes), dtype=np.int64)
            parts = 0
            if shape is not None and (shape.fraction or shape.memory) and devices is not None:
                parts = shape.count
                milli = np.minimum(-(-WHOLE * devices.amount(task) // devices.memory), WHOLE)
            found = self._needs[task.shape_number] = (Need(int(task.request[CPU]), whole, parts), milli)
        return found

    # scores

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        free = free_gpus(self.session, at)
        need, milli = self.need(task)
        milli, types = milli[at.rows], self.types.of_node[at.rows]
        possible = fits(need, milli, free)

        def work_out(rows: Rows) -> FloatArray:
            some = FreeGpus(free.cpu[rows], free.whole[rows], free.shared[rows])
            return gains(self.measure, need, milli[rows], some, self._allowed[types[rows]])

        if at.added is None:
            kind = (self.measure, need, task.shape.devices)
            gain = self._cache.gains(kind, free.columns(), at.rows, possible, work_out)
        else:  # imagined figures; that `added` is read tells the engine that equal figures need not mean equal GPUs
            gain = np.zeros(len(possible))
            rows = np.flatnonzero(possible)
            gain[rows] = work_out(rows) if len(rows) else 0.0
        left = self.left_over(need, milli, free)
        if self.weights.exact_fgd:
            out: FloatArray = np.floor(100 / (1 + np.exp(-gain / 1000))) + _BELOW_ONE * (1 - left)
            return np.where(possible, out, 0.0)
        gain += self.measure.usual_loss[WHOLE] * need.whole + self.measure.usual_loss[milli] * need.parts
        gain -= self.weights.best_fit * left
        if self._compactness:
            gain -= self._compactness * self._gpus_left(need, milli, free)
        if self.weights.type_pressure and (need.whole or need.parts):
            above = self.types.above_least(self._pressure, gpu_types(task.shape, self.label))
            gain -= self.weights.type_pressure * self._fade * above[types]
        out = 50 * (1 + gain / (np.abs(gain) + _HALF))
        return np.where(possible, out, 0.0)

    def left_over(self, need: Need, milli: IntArray, free: FreeGpus) -> FloatArray:
        """(M,), 0 to 1: cpu and GPUs that stay free, each relative to the largest node."""
        cpu = (free.cpu - need.cpu) / self._most_cpu
        share = self.weights.cpu_share
        out: FloatArray = np.clip(share * cpu + (1 - share) * self._gpus_left(need, milli, free), 0.0, 1.0)
        return out

    def _gpus_left(self, need: Need, milli: IntArray, free: FreeGpus) -> FloatArray:
        """(M,): GPUs that stay free, relative to the largest node."""
        out: FloatArray = (free.total - need.whole * WHOLE - need.parts * milli) / self._most_gpu
        return out

    def device_scores(self, task: TaskClass, node: int) -> tuple[FloatArray, float]:
        """The gain of each shared GPU of a node for a part of it, and that of a whole one."""
        rows = np.array([node])
        free = free_gpus(self.session, self.session.nodes.at(rows))
        need, milli = self.need(task)
        allowed = self._allowed[self.types.of_node[rows]]
        found = option_gains(self.measure, need, milli[rows], free, allowed)[0]
        if self.weights.exact_fgd:
            found = np.where(np.isfinite(found), np.floor(100 / (1 + np.exp(-found / 1000))), found)
        found = np.round(found, 6)
        return found[:-1], float(found[-1])

    @cached_property
    def _compactness(self) -> float:
        weight = self.weights.compactness
        return weight * self._fade * leaving_part(self.session) if weight else 0.0

    @cached_property
    def _fade(self) -> float:
        """The free part of all GPUs at the beginning of the cycle."""
        capacity = int(self.types.capacity.sum())
        return min(1.0, float(free_gpus(self.session, self.session.nodes).total.sum()) / capacity) if capacity else 0.0

    def identity(self) -> Hashable:
        return (super().identity(), self.label)
