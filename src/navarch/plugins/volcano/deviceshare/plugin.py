"""Deviceshare: gives pods parts of GPU cards, chosen card by card, and tells the device plugin which.

Three ways of sharing, each switched on by its own argument: vGPUs with memory and cores of a card for each container (HAMi), a part
of the memory of one card, or whole cards by number. Nodes register their cards by annotations and capacity. The cards of a pod are
part of the decision: they are written as annotations together with its binding.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from navarch.engine.arguments import Argument, WrongKind
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change
from navarch.engine.reasons import Event
from navarch.model.resources import BoolArray, FloatArray
from navarch.plugins.volcano.deviceshare.gpu_cards import GpuCards
from navarch.plugins.volcano.deviceshare.vgpu_choice import BINPACK, SPREAD
from navarch.plugins.volcano.deviceshare.vgpus import Vgpus, group_of

SHARING, NUMBER, VGPU = "deviceshare.GPUSharingEnable", "deviceshare.GPUNumberEnable", "deviceshare.VGPUEnable"
POLICY, WEIGHT, RULES = "deviceshare.SchedulePolicy", "deviceshare.ScheduleWeight", "deviceshare.GPUExclusiveRules"
NAMED_NODES = 100
"""In the words of Volcano every refusal names its node; for more nodes than this one text stands for all."""
UNKNOWN = "node(s) have not registered their GPU cards"
_UNDONE_BY = (Event.NODE_ADDED, Event.NODE_CHANGED, Event.POD_REMOVED)


def check_rule(rule: object) -> None:
    if not isinstance(rule, Mapping) or not rule:
        raise WrongKind(f"found {rule!r}, expected a mapping of labels to values")


class DeviceShare(Plugin):
    """Gives pods parts of GPU cards, and tells the device plugin which"""

    name = "deviceshare"
    arguments = (
        Argument(SHARING, "bool", False, "serve `volcano.sh/gpu-memory`: a part of the memory of one card"),
        Argument(NUMBER, "bool", False, "serve `volcano.sh/gpu-number`: whole cards"),
        Argument(VGPU, "bool", False, "serve `volcano.sh/vgpu-number`, `-memory` and `-cores`"),
        Argument(
            POLICY, "str", "", "which card of a node a vGPU is taken from: binpack, spread, or the last one", ("", BINPACK, SPREAD)
        ),
        Argument(WEIGHT, "int", 0, "weight of the score of nodes by the same policy; 0: nodes are not scored"),
        Argument(RULES, "list", None, "labels each; pods that match the same rule share no vGPU card", check_entry=check_rule),
        Argument(
            "deviceshare.NodeLockEnable",
            "bool",
            False,
            "cards are reserved before the binding is sent: no lock is needed",
            has_effect=False,
        ),
        Argument(
            "deviceshare.KnownGeometriesCMName",
            "str",
            "",
            "MIG geometries are not read: cards that are split by MIG are refused",
            has_effect=False,
        ),
        Argument(
            "deviceshare.KnownGeometriesCMNamespace",
            "str",
            "",
            "MIG geometries are not read: cards that are split by MIG are refused",
            has_effect=False,
        ),
        Argument(
            "deviceshare.AscendMindClusterVNPUEnable",
            "bool",
            False,
            "parts of Ascend NPUs are not given out: pods that ask for them are refused",
            has_effect=False,
        ),
        Argument(
            "deviceshare.AscendHAMiVNPUEnable",
            "bool",
            False,
            "parts of Ascend NPUs are not given out: pods that ask for them are refused",
            has_effect=False,
        ),
    )

    def open(self) -> None:
        session, given = self.session, self.given
        rules = [
            {str(k): v for k, v in rule.items() if isinstance(v, str)} for rule in _listed(given[RULES]) if isinstance(rule, Mapping)
        ]
        self.vgpus: Vgpus | None = None
        if given.flag(VGPU):
            self.vgpus = Vgpus(session, given.text(POLICY), [rule for rule in rules if rule])
        by_memory, whole = given.flag(SHARING), given.flag(NUMBER)
        self.gpus = GpuCards(session, by_memory=by_memory, whole=whole) if by_memory or whole else None
        if self.vgpus is not None:
            session.distinguish_by(self._told_apart_by)

    def _told_apart_by(self, task: int) -> Hashable:
        """The group of a pod that wants cards apart from its group, and the rules that a pod matches."""
        assert self.vgpus is not None
        spec = self.session.task(task)
        if spec.shape.cards is None or not spec.shape.cards.vgpus:
            return None
        group = group_of(spec) if any(name == "volcano.sh/vgpu-podgroup-policy" for name, _ in spec.shape.hints) else ""
        return group, self.vgpus.matched(spec)

    def node_filters(self) -> list[NodeFilter]:
        found: list[NodeFilter] = []
        if self.gpus is not None:
            found.append(GpuFit(self.gpus))
        if self.vgpus is not None:
            found.append(VgpuFit(self.vgpus))
        return found

    def node_scorers(self) -> list[NodeScorer]:
        weight = self.given.integer(WEIGHT)
        return [VgpuScore(self.vgpus, weight)] if self.vgpus is not None and weight > 0 else []

    def on_allocate(self, change: Change) -> None:
        asked = change.task.shape.cards
        if asked is None:
            return
        if self.gpus is not None and self.gpus.serves(asked):
            self.gpus.placed(change)
        if self.vgpus is not None and asked.vgpus:
            self.vgpus.placed(change)

    def on_deallocate(self, change: Change) -> None:
        if change.task.shape.cards is None:
            return
        if self.gpus is not None:
            self.gpus.removed(change)
        if self.vgpus is not None:
            self.vgpus.removed(change)


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


class VgpuFit(NodeFilter):
    name = "deviceshare-vgpu"
    scope = Scope.ROW
    undone_by = _UNDONE_BY

    def __init__(self, vgpus: Vgpus) -> None:
        self.vgpus = vgpus
        self.told_apart = vgpus.session.semantics.refusals_tell_all

    def applies(self, task: TaskClass) -> bool:
        return task.shape.cards is not None and bool(task.shape.cards.vgpus)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        return self.vgpus.fits(task, at)

    def mask_now(self, task: TaskClass, at: Figures) -> BoolArray | None:
        return self.vgpus.fits(task, at, now=True) if self.vgpus.tells_leaving else None

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        refused = ~self.mask(task, at)
        if not self.told_apart:
            return [Refusal("hami-vgpuDeviceSharing error", refused, code="Vgpu")]
        unknown = refused & ~self.vgpus.columns.known[at.rows]
        mode = refused & self.vgpus.wrong_mode(task)[at.rows]
        unwanted = refused & self.vgpus.unwanted(task)[at.rows] & ~mode
        return [
            Refusal(UNKNOWN, unknown, True, "VgpuUnknown"),
            Refusal("node(s) share their vGPU cards in another mode", mode, True, "VgpuMode"),
            Refusal("node(s) have too few vGPU cards of the wanted type or UUID", unwanted, True, "VgpuType"),
            Refusal(
                "node(s) have too little memory or too few cores free on a vGPU card",
                refused & ~unknown & ~mode & ~unwanted,
                code="Vgpu",
            ),
        ]


class VgpuScore(NodeScorer):
    name = "deviceshare-vgpu"
    scope = Scope.ROW

    def __init__(self, vgpus: Vgpus, weight: int) -> None:
        self.vgpus = vgpus
        self.weight = float(weight)

    def applies(self, task: TaskClass) -> bool:
        return task.shape.cards is not None and bool(task.shape.cards.vgpus)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        return self.vgpus.score(task, at)


class GpuFit(NodeFilter):
    name = "deviceshare-gpu"
    scope = Scope.ROW
    undone_by = _UNDONE_BY

    def __init__(self, gpus: GpuCards) -> None:
        self.gpus = gpus
        self.told_apart = gpus.session.semantics.refusals_tell_all

    def applies(self, task: TaskClass) -> bool:
        return self.gpus.serves(task.shape.cards)

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        return self.gpus.fits(task, at)

    def mask_now(self, task: TaskClass, at: Figures) -> BoolArray | None:
        return self.gpus.fits(task, at, now=True) if self.gpus.tells_leaving else None

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        refused = ~self.mask(task, at)
        known = self.gpus.columns.known[at.rows]
        memory = self.gpus.lacks_memory(task, at)
        if self.told_apart:
            return [
                Refusal(UNKNOWN, refused & ~known, True, "GpuUnknown"),
                Refusal("node(s) have no GPU card with enough free memory", refused & known & memory, code="GpuMemory"),
                Refusal("node(s) have too few idle GPU cards", refused & known & ~memory, code="GpuNumber"),
            ]
        return [
            *self._named("GpuShare no enough gpu memory", refused & memory),
            *self._named("GpuNumber no enough gpu number", refused & ~memory),
        ]

    def _named(self, text: str, refused: BoolArray) -> list[Refusal]:
        columns = np.flatnonzero(refused).tolist()
        if len(columns) > NAMED_NODES or len(refused) != len(self.gpus.session.nodes):
            return [Refusal(text, refused, code="Gpu")]
        names, out = self.gpus.session.nodes.names, []
        for column in columns:
            only = np.zeros_like(refused)
            only[column] = True
            out.append(Refusal(f"{text} on node {names[column]}", only, code="Gpu"))
        return out
