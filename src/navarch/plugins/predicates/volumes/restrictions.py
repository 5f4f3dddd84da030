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
from navarch.model.spec import VolumeUse
from navarch.model.status import ON_NODE
from navarch.plugins.predicates.pods.placed_pods import placed_pods, watch_pods
from navarch.plugins.predicates.volumes.claims import find_claim, missing, unusable

DISK_TAKEN = "node(s) had no available disk"
CLAIM_TAKEN = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
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
    """How many pods use each claim, wherever they stand, on unknown nodes too; and what the trial under way moves.

    Kube-scheduler counts the claims in use when an attempt begins, by namespace and once each. What a dry run takes away or
    puts back then moves that sum by one for every volume which names such a claim, in whatever namespace: two pods that held
    one claim both leave, and the first of them may come back."""

    def __init__(self, session: Session) -> None:
        self.uses: Counter[tuple[str, str]] = Counter()
        self.imagined: Counter[str] = Counter()
        """Claim name -> how many more uses of it there are in the trial than without it, maybe below zero."""
        tasks, shapes = session.snapshot.tasks, session.snapshot.shapes
        flags = np.array([bool(shape.volumes and shape.volumes.claims) for shape in shapes], dtype=bool)
        self._placed = placed = placed_pods(session)
        lost = tasks.alive & ON_NODE[tasks.status] & (placed.opening < 0)
        for row in np.flatnonzero(((placed.where >= 0) | lost) & flags[session.shape]).tolist():
            self._count(session.task(row).namespace, shapes[session.shape[row]].volumes, 1)
        for task, _, nodes, step in placed.moved_in_trial:
            self._count(task.namespace, task.shape.volumes, -step * len(nodes))
            self._imagine(task.shape.volumes, step * len(nodes))
        placed.listen(self._moved)

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        if self._placed.journal is None:
            self._count(task.namespace, task.shape.volumes, step * len(tasks))
        else:
            self._imagine(task.shape.volumes, step * len(tasks))

    def _count(self, namespace: str, used: VolumeUse | None, step: int) -> None:
        for name in claim_names(used):
            self.uses[namespace, name] += step

    def _imagine(self, used: VolumeUse | None, step: int) -> None:
        for name in claim_names(used):
            self.imagined[name] += step


def claim_names(used: VolumeUse | None) -> list[str]:
    return [name for name, ephemeral in used.claims if not ephemeral] if used else []


class VolumeRestrictions(NodeFilter):
    name = "VolumeRestrictions"
    scope = Scope.GLOBAL
    resolvable = True
    undone_by = (Event.POD_REMOVED, Event.VOLUME_CHANGED, Event.NODE_ADDED)

    def __init__(self, session: Session) -> None:
        self.session = session
        watch_pods(session, lambda shape: shape.volumes)

    def applies(self, task: TaskClass) -> bool:
        return _has_disk(task) or any(
            (claim := find_claim(self.session.snapshot, task.namespace, name)) is None or EXCLUSIVE in claim.access_modes
            for name in claim_names(task.shape.volumes)
        )

    def reject(self, task: TaskClass) -> Rejection | None:
        for name in claim_names(task.shape.volumes):
            if find_claim(self.session.snapshot, task.namespace, name) is None:
                return unusable(missing(name))
        return None

    def _claim_taken(self, task: TaskClass) -> bool:
        exclusive = set()
        for name in claim_names(task.shape.volumes):
            claim = find_claim(self.session.snapshot, task.namespace, name)
            if claim is not None and EXCLUSIVE in claim.access_modes:
                exclusive.add(name)
        if not exclusive:
            return False
        used = self.session.shared(UsedClaims)
        taken = sum(used.uses[task.namespace, name] > 0 for name in exclusive)
        if not taken and not _has_disk(task):
            return False  # the rule rests for this attempt: pods that a trial adds are not looked at either
        return taken + sum(used.imagined[name] for name in exclusive) > 0

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


def _has_disk(task: TaskClass) -> bool:
    return task.shape.volumes is not None and any(kind in _KINDS for kind, _, _ in task.shape.volumes.disks)
