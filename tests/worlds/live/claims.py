"""Claims on volumes and devices for live tests."""

from __future__ import annotations

from typing import Any

from navarch.kube.resources import Resource

CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)


CLAIMS = Resource("", "v1", "persistentvolumeclaims")


VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)


SELECTED = "volume.kubernetes.io/selected-node"


DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)


SLICES = Resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)


RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims")


def with_claim(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}
