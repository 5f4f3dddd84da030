"""Keeps the status of PodDisruptionBudgets: how many pods there are, how many are healthy, how many may go.

Changes only mark a budget; it is counted once when the loop comes round, so a thousand pods that start together cost one
count.
"""

from __future__ import annotations

import math
from typing import Any

from navarch.embedded.api.operations import Operations
from navarch.embedded.api.selectors import object_selector
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import timestamp
from navarch.object_types import Manifest

BUDGETS = "poddisruptionbudgets.policy"
SCALED = {"ReplicaSet": "replicasets.apps", "StatefulSet": "statefulsets.apps", "ReplicationController": "replicationcontrollers"}
WATCHED = frozenset({"pods", *SCALED.values()})


class Budgets:
    """Reacts to budgets and pods."""

    def __init__(self, operations: Operations) -> None:
        self._store = operations.store
        self._marked: set[tuple[str, str]] = set()

    def load(self) -> None:
        for record in self._store.list(BUDGETS):
            self._count(record)

    def note(self, event: Event) -> bool:
        record = event.record
        was_idle = not self._marked
        if record.resource == BUDGETS:
            if event.type == "ADDED" or (event.type == "MODIFIED" and _is_new(event)):
                self._marked.add((record.namespace, record.name))
        elif record.resource in WATCHED and self._store.count(BUDGETS):
            for budget in self._store.list(BUDGETS, record.namespace):
                selects = object_selector((budget.obj.get("spec") or {}).get("selector"))
                before = event.previous
                if record.resource != "pods" or selects(record.labels) or (before and selects(before.labels)):
                    self._marked.add((budget.namespace, budget.name))
        return was_idle and bool(self._marked)

    def react(self, event: Event) -> None:
        marked, self._marked = sorted(self._marked), set()
        for namespace, name in marked:
            current = self._store.find(BUDGETS, namespace, name)
            if current is not None:
                self._count(current)

    def _count(self, budget: Record) -> None:
        spec = budget.obj.get("spec") or {}
        selects = object_selector(spec.get("selector"))
        pods = [
            pod
            for pod in self._store.list("pods", budget.namespace, lambda record: selects(record.labels))
            if (pod.obj.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]
        disrupted = dict((budget.obj.get("status") or {}).get("disruptedPods") or {})
        disrupted = {pod.name: disrupted[pod.name] for pod in pods if pod.name in disrupted and not _deleting(pod)}
        healthy = sum(1 for pod in pods if is_ready(pod.obj) and not _deleting(pod) and pod.name not in disrupted)
        expected, desired = self._wanted(spec, pods)
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        status: Manifest = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": budget.obj["metadata"].get("generation", 1),
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        status["conditions"] = [self._condition(budget, allowed)]

        def change(obj: Manifest) -> Manifest:
            obj["status"] = status
            return obj

        self._store.modify(BUDGETS, budget.namespace, budget.name, change)

    def _condition(self, budget: Record, allowed: int) -> Manifest:
        state = "True" if allowed else "False"
        before = ((budget.obj.get("status") or {}).get("conditions") or [{}])[0]
        since = before.get("lastTransitionTime") if before.get("status") == state else None
        return {
            "type": "DisruptionAllowed",
            "status": state,
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
            "observedGeneration": budget.obj["metadata"].get("generation", 1),
            "lastTransitionTime": since or timestamp(self._store.clock()),
        }

    def _wanted(self, spec: Manifest, pods: list[Record]) -> tuple[int, int]:
        """(pods expected, of those to be healthy)."""
        at_most, at_least = spec.get("maxUnavailable"), spec.get("minAvailable")
        if at_most is not None:
            expected = self._expected(pods)
            return expected, max(expected - _portion(at_most, expected), 0)
        if isinstance(at_least, str):
            expected = self._expected(pods)
            return expected, _portion(at_least, expected)
        return len(pods), at_least if at_least is not None else 1

    def _expected(self, pods: list[Record]) -> int:
        """The replicas that the pods' controllers ask for; a pod without one counts as itself."""
        seen: dict[str, int] = {}
        for pod in pods:
            owner = next((each for each in pod.obj["metadata"].get("ownerReferences") or () if each.get("controller")), None)
            resource = SCALED.get(owner["kind"]) if owner else None
            record = self._store.find(resource, pod.namespace, owner["name"]) if owner and resource else None
            if owner and record is not None:
                seen[owner["uid"]] = (record.obj.get("spec") or {}).get("replicas", 1)
            else:
                seen[pod.uid] = 1
        return sum(seen.values())


def _portion(value: Any, total: int) -> int:
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdigit():
        return math.ceil(total * int(value[:-1]) / 100)
    return value if isinstance(value, int) else 0


def _deleting(pod: Record) -> bool:
    return bool(pod.obj["metadata"].get("deletionTimestamp"))


def _is_new(event: Event) -> bool:
    return event.previous is not None and event.previous.obj.get("spec") != event.record.obj.get("spec")


def is_ready(pod: Manifest) -> bool:
    """Whether a pod's Ready condition is true."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
