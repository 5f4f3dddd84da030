"""Which volumes of a CSI driver a pod needs attached to its node, and what nodes hold and may hold of each driver.

A volume is (driver, handle): the same volume of several pods on one node is attached once. Volumes of in-tree kinds count as
their CSI driver's on nodes that report to CSI at all. Counts are kept by node and driver, and follow placements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from navarch.engine.node_functions import TaskClass
from navarch.engine.session import Session
from navarch.model.objects import storage
from navarch.model.objects.storage import CSI_DRIVER_OF, IN_TREE, ClaimSpec
from navarch.model.objects.typed import of_kind
from navarch.model.resources import UNLIMITED, IntArray
from navarch.model.snapshot import Snapshot
from navarch.model.spec import VolumeUse
from navarch.plugins.predicates.pods.placed_pods import placed_pods
from navarch.plugins.predicates.volumes.claims import csi_nodes, find_claim, storage_classes, volumes

Volume = tuple[str, str]
_ZONE = "topology.kubernetes.io/zone"


def in_tree_volume(kind: str, identity: str, zone: str = "") -> Volume | None:
    found = IN_TREE.get(kind)
    if found is None:
        return None
    handle = identity.rsplit("/", 1)[-1]
    return found[1], f"{zone}/{handle}" if kind == "gcePersistentDisk" else handle


def volume_of_claim(snapshot: Snapshot, claim: ClaimSpec) -> tuple[Volume | None, bool]:
    """(the volume, whether it counts only where the node reports to CSI)."""
    volume = volumes(snapshot).get(("", claim.volume))
    if volume is not None:
        if volume.csi is not None:
            return volume.csi, False
        if volume.in_tree is not None:
            return in_tree_volume(*volume.in_tree, volume.labels.get(_ZONE, "")), True
        return None, False
    found = storage_classes(snapshot).get(("", claim.storage_class))
    if found is None or not found.provisioner:
        return None, False
    driver = CSI_DRIVER_OF.get(found.provisioner, found.provisioner)
    return (driver, f"claim {claim.namespace}/{claim.name}"), found.provisioner in CSI_DRIVER_OF


def needed(snapshot: Snapshot, used: VolumeUse | None, namespace: str) -> dict[Volume, bool]:
    """Volumes of a pod -> whether each counts only on nodes that report to CSI. Claims that are missing are left out."""
    found: dict[Volume, bool] = {}
    for name, _ in used.claims if used else ():
        claim = find_claim(snapshot, namespace, name)
        if claim is not None:
            volume, only_csi = volume_of_claim(snapshot, claim)
            if volume is not None:
                found[volume] = only_csi and found.get(volume, True)
    for kind, identity, _ in used.disks if used else ():
        volume = in_tree_volume(kind, identity[0])
        if volume is not None:
            found.setdefault(volume, True)
    return found


class Attachable:
    """One object a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        snapshot, nodes = session.snapshot, session.snapshot.nodes
        self.size = len(nodes)
        self.limits: dict[str, IntArray] = {}
        self.reports = np.zeros(self.size, dtype=bool)
        """Nodes with a CSINode object."""
        for (_, name), csi in csi_nodes(snapshot).items():
            row = nodes.row(name)
            if row is not None:
                self.reports[row] = True
                for driver, count in csi.limits:
                    self.limits.setdefault(driver, np.full(self.size, UNLIMITED, dtype=np.int64))[row] = count
        self.pods: dict[Volume, Counter[int]] = {}
        """Volume -> node -> how many pods of the node use it."""
        self.attached: dict[Volume, set[int]] = {}
        self.used: dict[str, IntArray] = {}
        """Driver -> how many volumes of it each node has, in use or attached."""
        self._read_attachments(snapshot)
        placed = placed_pods(session)
        self._needs: dict[tuple[VolumeUse | None, str], dict[Volume, bool]] = {}
        for shape, rows in placed.of_shapes(lambda shape: shape.volumes):
            for row in rows.tolist():
                self._move(shape.volumes, session.task(row).namespace, (int(placed.where[row]),), 1)
        placed.listen(self._moved)

    def needs(self, used: VolumeUse | None, namespace: str) -> dict[Volume, bool]:
        found = self._needs.get((used, namespace))
        if found is None:
            found = self._needs[used, namespace] = needed(self.session.snapshot, used, namespace)
        return found

    def _read_attachments(self, snapshot: Snapshot) -> None:
        for attachment in of_kind(snapshot, storage.ATTACHMENT, storage.read_attachment).values():
            row = snapshot.nodes.row(attachment.node)
            volume = volumes(snapshot).get(("", attachment.volume))
            if row is not None and volume is not None and volume.csi is not None:
                held = (attachment.attacher, volume.csi[1])
                here = self.attached.setdefault(held, set())
                if row not in here:
                    here.add(row)
                    self._driver(held[0])[row] += 1

    def _driver(self, driver: str) -> IntArray:
        found = self.used.get(driver)
        if found is None:
            found = self.used[driver] = np.zeros(self.size, dtype=np.int64)
        return found

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        if task.shape.volumes is not None:
            self._move(task.shape.volumes, task.namespace, nodes, step)

    def _move(self, used: VolumeUse | None, namespace: str, nodes: Iterable[int], step: int) -> None:
        for volume, only_csi in self.needs(used, namespace).items():
            for node in nodes:
                if only_csi and not self.reports[node]:
                    continue
                here = self.pods.setdefault(volume, Counter())
                before = here[node]
                here[node] += step
                if (before > 0) != (here[node] > 0) and node not in self.attached.get(volume, ()):
                    self._driver(volume[0])[node] += step

    def too_many(self, used: VolumeUse | None, namespace: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Nodes where the volumes of a pod would exceed a driver's limit. One that is attached but unused counts twice."""
        out = np.zeros(self.size, dtype=bool)
        wanted: dict[str, list[tuple[Volume, bool]]] = {}
        for volume, only_csi in self.needs(used, namespace).items():
            wanted.setdefault(volume[0], []).append((volume, only_csi))
        for driver, found in wanted.items():
            limit = self.limits.get(driver)
            if limit is None:
                continue
            new = np.zeros(self.size, dtype=np.int64)
            for volume, only_csi in found:
                new += self.reports if only_csi else 1
                for node, count in self.pods.get(volume, {}).items():
                    new[node] -= 1 if count > 0 and (self.reports[node] or not only_csi) else 0
            out |= (new > 0) & (self._driver(driver) + new > limit)
        return out
