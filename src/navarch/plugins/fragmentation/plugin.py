"""The plugin `fragmentation`: node scores and the choice of a GPU within a node, by one of four rules.

`fragmentation.score` says which: `packing` (all terms), `fgd` (exactly as published, best fit on ties), and two plain ones to compare
with, `best-fit` and `random`. docs/simulate.md has figures of all four.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import msgspec

from navarch.engine.arguments import Argument
from navarch.engine.node_functions import NodeScorer, TaskClass
from navarch.engine.plugin import Plugin
from navarch.model.resources import FloatArray
from navarch.plugins.fragmentation.baselines import BestFit, RandomNode
from navarch.plugins.fragmentation.measure import Measure, measure_of
from navarch.plugins.fragmentation.scorer import FragmentationScorer, Weights
from navarch.plugins.fragmentation.typical_pods import TypicalPod, counted, most_frequent, rounded, seen

GPU_TYPE_LABEL = "nvidia.com/gpu.product"


class Fragmentation(Plugin):
    """Places pods so that what stays free on GPUs is of use to the pods that come"""

    name = "fragmentation"
    waits_for_room = True
    arguments = (
        Argument("fragmentation.weight", "float", 1.0, "weight of the whole score, which is 0 to 100", minimum=0),
        Argument("fragmentation.score", "str", "packing", "the rule", ("packing", "fgd", "best-fit", "random")),
        Argument(
            "fragmentation.typicalPods",
            "list",
            None,
            "kinds of pods to keep room for: cpu, gpu (0.5 or 8), types, count; not given: the pods that the cluster holds",
            check=counted,
        ),
        Argument(
            "fragmentation.coverage", "float", 0.95, "the most frequent kinds count that cover this share of all pods", minimum=0
        ),
        Argument(
            "fragmentation.cpuLimit", "float", 0.3, "packing: how much it counts that cpu ends before GPUs do, 0 to 1", minimum=0
        ),
        Argument("fragmentation.remnants", "float", 8.0, "packing: weight of what partly used GPUs are worth", minimum=0),
        Argument("fragmentation.bestFit", "float", 40.0, "packing: thousandths of a GPU for a whole node left over", minimum=0),
        Argument("fragmentation.cpuShare", "float", 0.65, "how much of what is left over is cpu, 0 to 1; the rest is GPUs", minimum=0),
        Argument(
            "fragmentation.compactness",
            "float",
            2000.0,
            "packing: thousandths of a GPU for a node of free GPUs left over, where jobs say how long they run",
            minimum=0,
        ),
        Argument("fragmentation.typePressure", "float", 1200.0, "packing: thousandths of a GPU for full type pressure", minimum=0),
        Argument("fragmentation.typeLabel", "str", GPU_TYPE_LABEL, "label of nodes that tells the GPU type"),
        Argument("fragmentation.seed", "int", 0, "random: seed of the draws", minimum=0),
    )

    def node_scorers(self) -> list[NodeScorer]:
        return [self._scorer]

    def device_scores(self, task: TaskClass, node: int) -> tuple[FloatArray, float]:
        return self._scorer.device_scores(task, node)

    @cached_property
    def _scorer(self) -> FragmentationScorer | RandomNode:
        given = self.given
        rule, weight = given.text("fragmentation.score"), given.number("fragmentation.weight")
        if rule == "random":
            return RandomNode(self.session, given.integer("fragmentation.seed"), weight)
        weights = Weights(
            rule == "fgd",
            given.number("fragmentation.bestFit"),
            given.number("fragmentation.cpuShare"),
            given.number("fragmentation.typePressure"),
            given.number("fragmentation.compactness"),
        )
        label = given.text("fragmentation.typeLabel")
        workload = Workload((), ()) if rule == "best-fit" else self._workload(label)
        kind = BestFit if rule == "best-fit" else FragmentationScorer
        return kind(self.session, self._measure(rule, workload), workload.all_kinds, weights, label, weight)

    def _measure(self, rule: str, workload: Workload) -> Measure:
        if rule != "packing":
            return measure_of(workload.typical, 0.0, 0.0)
        limit, remnants = self.given.number("fragmentation.cpuLimit"), self.given.number("fragmentation.remnants")
        return measure_of(workload.typical, limit, remnants)

    def _workload(self, label: str) -> Workload:
        listed, coverage = self.given["fragmentation.typicalPods"], self.given.number("fragmentation.coverage")
        if listed:
            assert isinstance(listed, Sequence)
            return _listed(msgspec.json.encode(listed), coverage)
        counts = seen(self.session, label)
        return Workload(most_frequent(rounded(counts), coverage), most_frequent(counts, 1.0))


class Workload(msgspec.Struct, frozen=True):
    """Kinds of pods: the frequent ones that are measured by, and all of them, by which types are wanted."""

    typical: tuple[TypicalPod, ...]
    all_kinds: tuple[TypicalPod, ...]


@lru_cache(maxsize=16)
def _listed(entries: bytes, coverage: float) -> Workload:
    counts = counted(msgspec.json.decode(entries))
    return Workload(most_frequent(counts, coverage), most_frequent(counts, 1.0))
