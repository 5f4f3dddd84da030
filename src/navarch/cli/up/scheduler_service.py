"""The Service of the scheduler in the embedded cluster, by which clients reach its endpoint through the API server's proxy.

The scheduler of `navarch up` runs in no pod. A Service without a selector and an EndpointSlice with the port on loopback stand for it,
so `navarch jobs` reads the leader's pages here as in a real cluster.
"""

from __future__ import annotations

from typing import Final

from navarch.embedded.api.operations import Operations
from navarch.embedded.api.subresources.proxy import SERVICE_NAME, SLICES
from navarch.manifests.installation import NAME
from navarch.object_types import Manifest

SERVICE: Final = NAME
_PORT: Final = "http"


def serve_scheduler(operations: Operations, namespace: str, port: int) -> None:
    """Make both objects, or update those that an earlier run left in the data directory."""
    ports = [{"name": _PORT, "port": port, "protocol": "TCP", "targetPort": port}]
    _put(operations, "services", namespace, {"metadata": {"name": SERVICE}, "spec": {"clusterIP": "None", "ports": ports}})
    endpoints = [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]
    content = {"addressType": "IPv4", "endpoints": endpoints, "ports": [{"name": _PORT, "port": port, "protocol": "TCP"}]}
    _put(operations, SLICES, namespace, {"metadata": {"name": SERVICE, "labels": {SERVICE_NAME: SERVICE}}, **content})


def _put(operations: Operations, resource: str, namespace: str, body: Manifest) -> None:
    kind, name = operations.kind(resource), body["metadata"]["name"]
    if operations.store.find(kind.stored, namespace, name) is not None:
        operations.store.delete(kind.stored, namespace, name)
    operations.create(kind, namespace, body)
