"""KAI's node scores: small plugins in bands, so that each outweighs all bands below it.

density 0 to 9, kind of node 10, idle room now 1,000, a shared device with room 10,000, topology domains 100,000, pod affinity
1,000,000 times its weight, and the node that was promised before 10,000,000.
"""

from __future__ import annotations

import numpy as np

from navarch.engine.arguments import Argument
from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeScorer, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.session import Session
from navarch.model.gpus import GPU_RESOURCES, mig_gpus
from navarch.model.node_facts import labelled_gpu_counts
from navarch.model.resources import CPU, BoolArray, FloatArray, IntArray
from navarch.plugins.kai.amounts import KaiAmounts, wants_gpu
from navarch.plugins.nodeorder.pod_preferences import PodPreferences

DENSITY, KIND, AVAILABLE, SHARING, TOGETHER, PROMISED = 9.0, 10.0, 1_000.0, 10_000.0, 1_000_000.0, 10_000_000.0


class NodePlacement(Plugin):
    """Fills the fullest node first (binpack) or the emptiest (spread), by GPUs for GPU pods and by cpu for others"""

    name = "nodeplacement"
    arguments = (
        Argument("gpu", "str", "binpack", "how GPU pods are placed", ("binpack", "spread")),
        Argument("cpu", "str", "binpack", "how pods without GPU are placed", ("binpack", "spread")),
    )

    def node_scorers(self) -> list[NodeScorer]:
        ways = {True: self.given.text("gpu"), False: self.given.text("cpu")}
        kind = _Stretched if self.session.policy.plugin("numa") is not None else _Density
        return [kind(self.session, ways)]


class _Density(NodeScorer):
    """The fuller the better, or the emptier, on a fixed scale.

    KAI scales between the fullest and the emptiest of the candidate nodes (`_Stretched`). That changes no order as long as all other
    scores differ by more than the whole scale, so the fixed scale is used where they do."""

    name = "nodeplacement"
    scope = Scope.ROW

    def __init__(self, session: Session, ways: dict[bool, str]) -> None:
        self.session = session
        self.ways = ways
        names = session.snapshot.resource_names
        gpus = [names.index(name) for name in GPU_RESOURCES if name in names]
        self.dims = {True: gpus, False: [CPU]}
        allocatable = session.nodes.allocatable
        labelled = labelled_gpu_counts(session.snapshot)
        total = allocatable[gpus].sum(axis=0)
        self.total = {True: np.where(labelled > 0, labelled, total), False: allocatable[CPU]}
        self.has = {True: total > 0, False: allocatable[CPU] > 0}
        self.most = {gpu: max(1, int(allocatable[dims].sum(axis=0).max(initial=0))) for gpu, dims in self.dims.items()}
        self._wants: dict[int, bool] = {}

    def wants(self, task: TaskClass) -> bool:
        gpu = self._wants.get(task.number)
        if gpu is None:
            gpu = self._wants[task.number] = wants_gpu(self.session, task.task)
        return gpu

    def free(self, gpu: bool, at: Figures) -> IntArray:
        """What is or will be free."""
        out: IntArray | int = 0
        for dim in self.dims[gpu]:
            out = out + (at.allocatable[dim] - at.used[dim] + at.releasing[dim] - at.pipelined[dim])
        return np.zeros(at.used.shape[1], dtype=np.int64) if isinstance(out, int) else out

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        gpu = self.wants(task)
        free = self.free(gpu, at)
        out: FloatArray
        if self.ways[gpu] == "spread":
            total = self.total[gpu][at.rows]
            out = np.divide(free, total, out=np.zeros(len(free)), where=total > 0)
        else:
            has = sum(at.allocatable[dim] for dim in self.dims[gpu]) > 0  # by figures, so that equal nodes share an answer
            out = np.where(has, DENSITY * (1 - free / self.most[gpu]), 0.0)
        return out


