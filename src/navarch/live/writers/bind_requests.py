"""KAI's way to bind: instead of a binding, write a BindRequest for KAI's binder, which knows how to share a GPU.

This is used for pods of KAI's groups if the kind is served, and for all pods of KAI's scheduler if there are signs of KAI's
controllers (`awaited_groups`), so that Navarch can replace the scheduler in an installation of KAI.
From the moment the watch shows the request, the request decides: while it is in progress, its pod counts on its node. A request is
removed if the binder gave it up, if its node is gone, or if it was for an older pod of the same name. Then the pod is decided again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from navarch.apis.kai.objects import zone_amounts
from navarch.apis.kai.sub_groups import SCHEDULER_NAME
from navarch.kube.client import Client
from navarch.kube.errors import KubeError, NotFound
from navarch.kube.resources import Resource
from navarch.kube.write.pool import Priority, Write
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.request_turns import RequestTurns
from navarch.model.objects.bind_requests import BindRequestSpec
from navarch.model.spec import TaskSpec

log = logging.getLogger(__name__)

RESOURCE = Resource("scheduling.run.ai", "v1alpha2", "bindrequests")
KIND = "BindRequest"
BACKOFF_LIMIT = 3
UNANSWERED = 30.0
"""Seconds after which a request without an answer is reported."""
NO_BINDER = "is KAI's binder running? Without it start navarch with --no-bind-requests, which binds by itself"
GPU_MEMORY_LABEL = "nvidia.com/gpu.memory"


class BindRequests:
    """`served()`: whether the kind is served now. `enabled` False: requests are never used. `devices(uid)`: the fields of a request
    that name the devices of the pod's claims."""

    def __init__(
        self,
        client: Client,
        cache: ClusterCache,
        served: Callable[[], bool],
        *,
        enabled: bool,
        devices: Callable[[str], dict[str, Any]] = lambda uid: {},
    ) -> None:
        self.turns = RequestTurns(cache)
        self._devices = devices
        self._client = client
        self._cache = cache
        self._served = served
        self._enabled = enabled
        self._removing: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._waiting: dict[tuple[str, str], float] = {}
        """Request without an answer of a binder -> since when."""
        self._complained = False

    def used_for(self, job: str) -> bool:
        """Whether pods of this job are bound by KAI's binder."""
        cluster = self._cache.cluster
        row = cluster.jobs.rows.of.get(job)
        spec = cluster.jobs.specs[row] if row is not None else None
        if spec is None or not self._enabled or not self._served():
            return False
        return spec.dialect == "kai" or self._is_for_kai(job)

    def _is_for_kai(self, job: str) -> bool:
        """Whether KAI's controllers are there, and these are pods of KAI's scheduler, whatever made their group."""
        awaited, first = self._cache.awaited_groups, self._cache.cluster.first_task(job)
        return awaited is not None and awaited.installed and first is not None and first.scheduler_name == SCHEDULER_NAME

    def write(self, bind: AssumedBind) -> Write | None:
        """The write of the request; None if the pod is gone."""
        task = self._cache.cluster.task(bind.uid)
        if task is None:
            return None
        labels = {"selected-node": bind.node}
        settings = self._cache.settings
        if settings.node_pool_key and settings.node_pool:
            labels[settings.node_pool_key] = settings.node_pool
        owner = {"apiVersion": "v1", "kind": "Pod", "name": bind.name, "uid": bind.uid}
        body = {
            "apiVersion": RESOURCE.api_version,
            "kind": KIND,
            "metadata": {"name": bind.name, "namespace": bind.namespace, "labels": labels, "ownerReferences": [owner]},
            "spec": {
                "podName": bind.name,
                "selectedNode": bind.node,
                "backoffLimit": BACKOFF_LIMIT,
                **self._received(bind, task),
                **self._devices(bind.uid),
                **({"predictedNUMAZones": zone_amounts(bind.numa_placement)} if bind.numa_placement else {}),
            },
        }
        path = RESOURCE.path(bind.namespace)
        return Write("POST", path, msgspec.json.encode(body), priority=Priority.BINDING)

    def _received(self, bind: AssumedBind, task: TaskSpec) -> dict[str, Any]:
        devices = task.shape.devices
        whole = sum(amount for name, amount in task.shape.requests if name.endswith(("/gpu", ".gpu"))) // 1000
        if devices is not None and (devices.fraction or devices.memory):
            portion = devices.fraction / 1000 if devices.fraction else devices.memory / self._gpu_memory(bind.node)
            return {
                "receivedResourceType": "Fraction",
                "receivedGPU": {"count": devices.count, "portion": f"{portion:.2f}"},
                "selectedGPUGroups": list(bind.gpu_groups),
            }
        if devices is not None and devices.profiles:
            return {"receivedResourceType": "MigInstance", "receivedGPU": {"count": 0, "portion": "0.00"}}
        return {"receivedResourceType": "Regular", "receivedGPU": {"count": whole, "portion": "1.00"}}

    def _gpu_memory(self, node: str) -> float:
        row = self._cache.cluster.nodes.rows.of.get(node)
        spec = self._cache.cluster.nodes.specs[row] if row is not None else None
        text = spec.labels.get(GPU_MEMORY_LABEL, "") if spec is not None else ""
        return float(text) if text.isdecimal() and int(text) else 1.0

    def clean(self) -> None:
        """Remove requests that will never be carried out: given up, or for a node or a pod that is gone."""
        for (namespace, name), request in self._cache.cluster.objects.get(KIND, {}).items():
            if isinstance(request, BindRequestSpec) and (namespace, name) not in self._removing and (why := self._useless(request)):
                log.warning("BindRequest %s/%s %s: it is removed", namespace, name, why)
                task = asyncio.get_running_loop().create_task(self._remove(namespace, name))
                self._removing[namespace, name] = task

    def unanswered(self, now: float) -> list[TaskSpec]:
        """Pods whose requests have had no answer for too long: the binder probably does not run. Logged when it starts."""
        before, cluster = self._waiting, self._cache.cluster
        requests = cluster.objects.get(KIND, {})
        self._waiting = {key: before.get(key, now) for key, request in requests.items() if not request.phase}
        late = [key for key, since in self._waiting.items() if now - since >= UNANSWERED]
        found = [(key, self._cache.pods.get(key)) for key in late]
        tasks = [task for _, pod in found if pod is not None and (task := cluster.task(pod.metadata.uid or "")) is not None]
        if tasks and not self._complained:
            log.warning("%d BindRequests have had no answer for %.0f s: %s", len(tasks), UNANSWERED, NO_BINDER)
        self._complained = bool(tasks)
        return tasks

    def _useless(self, request: BindRequestSpec) -> str:
        """Why the request will never be carried out; empty if it may be."""
        cluster = self._cache.cluster
        if request.is_given_up:
            return f"failed {request.failed_attempts} times"
        pod = self._cache.pods.get((request.namespace, request.pod))
        if pod is not None and request.pod_uid and pod.metadata.uid != request.pod_uid:
            return "is for an older pod of that name"
        row = cluster.nodes.rows.of.get(request.node)
        if request.is_under_way and (row is None or not cluster.nodes.alive[row]) and self._cache.settings.is_in_pool(request.labels):
            return f"is for node {request.node}, which is gone"
        return ""

    async def _remove(self, namespace: str, name: str) -> None:
        try:
            await self._client.delete(RESOURCE, name, namespace=namespace)
        except NotFound:
            pass
        except KubeError as error:
            log.warning("BindRequest %s/%s was not removed: %s", namespace, name, error)
        finally:
            self._removing.pop((namespace, name), None)
