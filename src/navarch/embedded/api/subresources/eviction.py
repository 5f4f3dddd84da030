"""pods/eviction: delete a pod politely, unless a PodDisruptionBudget forbids it just now."""

from __future__ import annotations

from typing import Any

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.errors import ApiError, bad_request, conflict, forbidden, too_many_requests
from navarch.embedded.api.operations import Operations
from navarch.embedded.api.selectors import object_selector
from navarch.embedded.api.writing import read_typed
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import timestamp
from navarch.object_types import Manifest

BUDGETS = "poddisruptionbudgets.policy"


def evict(operations: Operations, namespace: str, name: str, body: Any, dry_run: bool = False) -> None:
    """Evict a pod; 429 when its budget has no disruptions left."""
    body = read_typed("policy.v1.Eviction", body)
    if ((body.get("metadata") or {}).get("name") or name) != name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = DeleteOptions.of(body.get("deleteOptions"), {})
    options.dry_run = options.dry_run or dry_run
    store = operations.store
    current = store.get("pods", namespace, name)
    options.check(operations.kind("pods"), current)
    if not _needs_no_budget(current.obj):
        budgets = [
            record
            for record in store.list(BUDGETS, namespace)
            if object_selector((record.obj.get("spec") or {}).get("selector"))(current.labels)
        ]
        if len(budgets) > 1:
            said = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiError(500, "InternalError", said)
        if budgets:
            _spend(operations, budgets[0], current, options.dry_run)
    if not options.dry_run:
        _mark(operations, current)
    operations.delete(operations.kind("pods"), namespace, name, options)


def _needs_no_budget(pod: Manifest) -> bool:
    return bool(
        pod["metadata"].get("deletionTimestamp") or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Pending")
    )


def _spend(operations: Operations, budget: Record, pod: Record, dry_run: bool) -> None:
    """Take one disruption from the budget."""
    obj = budget.decode()
    status = obj.get("status") or {}
    name = budget.name
    if status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        raise too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            [_cause(f"The disruption budget {name} is still being processed by the server.")],
            10,
        )
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden(BUDGETS, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > 2000:
        raise conflict(BUDGETS, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        said = f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        raise too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", [_cause(said)])
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod.name: timestamp(operations.store.clock())}
    obj["status"] = status
    if not dry_run:
        operations.store.update(BUDGETS, obj)


def _cause(message: str) -> Manifest:
    return {"reason": "DisruptionBudget", "message": message}


def _mark(operations: Operations, pod: Record) -> None:
    """Say on the pod why it goes."""
    now = timestamp(operations.store.clock())

    def change(obj: Manifest) -> Manifest:
        status = obj.setdefault("status", {})
        kept = [each for each in status.get("conditions") or () if each.get("type") != "DisruptionTarget"]
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastProbeTime": None,
            "lastTransitionTime": now,
        }
        status["conditions"] = [*kept, condition]
        return obj

    operations.store.modify("pods", pod.namespace, pod.name, change)
