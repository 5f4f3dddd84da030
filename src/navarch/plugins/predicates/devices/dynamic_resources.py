"""DynamicResources: the devices that a pod claims exist and are free where it goes.

A claim that was allocated holds the pod to the nodes that reach its devices; any other is tried on each node. Answers are kept
by what claims ask for, not by claim: pods of one template share them, and a placement renews only the nodes that reach the
devices it took. Placements of a cycle reserve their devices, an undo gives them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct, field

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Rejection, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.record import ClaimAllocation
from navarch.engine.session import Session
from navarch.model.objects.devices import AllocatedDevice, DeviceId, ResourceClaimSpec, device_classes, resource_claims
from navarch.model.resources import BoolArray, FloatArray, IntArray
from navarch.model.status import TaskStatus
from navarch.object_types import ObjectKey
from navarch.plugins.nodeorder.normalise import default_normalise
from navarch.plugins.predicates.devices.pools import device_pools
from navarch.plugins.predicates.devices.search import STEPS, ClaimFailure, Search, Solution
from navarch.plugins.predicates.nodes.columns import node_columns
from navarch.plugins.predicates.pods.placed_pods import placed_pods, watch_pods

NOT_HERE = "resourceclaim not available on the node"
CANNOT = "cannot allocate all claims"
CUT = "cannot allocate all claims: there are too many combinations of devices to try"
IN_USE = "resourceclaim in use"
MOST_USERS = 256
FREE_STEPS = 256
"""Of the search on one node. Claims without constraints take one or two a device."""
STEPS_BEYOND = 200_000
"""Of all searches of a namespace in a cycle, beyond the free ones: claims whose constraints cannot be met try every combination."""


class ClaimOutlook(Struct):
    """For one set of claim contents: on which nodes a solution was found, and when each node was last looked at."""

    possible: BoolArray
    rank: IntArray
    looked_at: IntArray
    solutions: dict[int, Solution] = field(default_factory=dict)
    failures: dict[int, ClaimFailure] = field(default_factory=dict)
    """Nodes where a selector failed, and how."""
    cut: set[int] = field(default_factory=set)
    """Nodes where the search ended before it had tried everything."""


class Reserved(Struct):
    """What the placement of a task took."""

    claims: list[tuple[ObjectKey, list[AllocatedDevice]]]
    devices: list[DeviceId]


class Claims:
    """One object a session: devices in use, claims allocated in this cycle, and what is still possible where."""

    def __init__(self, session: Session) -> None:
        self.session = session
        snapshot = session.snapshot
        self.pools = device_pools(snapshot)
        session.record.warnings += self.pools.unreadable
        self.claims = resource_claims(snapshot)
        self.classes = device_classes(snapshot)
        size = len(session.nodes)
        self.taken: set[DeviceId] = {
            device.id
            for claim in self.claims.values()
            if claim.allocation is not None
            for device in claim.allocation.devices
            if not device.admin_access
        }
        self.version: IntArray = np.zeros(size, dtype=np.int64)
        """By node: changes when a device in its reach is taken or given back."""
        self.allocated: dict[ObjectKey, BoolArray] = {}
        """Claims that this cycle allocated -> nodes that reach their devices."""
        self.reserved: dict[int, Reserved] = {}
        self._outlooks: dict[object, ClaimOutlook] = {}
        self._steps_left: dict[str, int] = {}
        """Namespace -> steps that its searches may still take beyond the free ones."""
        placed_pods(session).listen(self._moved)

    def of(self, task: TaskClass) -> list[ResourceClaimSpec]:
        found = [self.claims.get((task.namespace, name)) for _, name in task.shape.claims]
        return [claim for claim in found if claim is not None]

    def waiting(self, task: TaskClass) -> list[ResourceClaimSpec]:
        return [c for c in self.of(task) if c.allocation is None and (c.namespace, c.name) not in self.allocated]

    def reachable(self, task: TaskClass) -> BoolArray:
        """Nodes that reach the devices of every claim that has some."""
        columns = node_columns(self.session.snapshot)
        out = np.ones(len(columns), dtype=bool)
        for claim in self.of(task):
            here = self.allocated.get((claim.namespace, claim.name))
            if here is not None:
                out &= here
            elif claim.allocation is not None and claim.allocation.node_selector is not None:
                out &= columns.terms(claim.allocation.node_selector)
        return out

    def outlook(self, task: TaskClass) -> ClaimOutlook | None:
        """Where the claims that wait can be satisfied now; None: none waits."""
        waiting = self.waiting(task)
        if not waiting:
            return None
        size = len(self.session.nodes)
        key = tuple((claim.requests, claim.constraints) for claim in waiting)
        found = self._outlooks.get(key)
        if found is None:
            found = self._outlooks[key] = ClaimOutlook(
                np.zeros(size, dtype=bool), np.zeros(size, dtype=np.int64), np.full(size, -1, dtype=np.int64)
            )
        for node in np.flatnonzero(found.looked_at != self.version).tolist():
            solution = self._search(waiting, node, found)
            found.possible[node] = solution is not None
            found.rank[node] = solution.rank if solution is not None else 0
            if solution is not None:
                found.solutions[node] = solution
            found.looked_at[node] = self.version[node]
        return found

    def _search(self, waiting: list[ResourceClaimSpec], node: int, found: ClaimOutlook) -> Solution | None:
        found.failures.pop(node, None)
        found.cut.discard(node)
        namespace = waiting[0].namespace
        left = self._steps_left.get(namespace, STEPS_BEYOND)
        search = Search(waiting, self.classes, self.pools.at.get(node, ()), self.taken, min(STEPS, FREE_STEPS + left))
        try:
            solution = search.run()
        except ClaimFailure as failure:
            found.failures[node] = failure.with_traceback(None)
            return None
        if search.steps > FREE_STEPS:
            self._steps_left[namespace] = max(left - search.steps + FREE_STEPS, 0)
        if solution is None and search.was_cut:
            found.cut.add(node)
        return solution

    def record(self) -> None:
        """Allocations of pods that are bound in this cycle. The binder writes them to the claims first."""
        session = self.session
        for row, reserved in sorted(self.reserved.items(), key=lambda entry: session.task(entry[0]).key):
            if session.status[row] == TaskStatus.BINDING:
                node = session.nodes.names[session.node[row]]
                for (namespace, name), devices in reserved.claims:
                    found = ClaimAllocation(f"{namespace}/{name}", session.task(row).uid, node, tuple(devices))
                    session.record.claims.append(found)

    # reservations

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        if not task.shape.claims:
            return
        for row, node in zip(tasks, nodes):
            if step > 0:
                self._reserve(task, row, node)
            else:
                self._give_back(row)

    def _reserve(self, task: TaskClass, row: int, node: int) -> None:
        waiting = self.waiting(task)
        outlook = self.outlook(task) if waiting else None
        solution = outlook.solutions.get(node) if outlook is not None and outlook.possible[node] else None
        if solution is None:
            return
        reserved = Reserved([], [])
        for claim, devices in zip(waiting, solution.devices):
            key = (claim.namespace, claim.name)
            reserved.claims.append((key, devices))
            reach = np.ones(len(self.session.nodes), dtype=bool)
            for device in devices:
                here = np.zeros(len(reach), dtype=bool)
                here[self.pools.by_id[device.id].nodes] = True
                reach &= here
                if not device.admin_access:
                    reserved.devices.append(device.id)
            self.allocated[key] = reach
        self.reserved[row] = reserved
        self.taken.update(reserved.devices)
        self.renew(reserved.devices)

    def _give_back(self, row: int) -> None:
        reserved = self.reserved.pop(row, None)
        if reserved is not None:
            for key, _ in reserved.claims:
                self.allocated.pop(key, None)
            self.taken.difference_update(reserved.devices)
            self.renew(reserved.devices)

    def renew(self, devices: Iterable[DeviceId]) -> None:
        """Search the nodes that reach these devices again. A device that no slice offers any more is reached by no node, though a
        claim may still hold it."""
        for device in devices:
            if (known := self.pools.by_id.get(device)) is not None:
                self.version[known.nodes] += 1


class DynamicResources(NodeFilter):
    name = "DynamicResources"
    post_filter_text = "no new claims to deallocate"
    scope = Scope.GLOBAL
    undone_by = (Event.CLAIM_CHANGED, Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED)

    def __init__(self, session: Session) -> None:
        self.session = session
        watch_pods(session, lambda shape: shape.claims)

    def applies(self, task: TaskClass) -> bool:
        return bool(task.shape.claims)

    def reject(self, task: TaskClass) -> Rejection | None:
        claims, pod = self.session.shared(Claims), self.session.task(task.task)
        for _, name in task.shape.claims:
            if not name:
                return Rejection(f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet')
            claim = claims.claims.get((task.namespace, name))
            if claim is None:
                return Rejection(f'resourceclaim.resource.k8s.io "{name}" not found')
            if claim.deleting:
                return Rejection(f'resourceclaim "{name}" is being deleted')
            if claim.owner is not None and claim.owner[0] == "Pod" and claim.owner[2] != pod.uid:
                made_for = f"was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
                return Rejection(f"ResourceClaim {claim.namespace}/{name} {made_for}")
            if len(claim.reserved_for) >= MOST_USERS and pod.uid not in claim.reserved_for:
                return Rejection(IN_USE)
            problem = _problem(claim, claims)
            if problem and claim.allocation is None:
                return Rejection(problem)
        return None

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        claims = self.session.shared(Claims)
        out = claims.reachable(task)
        outlook = claims.outlook(task)
        if outlook is not None:
            out &= outlook.possible
        found: BoolArray = out[at.rows]
        return found

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        claims = self.session.shared(Claims)
        away: BoolArray = ~claims.reachable(task)[at.rows]
        outlook = claims.outlook(task)
        if outlook is None:
            return [Refusal(NOT_HERE, away, unresolvable=True, code="DynamicResources")]
        told: dict[str, BoolArray] = {NOT_HERE: away, CANNOT: ~outlook.possible[at.rows] & ~away}
        waiting = claims.waiting(task)
        texts = {node: _told(failure, waiting) for node, failure in outlook.failures.items()}
        texts |= dict.fromkeys(outlook.cut, CUT)
        for node, text in texts.items():
            here = np.zeros(len(self.session.nodes), dtype=bool)
            here[node] = True
            failed: BoolArray = here[at.rows] & ~away
            told[CANNOT] = told[CANNOT] & ~failed
            told[text] = told[text] | failed if text in told else failed
        return [Refusal(text, where, unresolvable=True, code="DynamicResources") for text, where in told.items()]


def _told(failure: ClaimFailure, waiting: Sequence[ResourceClaimSpec]) -> str:
    """Claims with the same content share an answer; each is told of itself."""
    if failure.claim is None:
        return str(failure)
    claim = waiting[failure.claim]
    return f"claim {claim.namespace}/{claim.name}: {failure}"


def _problem(claim: ResourceClaimSpec, claims: Claims) -> str:
    """What makes a claim impossible to allocate anywhere."""
    for request in claim.requests:
        for demand in request.alternatives or (request,):
            if demand.unsupported:
                return f"request {demand.name}: Navarch does not support {', '.join(demand.unsupported)}"
            if ("", demand.device_class) not in claims.classes:
                return f"request {demand.name}: device class {demand.device_class} does not exist"
    return ""


class DevicePreferences(NodeScorer):
    """Nodes on which earlier alternatives of a request can be had."""

    name = "DynamicResources"
    scope = Scope.GLOBAL
    normalises = True

    def __init__(self, session: Session, weight: float) -> None:
        self.session = session
        self.weight = weight

    def applies(self, task: TaskClass) -> bool:
        if not task.shape.claims:
            return False
        return any(request.alternatives for claim in self.session.shared(Claims).waiting(task) for request in claim.requests)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        outlook = self.session.shared(Claims).outlook(task)
        rank = np.zeros(len(self.session.nodes)) if outlook is None else outlook.rank.astype(float)
        found: FloatArray = rank[at.rows]
        return found

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        return default_normalise(raw, high)
