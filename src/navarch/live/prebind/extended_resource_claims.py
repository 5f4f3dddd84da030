"""Extended resources that devices serve: the claim is made before the binding, with its devices and the pod as its user.

The pod's status then says which container uses which request of the claim, and the kubelet reads it there. If the pod is not bound
after all, the claim is removed again. A claim that an earlier attempt left, for example because the scheduler ended, is removed first.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from navarch.apis.devices.allocation_body import dropped_field
from navarch.apis.devices.extended_requests import extended_claim, request_mappings
from navarch.kube.client import PatchType
from navarch.kube.errors import KubeError, NotFound
from navarch.kube.resources import Resource
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cycle import Cycle
from navarch.live.prebind.claim_access import ClaimAccess
from navarch.live.prebind.preparation import PreparationFailed
from navarch.model.objects.devices import RESOURCE_CLAIM
from navarch.model.objects.extended_claims import EXTENDED_CLAIM

log = logging.getLogger(__name__)

PODS = Resource("", "v1", "pods")
Object = dict[str, Any]


class _Made(Struct):
    """`claim` without its status, which the claim gets after it exists."""

    claim: Object
    status: Object
    resources: dict[str, object]
    begun: bool = False
    mappings: list[dict[str, str]] = []
    """Which container uses which request; known once the pod was read."""


class ExtendedResourceClaims:
    def __init__(self, access: ClaimAccess) -> None:
        self._access = access
        self._client, self._cache = access.client, access.cache
        self._made: dict[str, _Made] = {}

    def wants(self, uid: str) -> bool:
        return uid in self._made

    def for_request(self, uid: str) -> Object:
        """The claim as KAI's BindRequest has it. KAI's binder finds the claim by its owner and makes none."""
        made = self._made.get(uid)
        if made is None:
            return {}
        allocated = {
            "allocation": made.status["allocation"],
            "deviceRequests": made.claim["spec"]["devices"]["requests"],
            "containerMappings": made.mappings,
        }
        return {"extendedResourceClaimAllocation": allocated}

    def plan(self, cycle: Cycle) -> None:
        decided = [each for each in cycle.record.claims if each.extended]
        if not decided:
            return
        body = self._access.allocation_body()
        for found in decided:
            task = self._cache.cluster.task(found.uid)
            if task is None:
                continue
            claim = extended_claim(task, found, self._access.resource().version, uuid.uuid4().hex[:5])
            status = {
                "allocation": body(found, claim),
                "reservedFor": [{"resource": "pods", "name": task.name, "uid": task.uid}],
            }
            made = self._made[found.uid] = _Made(claim, status, dict.fromkeys(resource for resource, _, _, _ in found.extended))
            namespace, name = _key(made)
            self._cache.assume_object(RESOURCE_CLAIM, namespace, name, {**claim, "status": status}, _has_devices)

    async def prepare(self, bind: AssumedBind) -> None:
        made = self._made[bind.uid]
        namespace, name = _key(made)
        try:
            for old in self._left_over(bind, name):
                await self._remove(namespace, old)
            pod = await self._client.get(PODS, bind.name, namespace=namespace)
            made.begun = True
            claim = await self._client.create(self._access.resource(), made.claim, namespace=namespace)
            body = {**claim, "status": made.status}
            kept = await self._client.update(self._access.resource(), name, body, namespace=namespace, subresource="status")
            made.mappings = request_mappings(pod["spec"], made.resources)
            status = {"extendedResourceClaimStatus": {"requestMappings": made.mappings, "resourceClaimName": name}}
            body = {"metadata": {"uid": bind.uid}, "status": status}
            told = await self._client.patch(PODS, bind.name, body, PatchType.MERGE, namespace=namespace, subresource="status")
        except KubeError as error:
            raise PreparationFailed(f"resource claim for extended resources: {error}") from error
        lost = dropped_field({"status": made.status}, kept)
        if lost or not (told.get("status") or {}).get("extendedResourceClaimStatus"):
            raise PreparationFailed(f"the API server does not keep {lost or 'status.extendedResourceClaimStatus'}")
        await self._access.conditions.wait(bind, namespace, name)

    async def undo(self, bind: AssumedBind) -> None:
        made = self._made.pop(bind.uid, None)
        if made is None:
            return
        namespace, name = _key(made)
        self._cache.forget_object(RESOURCE_CLAIM, namespace, name)
        if made.begun:
            try:
                await self._remove(namespace, name)
            except KubeError as error:
                log.warning("resource claim %s/%s stays: %s", namespace, name, error)

    def done(self, bind: AssumedBind) -> None:
        # The overlay goes by itself as soon as the watch shows the claim with its devices.
        self._made.pop(bind.uid, None)

    async def _remove(self, namespace: str, name: str) -> None:
        """The finalizer first: without users nothing else would remove it."""
        try:
            free = {"metadata": {"finalizers": None}}
            await self._client.patch(self._access.resource(), name, free, PatchType.MERGE, namespace=namespace)
            await self._client.delete(self._access.resource(), name, namespace=namespace)
        except NotFound:
            return

    def _left_over(self, bind: AssumedBind, name: str) -> Iterator[str]:
        for (namespace, other), claim in sorted(self._cache.cluster.objects.get(RESOURCE_CLAIM, {}).items()):
            meta = claim.get("metadata") or {}
            owners = [owner.get("uid") for owner in meta.get("ownerReferences") or ()]
            marked = (meta.get("annotations") or {}).get(EXTENDED_CLAIM) == "true"
            if namespace == bind.namespace and other != name and marked and bind.uid in owners:
                yield other


def _key(made: _Made) -> tuple[str, str]:
    meta = made.claim["metadata"]
    return meta["namespace"], meta["name"]


def _has_devices(claim: Any) -> bool:
    return bool((claim.get("status") or {}).get("allocation"))
