"""Pods that need config maps which are not in the input.

Only namespaces with at least one config map in the input are checked: every namespace of a cluster has one, so an input without any
leaves them out on purpose. A pod needs the config maps that its mounted volumes and its environment name, unless they are optional.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from navarch.object_types import ObjectKey
from navarch.offline.manifests import Document

_SHARED_GPU = "runai/shared-gpu-configmap"
"""Annotation with the prefix of a config map that is created when the pod is bound."""


def missing_config_maps(documents: Iterable[Document]) -> dict[ObjectKey, list[str]]:
    """Pod -> names of the config maps that it needs and that do not exist."""
    given: dict[str, set[str]] = {}
    pods: dict[ObjectKey, Mapping[str, Any]] = {}
    for document in documents:
        meta = document.manifest.get("metadata")
        if not isinstance(meta, Mapping):
            continue
        namespace, name = str(meta.get("namespace") or "default"), str(meta.get("name"))
        if document.manifest.get("kind") == "ConfigMap":
            given.setdefault(namespace, set()).add(name)
        elif document.manifest.get("kind") == "Pod":
            pods[namespace, name] = document.manifest
    found = {}
    for (namespace, name), pod in pods.items():
        if namespace in given:
            lacks = sorted(needed_config_maps(pod) - given[namespace])
            if lacks:
                found[namespace, name] = lacks
    return found


def needed_config_maps(pod: Mapping[str, Any]) -> set[str]:
    """
    >>> env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}]
    >>> sorted(needed_config_maps({"spec": {"containers": [{"name": "c", "env": env}]}}))
    ['settings']
    """
    spec = _mapping(pod.get("spec"))
    containers = [c for kind in ("initContainers", "containers", "ephemeralContainers") for c in _mappings(spec.get(kind))]
    mounted = {mount.get("name") for container in containers for mount in _mappings(container.get("volumeMounts"))}
    references = [*_in_volumes(spec, mounted), *(each for container in containers for each in _in_environment(container))]
    made = _mapping(_mapping(pod.get("metadata")).get("annotations")).get(_SHARED_GPU)
    names = {str(each["name"]) for each in references if each.get("name") and not each.get("optional")}
    return {name for name in names if not (made and name.startswith(str(made)))}


def _in_volumes(spec: Mapping[str, Any], mounted: set[Any]) -> Iterator[Mapping[str, Any]]:
    for volume in _mappings(spec.get("volumes")):
        if volume.get("name") in mounted:
            yield _mapping(volume.get("configMap"))
            for source in _mappings(_mapping(volume.get("projected")).get("sources")):
                yield _mapping(source.get("configMap"))


def _in_environment(container: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for variable in _mappings(container.get("env")):
        yield _mapping(_mapping(variable.get("valueFrom")).get("configMapKeyRef"))
    for source in _mappings(container.get("envFrom")):
        yield _mapping(source.get("configMapRef"))


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _mappings(found: object) -> list[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
