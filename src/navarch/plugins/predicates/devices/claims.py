"""The claims of one cycle: which devices they hold, where those that wait can be satisfied, and what placements reserve.

Answers are kept by what claims ask for, not by claim: pods of one template share them. One search answers for all nodes of the same
profile that have the same devices in use (see profiles.py), and a placement renews only the nodes that reach the devices it took.
Placements of a cycle reserve their devices, an undo gives them back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct, field

from navarch.engine.figures import Rows
from navarch.engine.node_functions import TaskClass
from navarch.engine.record import ClaimAllocation, ClaimRelease
from navarch.engine.session import Session
from navarch.model.memo import memoised
from navarch.model.objects.devices import AllocatedDevice, ResourceClaimSpec, device_classes, resource_claims
from navarch.model.resources import BoolArray, IntArray
from navarch.model.status import TaskStatus
from navarch.object_types import ObjectKey
from navarch.plugins.predicates.devices.extended_claims import IN_MEMORY, ExtendedClaim, ExtendedClaims
from navarch.plugins.predicates.devices.pools import device_pools
from navarch.plugins.predicates.devices.profiles import NodeProfiles, UsedPlaces
from navarch.plugins.predicates.devices.search import (
    MOST_ALTERNATIVES,
    MOST_DEVICES,
    STEPS,
    ClaimFailure,
    Search,
    Solution,
    read_requests,
)
from navarch.plugins.predicates.devices.usage import DeviceUsage
from navarch.plugins.predicates.nodes.properties import node_properties
from navarch.plugins.predicates.pods.placed_pods import placed_pods

FREE_STEPS = 256
"""Of the search on one node, and as many more as one pass over its devices takes for each device that is asked for."""
STEPS_BEYOND = 200_000
"""Of all searches of a namespace in a cycle, beyond the free ones: claims whose constraints cannot be met try every combination."""
CANNOT = "cannot allocate all claims"
CUT = "cannot allocate all claims: there are too many combinations of devices to try"


class Outcome(Struct):
    """The answer of one search: a solution, or why there is none."""

    solution: Solution | None = None
    failure: ClaimFailure | None = None
    text: str = CANNOT


class OutcomesByNode(Struct):
    """For one set of claim contents: which outcome holds on each node, and when each node was last looked at."""

    profile: IntArray
    looked_at: IntArray
    outcome: IntArray
    possible: BoolArray
    rank: IntArray
    outcomes: list[Outcome] = field(default_factory=list)

    @classmethod
    def over(cls, profile: IntArray) -> OutcomesByNode:
        size = len(profile)
        zeros = np.zeros(size, dtype=np.int64)
        return cls(profile, np.full(size, -1, dtype=np.int64), zeros, np.zeros(size, dtype=bool), zeros.copy())

    def solution(self, node: int) -> Solution | None:
        return self.outcomes[int(self.outcome[node])].solution

    def put(self, nodes: Rows, group: Rows, outcomes: list[Outcome]) -> None:
        """Each of these nodes has the outcome of its group."""
        self.outcome[nodes] = len(self.outcomes) + group
        solutions = [each.solution for each in outcomes]
        self.possible[nodes] = np.array([each is not None for each in solutions], dtype=bool)[group]
        self.rank[nodes] = np.array([each.rank if each is not None else 0 for each in solutions], dtype=np.int64)[group]
        self.outcomes += outcomes


class Part(Struct):
    """Some nodes (None: all), the claims that a pod waits for there, and where they can be satisfied (None: none waits)."""

    where: BoolArray | None
    waiting: list[ResourceClaimSpec]
    by_node: OutcomesByNode | None
    extended: ExtendedClaim | None = None

    def possible(self) -> BoolArray:
        """Among its own nodes; true elsewhere."""
        if self.by_node is None:
            return np.ones(1, dtype=bool)
        found = self.by_node.possible
        return found if self.where is None else found | ~self.where

    def rank(self, size: int) -> IntArray:
        found = np.zeros(size, dtype=np.int64) if self.by_node is None else self.by_node.rank
        return found if self.where is None else found * self.where


class Reserved(Struct):
    """What the placement of a task took."""

    claims: list[tuple[ObjectKey, tuple[AllocatedDevice, ...]]]
    extended: tuple[tuple[str, str, str, int], ...] = ()

    def devices(self) -> list[AllocatedDevice]:
        return [device for _, devices in self.claims for device in devices]


class Claims:
    """One object a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        snapshot = session.snapshot
        size = len(session.nodes)
        self.pools = device_pools(snapshot)
        session.record.warnings += self.pools.unreadable
        self.claims = resource_claims(snapshot)
        self.classes = device_classes(snapshot)
        self.extended = session.shared(ExtendedClaims)
        left = self._left_over()
        holders = (claim for key, claim in self.claims.items() if claim.allocation is not None and key not in left)
        held = (each for claim in holders for each in devices_of(claim))
        self.usage = DeviceUsage(self.pools, held)
        self.used = UsedPlaces(self.pools, self.usage, size)
        self.profiles = memoised(snapshot, "device profiles", id(self.pools), lambda: NodeProfiles(self.pools, size))
        self._local: IntArray = np.zeros(size, dtype=np.int64)
        """By node: changes when a device that only this node reaches is taken or given back."""
        self._shared: IntArray = np.zeros(int(self.pools.groups.max(initial=0)) + 1, dtype=np.int64)
        """By set of shared pools: changes when a device of one of them is taken or given back."""
        self.allocated: dict[ObjectKey, BoolArray] = {}
        """Claims that this cycle allocated -> nodes that reach their devices."""
        self.reserved: dict[int, Reserved] = {}
        self._outcomes_by_node: dict[object, OutcomesByNode] = {}
        self._steps_left: dict[str, int] = {}
        """Namespace -> steps that its searches may still take beyond the free ones."""
        placed_pods(session).listen(self._moved)

    def _left_over(self) -> set[ObjectKey]:
        """Claims for extended resources of pods that are pending: an earlier attempt to bind the pod failed. They are removed before
        the pod is bound, so their devices are free."""
        made = {claim.owner[2]: key for key, claim in self.claims.items() if claim.extended and claim.owner is not None}
        if not made:
            return set()
        session, tasks = self.session, self.session.snapshot.tasks
        asking = [number for number, shape in enumerate(session.snapshot.shapes) if self.extended.concerns(shape)]
        waiting = tasks.alive & (session.status == TaskStatus.PENDING) & np.isin(session.shape, asking)
        return {made[uid] for uid in (session.task(row).uid for row in np.flatnonzero(waiting).tolist()) if uid in made}

    def of(self, task: TaskClass) -> list[ResourceClaimSpec]:
        found = [self.claims.get((task.namespace, name)) for _, name in task.shape.claims]
        return [claim for claim in found if claim is not None]

    def waiting(self, task: TaskClass) -> list[ResourceClaimSpec]:
        return [c for c in self.of(task) if c.allocation is None and (c.namespace, c.name) not in self.allocated]

    def reachable(self, task: TaskClass) -> BoolArray:
        """Nodes that reach the devices of every claim that has some."""
        columns = node_properties(self.session.snapshot)
        out = np.ones(len(columns), dtype=bool)
        for claim in self.of(task):
            here = self.allocated.get((claim.namespace, claim.name))
            if here is not None:
                out &= here
            elif claim.allocation is not None and claim.allocation.node_selector is not None:
                out &= columns.terms(claim.allocation.node_selector)
        return out

    def parts(self, task: TaskClass) -> list[Part]:
        """Where the claims that wait can be satisfied now. Extended resources make claims that differ between nodes."""
        waiting, by_nodes = self.waiting(task), self.extended.of(task)
        if not by_nodes:
            return [Part(None, waiting, self._outcomes(waiting, None))]
        out = []
        for each in by_nodes:
            here = [*waiting, each.claim] if each.claim is not None else waiting
            out.append(Part(each.where, here, self._outcomes(here, each.where), each))
        return out

    def _outcomes(self, waiting: Sequence[ResourceClaimSpec], where: BoolArray | None) -> OutcomesByNode | None:
        if not waiting:
            return None
        key = tuple((claim.requests, claim.constraints) for claim in waiting)
        found = self._outcomes_by_node.get(key)
        if found is None:
            found = self._outcomes_by_node[key] = self._new_outcomes(key, waiting)
        stamp = self._local + self._shared[self.pools.groups]
        stale = np.flatnonzero(found.looked_at != stamp if where is None else (found.looked_at != stamp) & where)
        if len(stale):
            # Nodes that share pools have the same shared devices in use, and profiles tell shared devices apart.
            alike = found.profile[stale] * (int(self.used.number.max(initial=0)) + 1) + self.used.number[stale]
            _, first, group = np.unique(alike, return_index=True, return_inverse=True)
            found.put(stale, group, [self._search(waiting, node) for node in stale[first].tolist()])
            found.looked_at[stale] = stamp[stale]
        return found

    def _new_outcomes(self, key: object, waiting: Sequence[ResourceClaimSpec]) -> OutcomesByNode:
        requests = read_requests(waiting, self.classes)
        if requests is None:
            return OutcomesByNode.over(np.zeros(len(self.session.nodes), dtype=np.int64))
        return OutcomesByNode.over(self.profiles.of(key, waiting, requests))

    def _search(self, waiting: Sequence[ResourceClaimSpec], node: int) -> Outcome:
        namespace = waiting[0].namespace
        left = self._steps_left.get(namespace, STEPS_BEYOND)
        reach = self.pools.at.get(node, ())
        free = FREE_STEPS + len(reach) * sum(_most_devices(claim) for claim in waiting)
        search = Search(waiting, self.classes, reach, self.usage, free + min(STEPS, left), faulty=self.pools.faulty.get(node, ()))
        try:
            solution = search.run()
        except ClaimFailure as failure:
            return Outcome(failure=failure.with_traceback(None))
        if search.steps > free:
            self._steps_left[namespace] = max(left - search.steps + free, 0)
        if solution is None and search.was_cut:
            return Outcome(text=CUT)
        if solution is None and search.unsupported:
            text = f"{CANNOT}: Navarch does not support devices with {', '.join(search.unsupported)}"
            return Outcome(text=text)
        return Outcome(solution)

    def preference(self, task: TaskClass) -> IntArray:
        """By node: what the alternatives of requests are worth, summed over all claims of the pod."""
        size = len(self.session.nodes)
        had = sum(_worth(claim) for claim in self.of(task) if claim.allocation is not None)
        out: IntArray = np.zeros(size, dtype=np.int64)
        for part in self.parts(task):
            out += part.rank(size)
            if part.by_node is not None:
                out += had if part.where is None else had * part.where
        return out

    def record(self) -> None:
        """Allocations of pods that are bound in this cycle. The binder writes them to the claims first."""
        session = self.session
        for row, reserved in sorted(self.reserved.items(), key=lambda entry: session.task(entry[0]).key):
            if session.status[row] == TaskStatus.BINDING:
                node = session.nodes.names[session.node[row]]
                for (namespace, name), devices in reserved.claims:
                    made = reserved.extended if name == IN_MEMORY else ()
                    session.record.claims.append(ClaimAllocation(f"{namespace}/{name}", session.task(row).uid, node, devices, made))

    def release(self, task: TaskClass, uid: str, where: BoolArray) -> bool:
        """Let one claim of the pod lose its devices, if no other pod uses it and some node of these does not reach them."""
        columns = node_properties(self.session.snapshot)
        for claim in self.of(task):
            held = claim.allocation
            if held is None or held.node_selector is None or set(claim.reserved_for) - {uid}:
                continue
            if (where & ~columns.terms(held.node_selector)).any():
                found = ClaimRelease(f"{claim.namespace}/{claim.name}", uid)
                if found not in self.session.record.releases:
                    self.session.record.releases.append(found)
                return True
        return False

    # reservations

    def _moved(self, task: TaskClass, tasks: Sequence[int], nodes: Sequence[int], step: int) -> None:
        if not task.shape.claims and not task.shape.extended:
            return
        for row, node in zip(tasks, nodes):
            if step > 0:
                self._reserve(task, row, node)
            else:
                self.give_back(row)

    def _reserve(self, task: TaskClass, row: int, node: int) -> None:
        part = next(part for part in self.parts(task) if part.where is None or part.where[node])
        solution = part.by_node.solution(node) if part.by_node is not None else None
        if solution is None:
            return
        reach = self.pools.at.get(node, [])
        reserved = Reserved([], part.extended.resources if part.extended is not None else ())
        for claim, chosen in zip(part.waiting, solution.chosen):
            devices = tuple(each.allocated(reach[each.place]) for each in chosen)
            reserved.claims.append(((claim.namespace, claim.name), devices))
        self.hold_for(row, node, reserved)

    def hold_for(self, row: int, node: int, reserved: Reserved) -> None:
        for key, devices in reserved.claims:
            if key[1] != IN_MEMORY:
                self.allocated[key] = self._usable_from(node, devices)
        self.reserved[row] = reserved
        self.hold(reserved.devices())

    def _usable_from(self, node: int, devices: Iterable[AllocatedDevice]) -> BoolArray:
        here = np.ones(len(self.session.nodes), dtype=bool)
        for device in devices:
            known, there = self.pools.by_id[device.id], np.zeros_like(here)
            there[node if known.spec.binds_to_node else known.nodes] = True
            here &= there
        return here

    def give_back(self, row: int) -> Reserved | None:
        """The task no longer holds what its placement reserved, which is returned."""
        reserved = self.reserved.pop(row, None)
        if reserved is not None:
            for key, _ in reserved.claims:
                self.allocated.pop(key, None)
            self.free(reserved.devices())
        return reserved

    def are_free(self, claims: Iterable[tuple[ObjectKey, Sequence[AllocatedDevice]]]) -> bool:
        """Whether claims that gave up these devices can have them again: nothing holds them, and no claim got others."""
        return all(key not in self.allocated and all(map(self.usage.has_room_for, devices)) for key, devices in claims)

    def hold(self, devices: Sequence[AllocatedDevice]) -> None:
        for device in devices:
            self.usage.add(device)
        self._renew(devices)

    def free(self, devices: Sequence[AllocatedDevice]) -> None:
        for device in devices:
            self.usage.remove(device)
        self._renew(devices)

    def _renew(self, devices: Iterable[AllocatedDevice]) -> None:
        """Search the nodes that reach these devices again. A device that no slice offers any more is reached by no node, though a
        claim may still hold it."""
        for device in devices:
            known = self.pools.by_id.get(device.id) if not device.admin_access else None
            if known is None:
                continue
            if known.local:
                node = int(known.nodes[0])
                self.used.renew(node)
                self._local[node] += 1
            else:
                self._shared[self.pools.groups_of[known.pool.number]] += 1


def devices_of(claim: ResourceClaimSpec) -> tuple[AllocatedDevice, ...]:
    """What the claim holds."""
    return claim.allocation.devices if claim.allocation is not None else ()


def _most_devices(claim: ResourceClaimSpec) -> int:
    """How many devices a claim may have; bounds a search in which no choice has to be undone."""
    counts = (max(1 if each.all_devices else each.count for each in request.alternatives or (request,)) for request in claim.requests)
    return min(sum(counts), MOST_DEVICES)


def _worth(claim: ResourceClaimSpec) -> int:
    """What the alternatives of an allocated claim are worth."""
    had = {device.request for device in claim.allocation.devices} if claim.allocation is not None else set()
    return sum(
        MOST_ALTERNATIVES - index
        for request in claim.requests
        for index, alternative in enumerate(request.alternatives)
        if f"{request.name}/{alternative.name}" in had
    )
