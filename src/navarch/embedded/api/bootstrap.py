"""What every cluster has from its first moment: system namespaces, system priority classes, the kubernetes service, our CRDs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib import resources

import yaml

from navarch.apis.admission.admission import SYSTEM_PRIORITY_CLASSES
from navarch.embedded.api.admission import SYSTEM_NAMESPACES
from navarch.embedded.api.kinds.crds import RESOURCE
from navarch.embedded.api.operations import Operations
from navarch.object_types import Manifest

log = logging.getLogger(__name__)


def bootstrap(operations: Operations) -> None:
    """Create what is missing; what is there is left as it is."""
    for name in SYSTEM_NAMESPACES:
        ensure_namespace(operations, name)
    for name, value in SYSTEM_PRIORITY_CLASSES.items():
        about = "Used for system critical pods that must run in the cluster"
        obj = {"metadata": {"name": name}, "value": value, "description": about}
        _ensure(operations, "priorityclasses.scheduling.k8s.io", "", obj)
    service = {
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
    }
    _ensure(operations, "services", "default", service)
    for definition in preloaded_definitions():
        _ensure(operations, RESOURCE, "", definition)


def ensure_namespace(operations: Operations, name: str) -> None:
    _ensure(operations, "namespaces", "", {"metadata": {"name": name}})


def _ensure(operations: Operations, resource: str, namespace: str, obj: Manifest) -> None:
    kind = operations.kind(resource)
    if operations.store.find(kind.stored, namespace, obj["metadata"]["name"]) is None:
        operations.create(kind, namespace, obj)


def preloaded_definitions() -> Iterator[Manifest]:
    """The CustomResourceDefinitions of our dialects, package data in navarch/manifests/crds."""
    folder = resources.files("navarch") / "manifests" / "crds"
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir(), key=lambda each: each.name):
        if path.name.endswith((".yaml", ".yml")):
            for document in yaml.load_all(path.read_bytes(), Loader=yaml.CSafeLoader):
                if document and document.get("kind") == "CustomResourceDefinition":
                    yield document
