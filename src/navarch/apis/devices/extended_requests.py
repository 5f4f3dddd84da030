"""Extended resources of a pod by container, for claims that stand for them (see model/objects/extended_claims)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navarch.engine.record import ClaimAllocation
from navarch.model.objects.devices import RESOURCE_CLAIM
from navarch.model.objects.extended_claims import CLASS_PREFIX, EXTENDED_CLAIM, ContainerRequest, DeviceRequests, device_requests
from navarch.model.quantity import NANO, parse_nano
from navarch.model.resources import is_extended
from navarch.model.spec import TaskSpec

PROTECTION = "resource.kubernetes.io/delete-protection"
LONGEST_BASE = 247
"""Of a claim's name, before its random part."""
Requests = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


def container_requests(spec: Mapping[str, Any]) -> list[ContainerRequest]:
    """Init containers, then the others. `spec` is a pod's, decoded."""
    found = []
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            amounts = ((container.get("resources") or {}).get("requests") or {}).items()
            is_init = kind == "initContainers" and container.get("restartPolicy") != "Always"
            asked = tuple(sorted((name, _whole(parse_nano(amount))) for name, amount in amounts))
            found.append(ContainerRequest(container.get("name") or "", is_init, asked))
    return found


def is_device_resource(name: str) -> bool:
    return is_extended(name) or name.startswith(CLASS_PREFIX)


def extended_requests(spec: Mapping[str, Any]) -> Requests:
    """For each extended resource of a pod: the requests of a claim that would stand for it."""
    containers = container_requests(spec)
    names = {name for container in containers for name, amount in container.requests if amount and is_device_resource(name)}
    return tuple((name, device_requests(containers, name).requests) for name in sorted(names))


def request_mappings(spec: Mapping[str, Any], resources: Mapping[str, object]) -> list[dict[str, str]]:
    """`status.extendedResourceClaimStatus.requestMappings` of a pod whose claim stands for these resources."""
    containers = container_requests(spec)
    found: list[dict[str, str]] = []
    for resource in sorted(resources):
        made: DeviceRequests = device_requests(containers, resource)
        uses = [{"containerName": name, "resourceName": resource, "requestName": request} for name, request in made.uses]
        found += uses
    return found


def extended_claim(task: TaskSpec, found: ClaimAllocation, version: str, suffix: str) -> dict[str, Any]:
    """The claim that stands for a pod's extended resources, without its status. `version` of resource.k8s.io."""
    requests = []
    for _, name, device_class, count in sorted(found.extended, key=lambda entry: entry[1]):
        exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
        requests.append({"name": name, **exactly} if version == "v1beta1" else {"name": name, "exactly": exactly})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": task.name, "uid": task.uid, "controller": True}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": RESOURCE_CLAIM,
        "metadata": {
            "namespace": task.namespace,
            "name": f"{task.name[: LONGEST_BASE - len('-extended-resources-')]}-extended-resources-{suffix}",
            "annotations": {EXTENDED_CLAIM: "true"},
            "ownerReferences": [owner],
            "finalizers": [PROTECTION],
        },
        "spec": {"devices": {"requests": requests}},
    }


def _whole(nano: int) -> int:
    return 0 if nano % NANO else nano // NANO
