"""Taints that follow a node's conditions: a node that is not ready, or under pressure, takes no new pods.

The same table as kube-controller-manager's node lifecycle controller; a cordoned node gets the unschedulable taint.
"""

from __future__ import annotations

from navarch.embedded.api.operations import Operations
from navarch.embedded.storage.record import Event, Record
from navarch.object_types import Manifest

PREFIX = "node.kubernetes.io/"
BY_CONDITION = (
    ("Ready", "False", "not-ready"),
    ("Ready", "Unknown", "unreachable"),
    ("MemoryPressure", "True", "memory-pressure"),
    ("DiskPressure", "True", "disk-pressure"),
    ("PIDPressure", "True", "pid-pressure"),
    ("NetworkUnavailable", "True", "network-unavailable"),
)
OWNED = frozenset(PREFIX + name for _, _, name in BY_CONDITION) | {PREFIX + "unschedulable"}


class NodeTaints:
    """Reacts to nodes."""

    def __init__(self, operations: Operations) -> None:
        self._store = operations.store

    def load(self) -> None:
        for record in self._store.list("nodes"):
            self._follow(record)

    def note(self, event: Event) -> bool:
        return event.record.resource == "nodes" and event.type != "DELETED"

    def react(self, event: Event) -> None:
        current = self._store.find("nodes", "", event.record.name)
        if current is not None:
            self._follow(current)

    def _follow(self, node: Record) -> None:
        spec = node.obj.get("spec") or {}
        present = spec.get("taints") or []
        wanted = wanted_taints(node.obj)
        kept = [each for each in present if not (each["key"] in OWNED and each["effect"] == "NoSchedule")]
        held = {each["key"]: each for each in present if each["key"] in OWNED and each["effect"] == "NoSchedule"}
        taints = kept + [held.get(key, {"key": key, "effect": "NoSchedule"}) for key in wanted]
        if {(each["key"], each["effect"]) for each in taints} == {(each["key"], each["effect"]) for each in present}:
            return

        def change(obj: Manifest) -> Manifest:
            if taints:
                obj.setdefault("spec", {})["taints"] = taints
            else:
                obj.get("spec", {}).pop("taints", None)
            return obj

        self._store.modify("nodes", "", node.name, change)


def wanted_taints(node: Manifest) -> list[str]:
    """Keys of the NoSchedule taints that a node's conditions call for. A node without conditions keeps its taints."""
    conditions = {each["type"]: each.get("status") for each in (node.get("status") or {}).get("conditions") or ()}
    keys = [PREFIX + name for kind, state, name in BY_CONDITION if conditions.get(kind) == state]
    if "Ready" not in conditions:
        taints = (node.get("spec") or {}).get("taints") or ()
        keys += [each["key"] for each in taints if each["key"] == PREFIX + "not-ready" and each["effect"] == "NoSchedule"]
    if (node.get("spec") or {}).get("unschedulable"):
        keys.append(PREFIX + "unschedulable")
    return keys