class _Stretched(_Density):
    """KAI's exact rule, computed for every placement over the candidate nodes."""

    scope = Scope.GLOBAL

    def __init__(self, session: Session, ways: dict[bool, str]) -> None:
        super().__init__(session, ways)
        self.group: BoolArray = np.ones(len(session.nodes), dtype=bool)

    def prepare(self, task: TaskClass, feasible: BoolArray) -> None:
        self.group = feasible

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        gpu = self.wants(task)
        if self.ways[gpu] == "spread":
            return super().raw(task, at)
        free, has = self.free(gpu, at), self.has[gpu]
        inside = free[has & self.group]
        low, high = (int(inside.min()), int(inside.max())) if inside.size else (0, 0)
        if not high:
            return np.zeros(len(free))
        if low == high:
            return np.where(has, DENSITY, 0.0)
        return np.where(has, DENSITY * (1 - (free - low) / (high - low)), 0.0)


class NodeAvailability(Plugin):
    """Prefers nodes with idle room now to nodes where the pod must wait for a release"""

    name = "nodeavailability"

    def idle_fit_score(self) -> float:
        return AVAILABLE


class ResourceType(Plugin):
    """Keeps pods without GPU on nodes without GPU"""

    name = "resourcetype"

    def node_scorers(self) -> list[NodeScorer]:
        return [_Kind(self.session)]


class _Kind(NodeScorer):
    name = "resourcetype"
    scope = Scope.ROW
    weight = KIND

    def __init__(self, session: Session) -> None:
        self.session = session
        names, nodes = session.snapshot.resource_names, session.nodes
        dims = [i for i, name in enumerate(names) if name in GPU_RESOURCES or mig_gpus(name)]
        plain = (nodes.allocatable[dims] == 0).all(axis=0)
        sliced = session.shared(KaiAmounts).sliced_gpus()
        rows = [row for name, count in sliced.items() if count and (row := session.snapshot.nodes.row(name)) is not None]
        plain[rows] = False
        self.plain: BoolArray = plain

    def applies(self, task: TaskClass) -> bool:
        return not wants_gpu(self.session, task.task)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        found: FloatArray = self.plain[at.rows].astype(np.float64)
        return found


class GpuSharingOrder(Plugin):
    """Prefers nodes where a shared GPU has room for the pod; a pod without GPU has room on any"""

    name = "gpusharingorder"

    def node_scorers(self) -> list[NodeScorer]:
        return [_Sharing(self.session)]


class _Sharing(NodeScorer):
    name = "gpusharingorder"
    scope = Scope.ROW
    weight = SHARING

    def __init__(self, session: Session) -> None:
        self.session = session

    def applies(self, task: TaskClass) -> bool:
        return self.session.devices is not None and self.session.devices.any_shared

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        assert self.session.devices is not None
        found: FloatArray = (self.session.devices.group_fits(task, at.rows).sum(axis=1) > 0).astype(np.float64)
        return found


class GpuPack(Plugin):
    """Fills the fullest shared GPU of a node first"""

    name = "gpupack"

    def device_score(self, used: float) -> float:
        return used

    def whole_score(self) -> float:
        return 0.0


class GpuSpread(Plugin):
    """Takes an unused GPU if there is one, else the emptiest shared one"""

    name = "gpuspread"

    def device_score(self, used: float) -> float:
        return 1.0 - used

    def whole_score(self) -> float:
        return 1.0


class NominatedNode(Plugin):
    """Keeps a pod on the node that it was promised before"""

    name = "nominatednode"

    def nominated_node(self, task: int) -> tuple[int, float] | None:
        name = self.session.task(task).nominated_node
        row = self.session.snapshot.nodes.row(name) if name else None
        return None if row is None else (row, PROMISED)


class PodAffinityScore(Plugin):
    """Prefers nodes by the preferred pod affinity of this pod and of the pods there"""

    name = "podaffinity"

    def node_scorers(self) -> list[NodeScorer]:
        return [_RawPreferences(self.session, TOGETHER)]


class _RawPreferences(PodPreferences):
    """As the terms' weights add up, not rescaled over the nodes."""

    normalises = False
