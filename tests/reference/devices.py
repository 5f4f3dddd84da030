"""Device classes that stand behind an extended resource, and how many such devices a node can reach."""

from __future__ import annotations

from tests.reference.cluster import Cluster, Object, labels_of, name_of
from tests.reference.device_selectors import selects

from navarch.model.selectors import node_selector_matches, read_node_selector

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"


def class_behind(cluster: Cluster, resource: str) -> Object | None:
    for device_class in cluster.of_kind("DeviceClass"):
        if device_class["spec"].get("extendedResourceName") == resource:
            return device_class
        if resource == CLASS_PREFIX + name_of(device_class):
            return device_class
    return None


def visible(slice_: Object, node: Object) -> bool:
    spec = slice_["spec"]
    if spec.get("allNodes"):
        return True
    if spec.get("nodeName"):
        return bool(spec["nodeName"] == name_of(node))
    if spec.get("nodeSelector") is not None:
        return node_selector_matches(read_node_selector(spec["nodeSelector"]) or (), labels_of(node), name_of(node))
    return True


def device_counts(cluster: Cluster, resource: str, node: Object) -> tuple[int, int]:
    """(all, allocated) devices of the class behind the resource that the node can reach."""
    device_class = class_behind(cluster, resource)
    if device_class is None:
        return 0, 0
    selectors = [each["cel"]["expression"] for each in device_class["spec"].get("selectors") or () if each.get("cel")]
    taken = {
        (result["driver"], result["pool"], result["device"])
        for claim in cluster.of_kind("ResourceClaim")
        for result in ((((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}).get("results") or ())
    }
    total = used = 0
    for slice_ in cluster.of_kind("ResourceSlice"):
        if not visible(slice_, node):
            continue
        spec = slice_["spec"]
        for device in spec.get("devices") or ():
            if all(selects(expression, spec["driver"], device) for expression in selectors):
                total += 1
                used += (spec["driver"], spec["pool"]["name"], device["name"]) in taken
    return total, used
