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


HOSTILE_SELECTORS = {
    "regex": f'"{"a" * 40}!".matches("(a+)+$")',
    "split": '"x".split("").size() < 0',
    "parentheses": "(" * 200 + "false" + ")" * 200,
    "or": "false||" * 1400 + "false",
    "not": "!" * 9999 + "true",
}
"""Selectors that a kube-apiserver accepts and that would stop a careless scheduler."""


def with_claim(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}
