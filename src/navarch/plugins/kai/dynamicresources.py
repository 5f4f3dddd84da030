"""dynamicresources: devices that pods claim, with evictions taken into account.

The devices of a pod's own claim are free as soon as the pod is evicted, so that a search for victims can use them; undoing the
eviction reserves them again. A victim whose devices the search gave to another pod cannot stay: it is placed like any other pod. A
claim on GPUs that several pods share must name its queue by a label. Extended resources that a device
class stands behind are claimed on nodes that do not report them; GPUs are not, as nodes count them by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from navarch.engine.arguments import Argument
from navarch.engine.node_functions import NodeFilter, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.points.protocols import Change
from navarch.engine.reasons import Event, Reason
from navarch.model.gpus import GPU_RESOURCES
from navarch.model.objects.devices import ResourceClaimSpec
from navarch.model.status import ON_NODE, TaskStatus
from navarch.object_types import ObjectKey
from navarch.plugins.kai.amounts import KaiAmounts
from navarch.plugins.predicates.devices.claims import Claims, Reserved, devices_of
from navarch.plugins.predicates.devices.dynamic_resources import MOST_USERS, UNUSABLE, DynamicResources
from navarch.plugins.predicates.devices.extended_claims import ExtendedClaims
from navarch.plugins.predicates.devices.extended_resources import class_behind

_UNDONE_BY = (Event.CLAIM_CHANGED, Event.POD_REMOVED)


class DynamicClaims(Plugin):
    """Places pods where the devices that they claim are available"""

    name = "dynamicresources"
    arguments = (Argument("maxCelCacheEntries", "int", 10, "expressions are compiled once each", has_effect=False),)

    def open(self) -> None:
        session = self.session
        self.users: dict[ObjectKey, set[int]] = {}
        """Claim -> tasks on a node, or promised a node, that use it."""
        self.freed: dict[ObjectKey, ResourceClaimSpec] = {}
        """Claim that evicted tasks used alone -> as it was before the eviction."""
        self.left: dict[int, Reserved] = {}
        """Evicted task that this cycle had placed -> what its placement reserved."""
        claiming = [bool(shape.claims) for shape in session.snapshot.shapes]
        extended = session.shared(ExtendedClaims)
        self.in_use = any(claiming) or any(extended.concerns(shape) for shape in session.snapshot.shapes)
        if not self.in_use:
            return
        names = enumerate(session.snapshot.resource_names)
        served = (dim for dim, name in names if name not in GPU_RESOURCES and class_behind(session.snapshot, name) is not None)
        session.claimable_dims = frozenset(served)
        self.claims = session.shared(Claims)
        self.specs: dict[ObjectKey, ResourceClaimSpec] = dict(self.claims.claims)
        self.claims.claims = self.specs
        self.manifests: Mapping[ObjectKey, Mapping[str, Any]] = session.snapshot.objects.get("ResourceClaim", {})
        tasks = session.snapshot.tasks
        users = np.flatnonzero(tasks.alive & ON_NODE[session.status] & np.array(claiming, dtype=bool)[tasks.shape])
        for task in users.tolist():
            spec = tasks.spec(task)
            for _, name in spec.shape.claims:
                self.users.setdefault((spec.namespace, name), set()).add(task)

    def close(self) -> None:
        if self.in_use:
            self.claims.record()

    def node_filters(self) -> list[NodeFilter]:
        self.filter = DynamicResources(self.session)
        return [self.filter]

    # before any node is looked at

    def pre_predicate(self, task: TaskClass) -> Reason | None:
        if not task.shape.claims:
            return None
        session, pod = self.session, self.session.task(task.task)
        job = session.job_of(task.task)
        key = str(session.policy.param("queueLabelKey"))
        for _, name in task.shape.claims:
            claim = self.specs.get((task.namespace, name))
            if claim is None:
                continue
            here = self.users.get((task.namespace, name), set())
            others = {uid for uid in claim.reserved_for if uid != pod.uid}
            others |= {session.task(row).uid for row in here}
            if len(others) >= MOST_USERS:
                text = f"resource claim {pod.namespace}/{name} has reached its maximum number of consumers ({MOST_USERS})"
                return Reason("PodSchedulingErrors", text, undone_by=_UNDONE_BY, cause=UNUSABLE)
            if claim.owner is None and session.shared(KaiAmounts).claimed_gpus(task.namespace, name):
                labels = (self.manifests[task.namespace, name].get("metadata") or {}).get("labels") or {}
                wrong = _wrong_queue(name, labels.get(key), key, job.queue.name if job is not None else "")
                if wrong:
                    text = f"pod {pod.key} cannot be scheduled: DRA claim {wrong}"
                    return Reason("PodSchedulingErrors", text, undone_by=_UNDONE_BY, cause=UNUSABLE)
        rejected = self.filter.reject(task) if self.filter.applies(task) else None
        return None if rejected is None else rejected.as_reason(self.filter.undone_by)

    # figures that follow placements

    def on_allocate(self, change: Change) -> None:
        if not change.task.shape.claims:
            return
        for task in change.tasks:
            for _, name in change.task.shape.claims:
                self.users.setdefault((change.task.namespace, name), set()).add(task)
            if change.undone:
                self._return(change.task, task, change.nodes[0])

    def on_deallocate(self, change: Change) -> None:
        if not change.task.shape.claims:
            return
        for task in change.tasks:
            for _, name in change.task.shape.claims:
                self.users.get((change.task.namespace, name), set()).discard(task)
            if not change.undone:
                self._leave(change.task, task)

    def _leave(self, kind: TaskClass, task: int) -> None:
        self.left.pop(task, None)
        reserved = self.claims.give_back(task)
        if reserved is not None:
            self.left[task] = reserved
        else:
            self._free(kind)

    def _return(self, kind: TaskClass, task: int, node: int) -> None:
        """The task has again what it had before its eviction, and not what a placement would choose for it."""
        reserved = self.left.pop(task, None)
        if reserved is not None:
            self.claims.hold_for(task, node, reserved)
        elif self.session.status[task] != TaskStatus.PIPELINED and self._given_up(kind):
            self.claims.give_back(task)
            self._take_back(kind)

    def _free(self, kind: TaskClass) -> None:
        for _, name in kind.shape.claims:
            key = (kind.namespace, name)
            claim = self.specs.get(key)
            if claim is None or claim.allocation is None or self.users.get(key):
                continue
            self.freed[key] = claim
            self.specs[key] = replace(claim, allocation=None)
            self.claims.free(devices_of(claim))

    def _take_back(self, kind: TaskClass) -> None:
        for claim in self._given_up(kind):
            del self.freed[claim.namespace, claim.name]
            self.specs[claim.namespace, claim.name] = claim
            self.claims.hold(devices_of(claim))

    def _given_up(self, kind: TaskClass) -> list[ResourceClaimSpec]:
        return [self.freed[key] for key in ((kind.namespace, name) for _, name in kind.shape.claims) if key in self.freed]

    def same_place(self, task: int, node: int) -> bool:
        """Whether the devices that an evicted task had are still free, so that it can stay with them."""
        if not self.in_use:
            return True
        reserved = self.left.get(task)
        if reserved is not None:
            return self.claims.are_free(reserved.claims)
        given_up = self._given_up(self.session.class_of(task))
        return self.claims.are_free([((claim.namespace, claim.name), devices_of(claim)) for claim in given_up])


def _wrong_queue(name: str, label: str | None, key: str, queue: str) -> str:
    if label is None:
        return f"{name} is a shared GPU claim but does not have a queue label ({key})"
    if label != queue:
        return f"{name} is a shared GPU claim with wrong queue label (expected queue: {queue}, claim queue label: {label})"
    return ""
