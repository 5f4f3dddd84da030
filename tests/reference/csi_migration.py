"""An in-tree volume seen through its CSI driver: the zone moves to the driver's topology label."""

from __future__ import annotations

from copy import deepcopy

from tests.reference.cluster import Object, annotations_of, labels_of
from tests.reference.volume_limits import IN_TREE
from tests.reference.volume_zone import GA_LABEL

MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
TOPOLOGY_KEY = {
    "kubernetes.io/aws-ebs": "topology.ebs.csi.aws.com/zone",
    "kubernetes.io/gce-pd": "topology.gke.io/zone",
    "kubernetes.io/azure-disk": "topology.disk.csi.azure.com/zone",
    "kubernetes.io/cinder": "topology.cinder.csi.openstack.org/zone",
}
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
GA_ZONE = GA_LABEL[BETA_ZONE]


def volume_as_csi(volume: Object, csi_node: Object | None) -> Object:
    """The volume with its zone under the CSI key, where the node has the driver in charge; else as it is."""
    plugin = next((provisioner for kind, (provisioner, _, _) in IN_TREE.items() if volume["spec"].get(kind) is not None), "")
    migrated = annotations_of(csi_node).get(MIGRATED, "").split(",") if csi_node is not None else []
    if plugin not in migrated or plugin not in TOPOLOGY_KEY:
        return volume
    volume = deepcopy(volume)
    key = TOPOLOGY_KEY[plugin]
    required = ((volume["spec"].get("nodeAffinity") or {}).get("required")) or {}
    terms = required.get("nodeSelectorTerms") or []
    mentioned = [e for term in terms for e in term.get("matchExpressions") or () if e["key"] in (GA_ZONE, BETA_ZONE)]
    for expression in mentioned:
        expression["key"] = key
    zone = labels_of(volume).get(GA_ZONE, labels_of(volume).get(BETA_ZONE))
    if mentioned or zone is None:
        return volume
    demand = {"key": key, "operator": "In", "values": zone.split("__")}
    terms = terms or [{}]
    for term in terms:
        term["matchExpressions"] = [*(term.get("matchExpressions") or ()), demand]
    volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return volume
