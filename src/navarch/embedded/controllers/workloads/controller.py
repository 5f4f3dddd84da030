"""What all workload controllers share: which object to sync after a change, how pods are made and removed.

A controller declares what it owns and how one object is brought to its spec (`sync`). `sync` runs when the object or one of its
children changed, reads the store as it is, and may ask to run again later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.operations import Operations
from navarch.embedded.api.selectors import object_selector
from navarch.embedded.controllers.event_recorder import Recorder
from navarch.embedded.controllers.work_queue import WorkQueue
from navarch.embedded.controllers.workloads.ownership import Child, OwnerIndex, controller_of, owner_reference
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import timestamp
from navarch.embedded.timers import Timers
from navarch.object_types import Manifest, ObjectKey


class Controller(ABC):
    """One kind of workload. Instances share the indexes of pods and of other owned objects."""

    resource: ClassVar[str]
    kind: ClassVar[str]
    api_version: ClassVar[str] = "apps/v1"
    owns: ClassVar[str] = "pods"
    adopts: ClassVar[bool] = True

    def __init__(self, operations: Operations, timers: Timers, owner_indexes: Mapping[str, OwnerIndex]) -> None:
        self.operations = operations
        self.store = operations.store
        self.timers = timers
        self.owner_indexes = owner_indexes
        self.owner_index = owner_indexes[self.owns]
        self.recorder = Recorder(operations, f"{self.kind.lower()}-controller")
        self.queue: WorkQueue[ObjectKey] = WorkQueue(self.resource, self._look, timers)
        self.strays: WorkQueue[ObjectKey] = WorkQueue(f"strays of {self.resource}", self._look_at_stray, timers)

    @abstractmethod
    def sync(self, owner: Record) -> None:
        """Bring one object closer to what it asks for, and write its status."""

    def lost(self, child: Child) -> None:
        """Called for a child whose owner does not exist (any more)."""
        return  # the garbage collector deletes it

    # ------------------------------------------------------------------ events

    def on_owner(self, event: Event) -> None:
        if event.type != "DELETED":
            self.queue.add((event.record.namespace, event.record.name))

    def on_child(self, event: Event) -> None:
        record = event.record
        owner = controller_of(record.obj)
        if owner is not None:
            if owner["kind"] != self.kind or owner["apiVersion"].partition("/")[0] != self.api_version.partition("/")[0]:
                return
            found = self.store.find(self.resource, record.namespace, owner["name"])
            if found is not None and found.uid == owner["uid"]:
                self.queue.add((record.namespace, owner["name"]))
            elif event.type != "DELETED":
                self.strays.add((record.namespace, record.name))
        elif self.adopts and event.type != "DELETED" and record.labels and self.store.count(self.resource):
            for candidate in self.store.list(self.resource, record.namespace):
                if object_selector(self.selector(candidate.obj))(record.labels):
                    self.queue.add((candidate.namespace, candidate.name))
        before = controller_of(event.previous.obj) if event.previous is not None else None
        if before is not None and owner is None and before["kind"] == self.kind:
            self.queue.add((record.namespace, before["name"]))

    def _look(self, key: ObjectKey) -> None:
        owner = self.store.find(self.resource, *key)
        if owner is not None:
            self.sync(owner)

    def _look_at_stray(self, key: ObjectKey) -> None:
        child = self.owner_index.find(*key)
        owner = controller_of(child.obj) if child is not None else None
        if child is not None and owner is not None:
            found = self.store.find(self.resource, key[0], owner["name"])
            if found is None or found.uid != owner["uid"]:
                self.lost(child)

    # ------------------------------------------------------------------ what controllers do

    def selector(self, owner: Manifest) -> Manifest | None:
        found: Manifest | None = (owner.get("spec") or {}).get("selector")
        return found

    def children(self, owner: Record) -> list[Child]:
        return self.owner_index.claim(owner, self.kind, self.api_version, self.selector(owner.obj))

    @property
    def now(self) -> str:
        return timestamp(self.store.clock())

    def create(
        self,
        owner: Record,
        template: Manifest,
        *,
        name: str = "",
        prefix: str = "",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        finalizers: tuple[str, ...] = (),
        spec: Manifest | None = None,
    ) -> Child:
        """A pod of a template. A refusal becomes an event on the owner and is raised: the work queue tries again."""
        given = template.get("metadata") or {}
        metadata: Manifest = {"ownerReferences": [owner_reference(owner, self.kind, self.api_version)]}
        if name:
            metadata["name"] = name
        else:
            metadata["generateName"] = prefix or f"{owner.name}-"
        if all_labels := {**(given.get("labels") or {}), **(labels or {})}:
            metadata["labels"] = all_labels
        if all_annotations := {**(given.get("annotations") or {}), **(annotations or {})}:
            metadata["annotations"] = all_annotations
        if finalizers or given.get("finalizers"):
            metadata["finalizers"] = [*(given.get("finalizers") or ()), *finalizers]
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec or template.get("spec") or {}}
        return self.owner_indexes["pods"].enter(self.make(owner, "pods", body))

    def make(self, owner: Record, resource: str, body: Manifest) -> Record:
        try:
            record = self.operations.create(self.operations.kind(resource), owner.namespace, body)
        except ApiError as error:
            self.recorder.warning(owner, "FailedCreate", f"Error creating: {error}")
            raise
        if resource in self.owner_indexes:
            self.owner_indexes[resource].enter(record)
        return record

    def remove(self, child: Child) -> None:
        """Delete a child; one that is gone or going is left alone."""
        if child.is_deleted:
            return
        try:
            kind = self.operations.kind(child.record.resource)
            self.operations.delete(kind, child.record.namespace, child.name, DeleteOptions(uid=child.uid))
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def write_status(self, owner: Record, status: Manifest) -> Record:
        """Replace the status; nothing is written if it is what it was."""

        def change(obj: Manifest) -> Manifest:
            obj["status"] = status
            return obj

        return self.store.modify(self.resource, owner.namespace, owner.name, change)

    def again_after(self, owner: Record, seconds: float) -> None:
        self.queue.add_later((owner.namespace, owner.name), seconds)


def condition(
    status: Manifest, type_: str, state: str, reason: str, message: str, now: str, *, update_time: bool = False
) -> list[Manifest]:
    """The conditions with this one set; its transition time moves only with its state."""
    found: list[Manifest] = []
    made: Manifest = {"type": type_, "status": state, "reason": reason, "message": message, "lastTransitionTime": now}
    if update_time:
        made["lastUpdateTime"] = now
    placed = False
    for each in status.get("conditions") or ():
        if each.get("type") != type_:
            found.append(each)
            continue
        placed = True
        if each.get("status") == state:
            made["lastTransitionTime"] = each.get("lastTransitionTime") or now
            if each.get("reason") == reason and each.get("message") == message:
                made = each
        found.append(made)
    return found if placed else [*found, made]


def removal_order(child: Child) -> tuple[Any, ...]:
    """Which pods go first when there are too many: those that matter least."""
    pod = child.obj
    metadata = pod["metadata"]
    phases = {"": 0, "Pending": 0, "Unknown": 1}
    cost = (metadata.get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost", "0")
    return (
        bool((pod.get("spec") or {}).get("nodeName")),
        phases.get(child.phase, 2),
        child.is_ready,
        int(cost) if cost.lstrip("-").isdecimal() else 0,
        _reversed(metadata.get("creationTimestamp") or ""),
        metadata["name"],
    )


def _reversed(text: str) -> tuple[int, ...]:
    """A key that sorts newer times first."""
    return tuple(-ord(letter) for letter in text)


def portion(value: Any, total: int, *, round_up: bool) -> int:
    """A whole number, or a percentage of a total.

    >>> portion("25%", 10, round_up=True), portion("25%", 10, round_up=False), portion(3, 10, round_up=True)
    (3, 2, 3)
    """
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        exact = int(value[:-1]) * total
        return -(-exact // 100) if round_up else exact // 100
    return value if isinstance(value, int) else 0
