"""VolumeZone: a volume with a zone can only be mounted there."""

from __future__ import annotations

from tests.reference.claims import claim_missing, class_name, volumes_of
from tests.reference.cluster import Object, labels_of, namespace_of
from tests.reference.plugin import Plugin
from tests.reference.status import SKIP, SUCCESS, Status, unresolvable

GA_LABEL = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONE_LABELS = (*GA_LABEL, *GA_LABEL.values())


def zones(value: str) -> set[str]:
    parts = {part.strip() for part in value.split("__")}
    return set() if "" in parts else parts


class VolumeZone(Plugin):
    def pre_filter(self) -> Status:
        self.demands: list[tuple[str, set[str]]] = []
        for volume in volumes_of(self.pod):
            if volume.get("persistentVolumeClaim") is None:
                continue
            problem = self._look_up(volume["persistentVolumeClaim"].get("claimName") or "")
            if problem:
                return unresolvable(problem)
        return SUCCESS if self.demands else SKIP

    def _look_up(self, name: str) -> str:
        if not name:
            return "PersistentVolumeClaim had no name"
        claim = self.cluster.find("PersistentVolumeClaim", name, namespace_of(self.pod))
        if claim is None:
            return claim_missing(name)
        volume_name = claim["spec"].get("volumeName")
        if not volume_name:
            return self._unbound(class_name(claim))
        volume = self.cluster.find("PersistentVolume", volume_name)
        if volume is None:
            return f'persistentvolume "{volume_name}" not found'
        for key in ZONE_LABELS:
            allowed = zones(labels_of(volume)[key]) if key in labels_of(volume) else set()
            if allowed:
                self.demands.append((key, allowed))
        return ""

    def _unbound(self, wanted: str) -> str:
        if not wanted:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        storage_class = self.cluster.find("StorageClass", wanted)
        if storage_class is None:
            return f'storageclass.storage.k8s.io "{wanted}" not found'
        mode = storage_class.get("volumeBindingMode")
        if mode is None:
            return f'VolumeBindingMode not set for StorageClass "{wanted}"'
        return "" if mode == "WaitForFirstConsumer" else "PersistentVolume had no name"

    def filter(self, node: Object) -> Status:
        labels = labels_of(node)
        if not any(key in labels for key in ZONE_LABELS):
            return SUCCESS
        for key, allowed in self.demands:
            found = labels.get(key, labels.get(GA_LABEL.get(key, key)))
            if found not in allowed:
                return unresolvable("node(s) had no available volume zone")
        return SUCCESS
