"""Devices before the binding: the allocation that a cycle found is written to each ResourceClaim, with the pod as its user.

If a claim already has its devices, the pod is only added to its users. If the pod is not bound after all, it is removed again, and
the allocation with it if we made it and no other pod uses it. Pods that share a claim share what is assumed of it: the assumption
lasts until the API shows all of them, and continues without a pod that is not bound.

Some devices have binding conditions: the pod is bound once their driver has set all of them. If the driver says that it failed, or is
silent for too long, the claim loses its devices, unless another pod uses them, and the pod is decided again.

A claim is protected from deletion before it gets devices. The finalizer also tells the claims' controller which devices it has to free
when the last pod has ended. Without it they would be held for as long as the claim exists.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from navarch.apis.devices.allocation_body import dropped_field
from navarch.kube.client import PatchType
from navarch.kube.errors import Conflict, KubeError, NotFound
from navarch.kube.resources import Resource
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cycle import Cycle
from navarch.live.prebind.claim_access import ClaimAccess
from navarch.live.prebind.preparation import PreparationFailed

log = logging.getLogger(__name__)

KIND = "ResourceClaim"
PROTECTION = "resource.kubernetes.io/delete-protection"
ATTEMPTS = 5


class _Use(Struct):
    namespace: str
    name: str
    allocation: dict[str, Any] | None
    """None: the claim has its devices already."""
    claim: str = ""
    """uid: another claim may have the name when it is written."""
    begun: bool = False
    """Its write was started: a write whose answer was lost may have been applied."""
    version: int | None = None
    """resourceVersion of our write."""
    failed: bool = False
    """Its devices did not become ready: it may not keep them."""


class _Promised:
    """Pods that were assumed as users of a claim and that the API does not show as such yet."""

    def __init__(self) -> None:
        self.unseen: dict[str, tuple[_Use, str]] = {}
        """uid -> the assumed use, and the pod's name."""

    def __call__(self, claim: Mapping[str, Any]) -> bool:
        for user in (claim.get("status") or {}).get("reservedFor") or ():
            self.unseen.pop(user.get("uid"), None)
        # Or it was shown too late: the pod came and ended while the watch was cut.
        now = _version(claim)
        for uid in [uid for uid, (use, _) in self.unseen.items() if use.version is not None and use.version <= now]:
            del self.unseen[uid]
        return not self.unseen


