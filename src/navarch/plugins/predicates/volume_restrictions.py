"""VolumeRestrictions: disks that only one pod of a node may hold, and claims that only one pod of the cluster may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, Refusal, Rejection, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import ON_NODE
from navarch.plugins.predicates.claims import find_claim, missing
from navarch.plugins.predicates.placed_pods import placed_pods, watch_pods

DISK_TAKEN = "node(s) had no available disk"
CLAIM_TAKEN = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
EXCLUSIVE = "ReadWriteOncePod"
Disk = tuple[str, tuple[str, ...]]
_KINDS = ("gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi")


def clash(kind: str, mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Whether two disks of a kind are the same. RBD: pool, image, and any monitor in common; iSCSI: the qualified name."""
    if kind == "rbd":
        return mine[:2] == theirs[:2] and bool(set(mine[2:]) & set(theirs[2:]))
    return mine[0] == theirs[0]


class HeldDisks:
    """By disk, how many pods of each node hold it, and how many of them may write."""

    def __init__(self, session: Session) -> None:
        self.size = len(session.nodes)
        self.holders: dict[Disk, tuple[IntArray, IntArray]] = {}
        placed = placed_pods(session)
        for shape, rows in placed.of_shapes(lambda shape: shape.volumes and shape.volumes.disks):
            assert shape.volumes is not None
            self._move(shape.volumes.disks, placed.where[rows].tolist(), 1)
        placed.listen(self._moved)

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        if task.shape.volumes is not None and task.shape.volumes.disks:
            self._move(task.shape.volumes.disks, nodes, step)

    def _move(self, disks: Iterable[tuple[str, tuple[str, ...], bool]], nodes: Sequence[int], step: int) -> None:
        for kind, identity, read_only in disks:
            if kind not in _KINDS:
                continue
            held = self.holders.get((kind, identity))
            if held is None:
                held = self.holders[kind, identity] = np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)
            for node in nodes:
                held[0][node] += step
                held[1][node] += 0 if read_only else step

    def clashing(self, disks: Iterable[tuple[str, tuple[str, ...], bool]]) -> BoolArray:
        """Nodes where one of these disks is held in a way that excludes another holder."""
        out = np.zeros(self.size, dtype=bool)
        for kind, identity, read_only in disks:
            for (other, theirs), (holders, writers) in self.holders.items():
                if other == kind and clash(kind, identity, theirs):
                    out |= (writers if read_only and kind != "awsElasticBlockStore" else holders) > 0
        return out


class UsedClaims:
    """How many pods use each claim, wherever they stand, on unknown nodes too."""

    def __init__(self, session: Session) -> None:
        self.uses: Counter[tuple[str, str]] = Counter()
        tasks, shapes = session.snapshot.tasks, session.snapshot.shapes
        flags = np.array([bool(shape.volumes and shape.volumes.claims) for shape in shapes], dtype=bool)
        placed = placed_pods(session)
        lost = tasks.alive & ON_NODE[tasks.status] & (placed.opening < 0)
        for row in np.flatnonzero(((placed.where >= 0) | lost) & flags[session.shape]).tolist():
            self._count(session.task(row).namespace, shapes[session.shape[row]].volumes, 1)
        placed.listen(self._moved)

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        self._count(task.namespace, task.shape.volumes, step * len(tasks))

    def _count(self, namespace: str, volumes: object, step: int) -> None:
        for name, ephemeral in getattr(volumes, "claims", ()):
            if not ephemeral:
                self.uses[namespace, name] += step


class VolumeRestrictions(NodeFilter):
    name = "VolumeRestrictions"
    scope = Scope.GLOBAL
    resolvable = True
    undone_by = (Event.POD_REMOVED, Event.VOLUME_CHANGED, Event.NODE_ADDED)

    def __init__(self, session: Session) -> None:
        self.session = session
        self._free: dict[int, bool] = {}
        """Classes whose claims nobody held when the attempt began: then pods that a trial adds are not looked at either."""
        watch_pods(session, lambda shape: shape.volumes)

    def applies(self, task: TaskClass) -> bool:
        used = task.shape.volumes
        if used is None:
            return False
        claimed = [name for name, ephemeral in used.claims if not ephemeral]
        return any(kind in _KINDS for kind, _, _ in used.disks) or any(
            (claim := find_claim(self.session.snapshot, task.namespace, name)) is None or EXCLUSIVE in claim.access_modes
            for name in claimed
        )

    def reject(self, task: TaskClass) -> Rejection | None:
        for name, ephemeral in task.shape.volumes.claims if task.shape.volumes else ():
            if not ephemeral and find_claim(self.session.snapshot, task.namespace, name) is None:
                return Rejection(missing(name))
        self._free[task.number] = not task.shape.volumes or not (task.shape.volumes.disks or self._claim_taken(task))
        return None

    def _claim_taken(self, task: TaskClass) -> bool:
        if self._free.get(task.number) and placed_pods(self.session).journal is not None:
            return False
        used = self.session.shared(UsedClaims).uses
        for name, ephemeral in task.shape.volumes.claims if task.shape.volumes else ():
            claim = None if ephemeral else find_claim(self.session.snapshot, task.namespace, name)
            if claim is not None and EXCLUSIVE in claim.access_modes and used[claim.key] > 0:
                return True
        return False

    def _disk_taken(self, task: TaskClass, at: Figures) -> BoolArray:
        disks = [disk for disk in (task.shape.volumes.disks if task.shape.volumes else ()) if disk[0] in _KINDS]
        taken: BoolArray = self.session.shared(HeldDisks).clashing(disks)[at.rows]
        return taken

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        taken = self._disk_taken(task, at)
        return np.zeros_like(taken) if self._claim_taken(task) else ~taken

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        taken = self._disk_taken(task, at)
        claim = ~taken if self._claim_taken(task) else np.zeros_like(taken)
        return [Refusal(DISK_TAKEN, taken, code="VolumeRestrictions"), Refusal(CLAIM_TAKEN, claim, code="VolumeRestrictions")]
