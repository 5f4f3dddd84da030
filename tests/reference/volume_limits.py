"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach."""

from __future__ import annotations

from tests.reference.claims import ClaimUse, claim_missing, claim_of_volume, class_name, find_claim, ownership_problem, volumes_of
from tests.reference.cluster import Object, labels_of, name_of, namespace_of
from tests.reference.plugin import Plugin
from tests.reference.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable

# in-tree source: (provisioner, CSI driver, field that identifies the disk)
IN_TREE = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "volumeID"),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "pdName"),
    "azureDisk": ("kubernetes.io/azure-disk", "disk.csi.azure.com", "diskURI"),
    "cinder": ("kubernetes.io/cinder", "cinder.csi.openstack.org", "volumeID"),
    "portworxVolume": ("kubernetes.io/portworx-volume", "pxd.portworx.com", "volumeID"),
}
DRIVER_OF = {provisioner: driver for provisioner, driver, _ in IN_TREE.values()}
MIGRATABLE = (*IN_TREE, "azureFile", "vsphereVolume")

Volume = tuple[str, str]


class Refused(Exception):
    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


class NodeVolumeLimits(Plugin):
    def pre_filter(self) -> Status:
        for volume in volumes_of(self.pod):
            if claim_of_volume(self.pod, volume) or any(volume.get(kind) is not None for kind in MIGRATABLE):
                return SUCCESS
        return SKIP

    def filter(self, node: Object) -> Status:
        csi_node = self.cluster.find("CSINode", name_of(node))
        try:
            new = self._attachable(self.pod, csi_node, incoming=True)
            if not new:
                return SUCCESS
            limits = self._limits(csi_node)
            if not limits:
                return SUCCESS
            used: set[Volume] = set()
            for pod in self.cluster.pods_on(name_of(node)):
                used |= self._attachable(pod, csi_node, incoming=False)
        except Refused as refused:
            return refused.status
        new -= used
        # A volume that is only attached is not used by a pod yet: it stays in `new` and counts twice.
        attached = used | self._attached(node)
        for driver in {driver for driver, _ in new} & set(limits):
            if sum(d == driver for d, _ in attached) + sum(d == driver for d, _ in new) > limits[driver]:
                return unschedulable("node(s) exceed max volume count")
        return SUCCESS

    @staticmethod
    def _limits(csi_node: Object | None) -> dict[str, int]:
        drivers = ((csi_node or {}).get("spec") or {}).get("drivers") or ()
        return {
            driver["name"]: driver["allocatable"]["count"]
            for driver in drivers
            if (driver.get("allocatable") or {}).get("count") is not None
        }

    def _attached(self, node: Object) -> set[Volume]:
        found = set()
        for attachment in self.cluster.of_kind("VolumeAttachment"):
            spec = attachment["spec"]
            name = spec["source"].get("persistentVolumeName")
            if spec["nodeName"] == name_of(node) and name:
                volume = self.cluster.find("PersistentVolume", name)
                if volume is not None and volume["spec"].get("csi"):
                    found.add((spec["attacher"], volume["spec"]["csi"]["volumeHandle"]))
        return found

    def _attachable(self, pod: Object, csi_node: Object | None, *, incoming: bool) -> set[Volume]:
        found: set[Volume] = set()
        for volume in volumes_of(pod):
            claim = claim_of_volume(pod, volume)
            identity = self._in_tree(volume, {}, csi_node) if claim is None else self._claimed(pod, claim, csi_node, incoming)
            if identity:
                found.add(identity)
        return found

    def _claimed(self, pod: Object, use: ClaimUse, csi_node: Object | None, incoming: bool) -> Volume | None:
        claim = find_claim(self.cluster, pod, use)
        if claim is None:
            if incoming:
                missing = f"looking up PVC {namespace_of(pod)}/{use.name}: {claim_missing(use.name)}"
                raise Refused(unresolvable(missing))
            return None
        if use.ephemeral and (problem := ownership_problem(pod, claim)):
            raise Refused(error(problem))
        volume = self.cluster.find("PersistentVolume", claim["spec"].get("volumeName") or "")
        if volume is None:
            return self._to_be_made(claim, csi_node)
        if csi := volume["spec"].get("csi"):
            return csi["driver"], csi["volumeHandle"]
        return self._in_tree(volume["spec"], labels_of(volume), csi_node)

    def _to_be_made(self, claim: Object, csi_node: Object | None) -> Volume | None:
        storage_class = self.cluster.find("StorageClass", class_name(claim))
        if storage_class is None:
            return None
        driver = storage_class.get("provisioner") or ""
        if driver in DRIVER_OF:
            if csi_node is None:
                return None
            driver = DRIVER_OF[driver]
        return (driver, f"claim {namespace_of(claim)}/{name_of(claim)}") if driver else None

    @staticmethod
    def _in_tree(source: Object, labels: dict[str, str], csi_node: Object | None) -> Volume | None:
        for kind, (_, driver, field) in IN_TREE.items():
            if source.get(kind) is not None and csi_node is not None:
                handle = str(source[kind].get(field) or "").rsplit("/", 1)[-1]
                if kind == "gcePersistentDisk":
                    handle = f"{labels.get('topology.kubernetes.io/zone', '')}/{handle}"
                return driver, handle
        return None