class DeviceClaims:
    def __init__(self, access: ClaimAccess) -> None:
        self._access = access
        self._client, self._cache = access.client, access.cache
        self._uses: dict[str, list[_Use]] = {}
        self.releasing: dict[tuple[str, str], asyncio.Task[None]] = {}
        """(namespace, name) of claims that lose their devices."""

    def wants(self, uid: str) -> bool:
        return uid in self._uses

    def for_request(self, uid: str) -> dict[str, Any]:
        """The devices of the pod's claims as KAI's BindRequest has them, by the names that the pod gives its claims."""
        task, uses = self._cache.cluster.task(uid), {use.name: use for use in self._uses.get(uid, ())}
        found = []
        for name, claim in task.shape.claims if task is not None else ():
            use = uses.get(claim)
            seen = self._visible(use.namespace, claim) or {} if use is not None else {}
            given = (use.allocation if use is not None else None) or (seen.get("status") or {}).get("allocation")
            if given:
                found.append({"name": name, "allocation": given})
        return {"resourceClaimAllocations": found} if found else {}

    def plan(self, cycle: Cycle) -> None:
        allocated = {each.claim: each for each in cycle.record.claims if not each.extended}
        body = self._access.allocation_body() if allocated else None
        for bind in cycle.record.binds:
            task = self._cache.cluster.task(bind.uid)
            if task is None or not task.shape.claims:
                continue
            uses = []
            for _, name in task.shape.claims:
                found = allocated.get(f"{task.namespace}/{name}")
                # Several pods may share a claim that is only now allocated: the first of them writes it.
                claim = self._visible(task.namespace, name) or {}
                given = self._promised(task.namespace, name)
                if found is not None and body is not None:
                    given = body(found, claim)
                use = _Use(task.namespace, name, given, (claim.get("metadata") or {}).get("uid") or "")
                uses.append(use)
                self._assume(use, task.name, task.uid)
            self._uses[bind.uid] = uses

    async def prepare(self, bind: AssumedBind) -> None:
        for use in self._uses[bind.uid]:
            use.begun = True
            try:
                use.version = await self._change(use, lambda claim, use=use: _used(claim, use, bind))
            except KubeError as error:
                raise PreparationFailed(f"resource claim {use.name}: {error}") from error
            self._look(use)
        for use in self._uses[bind.uid]:
            try:
                await self._access.conditions.wait(bind, use.namespace, use.name)
            except PreparationFailed:
                use.failed = True
                raise

    async def undo(self, bind: AssumedBind) -> None:
        for use in self._uses.pop(bind.uid, ()):
            self._forget(use, bind.uid)
            if not use.begun:
                continue
            try:
                await self._change(use, lambda claim, use=use: _unused(claim, use, bind))
            except NotFound:
                continue
            except KubeError as error:
                log.warning("resource claim %s/%s stays reserved: %s", use.namespace, use.name, error)

    def release(self, namespace: str, name: str, uid: str) -> None:
        """Start to take the devices from a claim that at most this pod uses."""
        if (namespace, name) not in self.releasing:
            task = asyncio.get_running_loop().create_task(self._release(_Use(namespace, name, None), uid))
            self.releasing[namespace, name] = task
            task.add_done_callback(lambda _: self.releasing.pop((namespace, name), None))

    async def _release(self, use: _Use, uid: str) -> None:
        try:
            await self._change(use, lambda claim: _released(claim, uid))
        except NotFound:
            return
        except Exception as error:
            # No task awaits this. The pod asks again with its next attempt.
            log.warning("resource claim %s/%s keeps its devices: %s", use.namespace, use.name, error)

    async def close(self) -> None:
        tasks = list(self.releasing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def done(self, bind: AssumedBind) -> None:
        # The overlay goes by itself as soon as the watch shows the allocation.
        self._uses.pop(bind.uid, None)

    async def _change(self, use: _Use, edit: Any) -> int | None:
        """Read, change and write back, again after a conflict. Returns the version that this made, if any."""
        for attempt in range(ATTEMPTS):
            resource = self._access.resource()
            claim = await self._client.get(resource, use.name, namespace=use.namespace)
            status = edit(claim)
            if status is None:
                return None
            try:
                if status.get("allocation") and not (claim.get("status") or {}).get("allocation"):
                    claim = await self._protected(resource, claim)
                body = {**claim, "status": status}
                made = await self._client.update(resource, use.name, body, namespace=use.namespace, subresource="status")
                if field := dropped_field(body, made):
                    raise PreparationFailed(f"resource claim {use.name}: the API server does not keep {field}")
                return _version(made) or None
            except Conflict:
                if attempt == ATTEMPTS - 1:
                    raise
        return None

    async def _protected(self, resource: Resource, claim: dict[str, Any]) -> dict[str, Any]:
        """The claim with its finalizer."""
        metadata = claim["metadata"]
        finalizers = metadata.get("finalizers") or []
        if PROTECTION in finalizers:
            return claim
        held = {key: metadata[key] for key in ("uid", "resourceVersion") if key in metadata}
        body = {"metadata": {**held, "finalizers": [*finalizers, PROTECTION]}}
        made: dict[str, Any] = await self._client.patch(
            resource, metadata["name"], body, PatchType.MERGE, namespace=metadata["namespace"]
        )
        return made

    def _promised(self, namespace: str, name: str) -> dict[str, Any] | None:
        """The allocation of an earlier cycle that is still on its way to the claim."""
        if not self._cache.is_assumed(KIND, namespace, name):
            return None
        seen = (self._visible(namespace, name) or {}).get("status") or {}
        found: dict[str, Any] | None = seen.get("allocation")
        return found

    def _visible(self, namespace: str, name: str) -> Any:
        return self._cache.cluster.objects.get(KIND, {}).get((namespace, name))

    def _assume(self, use: _Use, pod: str, uid: str) -> None:
        if self._visible(use.namespace, use.name) is None:
            return
        found = self._cache.assumption(KIND, use.namespace, use.name)
        promised = found if isinstance(found, _Promised) else _Promised()
        promised.unseen[uid] = use, pod
        self._show(use, promised)

    def _forget(self, use: _Use, uid: str) -> None:
        promised = self._cache.assumption(KIND, use.namespace, use.name)
        if not isinstance(promised, _Promised):
            return
        promised.unseen.pop(uid, None)
        if promised.unseen:
            self._show(use, promised)
        else:
            self._cache.forget_object(KIND, use.namespace, use.name)

    def _look(self, use: _Use) -> None:
        """Our write has its version, and the API may have shown a later one already."""
        promised = self._cache.assumption(KIND, use.namespace, use.name)
        if isinstance(promised, _Promised) and promised(self._cache.api_object(KIND, use.namespace, use.name)):
            self._cache.forget_object(KIND, use.namespace, use.name)

    def _show(self, claim: _Use, promised: _Promised) -> None:
        """The claim as the API shows it, with all that is promised of it."""
        truth = self._cache.api_object(KIND, claim.namespace, claim.name)
        status = dict(truth.get("status") or {})
        for uid, (use, pod) in promised.unseen.items():
            status = _with_user(status, use, pod, uid)
        self._cache.assume_object(KIND, claim.namespace, claim.name, {**truth, "status": status}, promised)


def _with_user(status: dict[str, Any], use: _Use, pod: str, uid: str) -> dict[str, Any]:
    users = list(status.get("reservedFor") or ())
    if not any(user.get("uid") == uid for user in users):
        users.append({"resource": "pods", "name": pod, "uid": uid})
    status["reservedFor"] = users
    if use.allocation is not None and not status.get("allocation"):
        status["allocation"] = use.allocation
    return status


def _used(claim: Mapping[str, Any], use: _Use, bind: AssumedBind) -> dict[str, Any] | None:
    before = dict(claim.get("status") or {})
    if not _is_meant(claim, use):
        raise PreparationFailed(f"resource claim {use.name} is gone; another has its name")
    if claim["metadata"].get("deletionTimestamp"):
        raise PreparationFailed(f"resource claim {use.name} is being deleted")
    if use.allocation is None and not before.get("allocation"):
        raise PreparationFailed(f"resource claim {use.name} lost its devices")
    if use.allocation is not None and before.get("allocation") and _results(before["allocation"]) != _results(use.allocation):
        raise PreparationFailed(f"resource claim {use.name} was allocated by another scheduler")
    return _with_user(before, use, bind.name, bind.uid)


def _unused(claim: Mapping[str, Any], use: _Use, bind: AssumedBind) -> dict[str, Any] | None:
    status = dict(claim.get("status") or {})
    if not _is_meant(claim, use):
        return None
    users = [user for user in status.get("reservedFor") or () if user.get("uid") != bind.uid]
    if len(users) == len(status.get("reservedFor") or ()):
        return None
    status["reservedFor"] = users
    if not users and (use.allocation is not None or use.failed):
        status.pop("allocation", None)
        status.pop("devices", None)
    return status


def _released(claim: Mapping[str, Any], uid: str) -> dict[str, Any] | None:
    """The status without devices; None: the claim has none, or another pod uses them by now."""
    status = dict(claim.get("status") or {})
    if not status.get("allocation") or any(user.get("uid") != uid for user in status.get("reservedFor") or ()):
        return None
    for field in ("allocation", "devices", "reservedFor"):
        status.pop(field, None)
    return status


def _results(allocation: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What identifies an allocation. A server that does not know a newer field drops it."""
    results = (allocation.get("devices") or {}).get("results") or ()
    return [tuple(each.get(key) for key in ("request", "driver", "pool", "device")) for each in results]


def _is_meant(claim: Mapping[str, Any], use: _Use) -> bool:
    return not use.claim or claim["metadata"].get("uid") == use.claim


def _version(claim: Mapping[str, Any]) -> int:
    text = str((claim.get("metadata") or {}).get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0
