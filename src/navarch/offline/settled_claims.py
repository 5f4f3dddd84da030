"""Claims on devices between two cycles: pods that were bound have their devices, pods that were evicted give them back."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from navarch.apis.devices.allocation_body import allocation, slices_by_pool
from navarch.apis.devices.extended_requests import extended_claim
from navarch.engine.record import CycleRecord
from navarch.model.cluster import Cluster
from navarch.model.objects.devices import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from navarch.model.spec import TaskSpec
from navarch.model.timestamps import rfc3339
from navarch.object_types import ObjectKey

Object = dict[str, Any]


def settle_claims(cluster: Cluster, record: CycleRecord, evicted: Iterable[str], now: float) -> None:
    gone = set(evicted)
    if gone:
        _give_back(cluster, gone, sorted(cluster.objects.get(RESOURCE_CLAIM, {}).items()))
    for release in record.releases:
        namespace, _, name = release.claim.partition("/")
        claim_now = cluster.objects.get(RESOURCE_CLAIM, {}).get((namespace, name))
        if claim_now is not None:
            cluster.put_object(RESOURCE_CLAIM, namespace, name, {**claim_now, "status": {}})
    slices = slices_by_pool(cluster.objects.get(RESOURCE_SLICE, {}).values()) if record.claims else {}
    classes = cluster.objects.get(DEVICE_CLASS, {})
    for found in record.claims:
        task = cluster.task(found.uid)
        if task is None or found.uid in gone:
            continue
        namespace, _, name = found.claim.partition("/")
        claim: Object | None = cluster.objects.get(RESOURCE_CLAIM, {}).get((namespace, name))
        if found.extended:
            claim = extended_claim(task, found, "v1", "plan")
            name = claim["metadata"]["name"]
        if claim is None:
            continue
        new_id = partial(str, f"share-{found.uid}")
        made = allocation(found, claim, slices, lambda of: classes.get(("", of)) or {}, rfc3339(now), new_id)
        cluster.put_object(RESOURCE_CLAIM, namespace, name, {**claim, "status": {"allocation": made}})
    for bind in record.binds:
        task = cluster.task(bind.uid)
        if task is not None and bind.uid not in gone:
            for _, name in task.shape.claims:
                _use(cluster, task.namespace, name, bind.uid)


def _use(cluster: Cluster, namespace: str, name: str, uid: str) -> None:
    claim = cluster.objects.get(RESOURCE_CLAIM, {}).get((namespace, name))
    if claim is None:
        return
    status = dict(claim.get("status") or {})
    users = list(status.get("reservedFor") or ())
    if all(user.get("uid") != uid for user in users):
        status["reservedFor"] = [*users, {"resource": "pods", "uid": uid}]
        cluster.put_object(RESOURCE_CLAIM, namespace, name, {**claim, "status": status})


def give_back_claims(cluster: Cluster, tasks: Iterable[TaskSpec]) -> None:
    """These pods are gone, or lost their nodes."""
    claims = cluster.objects.get(RESOURCE_CLAIM)
    if not claims:
        return
    gone = [task for task in tasks if task.shape.claims or task.shape.extended]
    named = {(task.namespace, name) for task in gone for _, name in task.shape.claims}
    found = claims.keys() if any(task.shape.extended for task in gone) else named & claims.keys()
    _give_back(cluster, {task.uid for task in gone}, [(key, claims[key]) for key in sorted(found)])


def _give_back(cluster: Cluster, gone: set[str], claims: Iterable[tuple[ObjectKey, Object]]) -> None:
    """A claim without users loses its devices. A claim that was made for extended resources goes with its pod."""
    for (namespace, name), claim in claims:
        owners = {owner.get("uid") for owner in (claim.get("metadata") or {}).get("ownerReferences") or ()}
        status = claim.get("status") or {}
        users = status.get("reservedFor") or []
        left = [user for user in users if user.get("uid") not in gone]
        if name.endswith("-extended-resources-plan") and owners & gone:
            cluster.remove_object(RESOURCE_CLAIM, namespace, name)
        elif len(left) < len(users):
            kept = {"allocation": status["allocation"], "reservedFor": left} if left and status.get("allocation") else {}
            cluster.put_object(RESOURCE_CLAIM, namespace, name, {**claim, "status": kept})
