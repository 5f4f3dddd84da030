"""Admission against what the cluster holds: namespaces that exist, classes, limit ranges, quotas, new nodes' taints.

The pure rules live in `navarch.apis.admission.admission`, shared with `navarch plan`; this step finds the objects they look up. The
look-up tables are kept and made anew only when one of those objects changes.
"""

from __future__ import annotations

from navarch.apis.admission.admission import (
    NOT_READY,
    SYSTEM_PRIORITY_CLASSES,
    AdmissionContext,
    admit_in_place,
    default_priority_class,
)
from navarch.embedded.api.errors import forbidden, not_found
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.quotas import Quotas
from navarch.embedded.api.writing import WriteOptions
from navarch.embedded.storage.record import Event
from navarch.embedded.storage.store import Store
from navarch.object_types import Manifest

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
POD_GROUPS = "podgroups.scheduling.k8s.io"
LOOKED_UP = (PRIORITY_CLASSES, "runtimeclasses.node.k8s.io", "storageclasses.storage.k8s.io", "limitranges")
SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
IMMORTAL_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class Admission:
    """Runs on every create and update before validation."""

    def __init__(self, store: Store, taint_new_nodes: bool = True) -> None:
        self._store = store
        self._taint_new_nodes = taint_new_nodes
        self._context: AdmissionContext | None = None
        self.quotas = Quotas(store)
        for resource in LOOKED_UP:
            store.subscribe(resource, self._forget)

    def _forget(self, _: Event) -> None:
        self._context = None

    @property
    def context(self) -> AdmissionContext:
        if self._context is None:
            named = [{record.name: record.obj for record in self._store.list(resource)} for resource in LOOKED_UP[:3]]
            ranges: dict[str, list[Manifest]] = {}
            for record in self._store.list("limitranges"):
                ranges.setdefault(record.namespace, []).append(record.obj)
            self._context = AdmissionContext(named[0], named[1], named[2], ranges)
        return self._context

    def on_create(self, kind: Kind, obj: Manifest, options: WriteOptions) -> None:
        """Change or refuse a new object; its defaults are set."""
        metadata = obj["metadata"]
        name = metadata["name"]
        if kind.namespaced:
            self._namespace_lives(kind, metadata["namespace"], name)
        for refusal in admit_in_place(obj, self.context):
            raise forbidden(kind.resource, name, refusal)
        if kind.resource == "nodes":
            self._taint(obj)
        elif kind.resource == PRIORITY_CLASSES:
            self._one_default(obj)
        elif kind.resource == POD_GROUPS:
            self._group_priority(name, obj)
        self.quotas.admit(kind, obj)

    def on_update(self, kind: Kind, obj: Manifest, old: Manifest) -> None:
        """Refuse a change that other objects forbid."""
        if kind.resource == PRIORITY_CLASSES and obj.get("globalDefault") and not old.get("globalDefault"):
            self._one_default(obj)

    def on_delete(self, kind: Kind, name: str) -> None:
        if kind.resource == "namespaces" and name in IMMORTAL_NAMESPACES:
            raise forbidden(kind.resource, name, "this namespace may not be deleted")

    def _namespace_lives(self, kind: Kind, namespace: str, name: str) -> None:
        record = self._store.find("namespaces", "", namespace)
        if record is None:
            raise not_found("namespaces", namespace)
        if record.fields[0] == "Terminating":
            said = f"unable to create new content in namespace {namespace} because it is being terminated"
            why = [{"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}]
            why[0]["field"] = "metadata.namespace"
            raise forbidden(kind.resource, name, said, why)

    def _taint(self, node: Manifest) -> None:
        """A new node takes no pods until it says that it is ready, as TaintNodesByCondition has it."""
        conditions = (node.get("status") or {}).get("conditions") or ()
        ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
        if ready or not self._taint_new_nodes:
            return
        taints = node.setdefault("spec", {}).setdefault("taints", [])
        taint = {"key": NOT_READY, "effect": "NoSchedule"}
        if not any(each.get("key") == NOT_READY and each.get("effect") == "NoSchedule" for each in taints):
            taints.append(taint)

    def _group_priority(self, name: str, group: Manifest) -> None:
        """The priority of a PodGroup from its class, the default class, or 0."""
        spec, classes = group.setdefault("spec", {}), self.context.priority_classes
        named, default = spec.get("priorityClassName") or "", default_priority_class(classes)
        if not named and default is not None:
            named = spec["priorityClassName"] = default["metadata"]["name"]
        if named and named not in classes and named not in SYSTEM_PRIORITY_CLASSES:
            raise forbidden(POD_GROUPS, name, f"no PriorityClass with name {named} was found")
        found = classes.get(named)
        priority = SYSTEM_PRIORITY_CLASSES.get(named, 0) if found is None else int(found.get("value", 0))
        if spec.get("priority") not in (None, priority):
            given = f"priority set in the pod group ({spec['priority']}) must match the priority computed ({priority})"
            raise forbidden(POD_GROUPS, name, f"{given} based on the priority class set in the spec")
        spec["priority"] = priority

    def _one_default(self, obj: Manifest) -> None:
        if not obj.get("globalDefault"):
            return
        found = default_priority_class(self.context.priority_classes)
        if found is not None and found["metadata"]["name"] != obj["metadata"]["name"]:
            said = f"PriorityClass {found['metadata']['name']} is already marked as default. Only one default can exist"
            raise forbidden(PRIORITY_CLASSES, obj["metadata"]["name"], said)
