"""VolumeRestrictions: disks that one node, and claims that one pod, may hold."""

from __future__ import annotations

from tests.reference.claims import claim_missing, volumes_of
from tests.reference.cluster import Object, name_of, namespace_of
from tests.reference.plugin import Plugin
from tests.reference.status import SKIP, SUCCESS, Status, unresolvable, unschedulable

DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi")


def clash(left: Object, right: Object) -> bool:
    """Whether two volumes are the same disk in a way that one node cannot serve."""
    for kind in DISKS:
        if left.get(kind) is None or right.get(kind) is None:
            continue
        one, other = left[kind], right[kind]
        read_only = bool(one.get("readOnly")) and bool(other.get("readOnly"))
        if kind == "awsElasticBlockStore":
            return bool(one.get("volumeID") == other.get("volumeID"))
        if read_only:
            return False
        if kind == "gcePersistentDisk":
            return bool(one.get("pdName") == other.get("pdName"))
        if kind == "iscsi":
            return bool(one.get("iqn") == other.get("iqn"))
        shared = set(one.get("monitors") or ()) & set(other.get("monitors") or ())
        return bool(shared) and one.get("pool") == other.get("pool") and one.get("image") == other.get("image")
    return False


def claim_names(pod: Object) -> list[str]:
    return [v["persistentVolumeClaim"].get("claimName") or "" for v in volumes_of(pod) if v.get("persistentVolumeClaim")]


class VolumeRestrictions(Plugin):
    def pre_filter(self) -> Status:
        self.exclusive = set()
        for name in claim_names(self.pod):
            claim = self.cluster.find("PersistentVolumeClaim", name, namespace_of(self.pod))
            if claim is None:
                return unresolvable(claim_missing(name))
            if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
                self.exclusive.add(name)
        held = {name for pod in self.cluster.all_placed() if namespace_of(pod) == namespace_of(self.pod) for name in claim_names(pod)}
        self.conflicts = len(self.exclusive & held)
        has_disk = any(volume.get(kind) is not None for volume in volumes_of(self.pod) for kind in DISKS)
        return SUCCESS if has_disk or self.conflicts else SKIP

    def pod_added(self, pod: Object, node: Object) -> None:
        # The dry run compares names only, not namespaces.
        self.conflicts += sum(name in self.exclusive for name in claim_names(pod))

    def pod_removed(self, pod: Object, node: Object) -> None:
        self.conflicts -= sum(name in self.exclusive for name in claim_names(pod))

    def filter(self, node: Object) -> Status:
        for pod in self.cluster.pods_on(name_of(node)):
            if any(clash(mine, theirs) for mine in volumes_of(self.pod) for theirs in volumes_of(pod)):
                return unschedulable("node(s) had no available disk")
        if self.conflicts > 0:
            return unschedulable(
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
            )
        return SUCCESS
