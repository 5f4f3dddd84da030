"""A cluster that is full of running pods before a scheduler starts: nodes and pods written straight into etcd.

Created one by one through the API, a hundred thousand pods and their statuses would take minutes of both cores. The pods are those of
`bench.cold`: 20 to a ReplicaSet, running, with the fields that an API server and a kubelet add.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from tests.envtest.server import KubeApiServer

from bench import cold
from bench.live import measure, objects
from bench.live.observer import Observer
from bench.live.wire import Target

MANAGED_FIELDS = 20
"""Fields of the status that the kubelet owns, as managedFields lists them."""


@contextlib.asynccontextmanager
async def full_cluster(nodes: int, pods: int) -> AsyncIterator[tuple[KubeApiServer, Observer]]:
    """A server with that many running pods, spread evenly over its nodes, and an observer of its bindings."""
    async with measure.server() as server:
        await measure.prepare(server, nodes)
        await asyncio.to_thread(server.store, _entries(nodes, pods))
        async with Observer(Target.read(server.kubeconfig)) as observer:
            yield server, observer


def _entries(nodes: int, pods: int) -> Iterator[tuple[str, bytes]]:
    for number in range(pods):
        found = pod(number, nodes)
        metadata = found["metadata"]
        yield f"pods/{metadata['namespace']}/{metadata['name']}", json.dumps(found, separators=(",", ":")).encode()


def pod(number: int, nodes: int) -> dict[str, Any]:
    """As it is stored. The version of a stored object is its revision in etcd."""
    found = {"apiVersion": "v1", "kind": "Pod", **cold.pod(number, nodes)}
    metadata, spec = found["metadata"], found["spec"]
    del metadata["resourceVersion"]
    metadata["uid"] = f"00000000-0000-4000-8000-{number:012x}"
    metadata["ownerReferences"][0]["apiVersion"] = "apps/v1"
    owned: dict[str, Any] = {f"f:field-{index}": {".": {}, "f:type": {}} for index in range(MANAGED_FIELDS)}
    metadata["managedFields"] = [
        {
            "manager": "kubelet",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:02Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": owned},
            "subresource": "status",
        }
    ]
    spec["nodeName"] = objects.node_name(number % nodes)
    for mount in spec["containers"][0]["volumeMounts"]:
        mount["mountPath"] = "/var/run/secrets/kubernetes.io/serviceaccount"
    return found
