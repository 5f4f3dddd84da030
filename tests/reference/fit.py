"""NodeResourcesFit: is there room, and how full would the node be."""

from __future__ import annotations

from math import floor

from tests.reference.cluster import Cluster, Object, name_of
from tests.reference.devices import class_behind, device_counts
from tests.reference.normalise import broken_linear
from tests.reference.plugin import Plugin
from tests.reference.requests import (
    allocatable,
    extended,
    incoming_cost,
    incoming_scoring_cost,
    placed_cost,
    placed_scoring_cost,
    sum_of,
)
from tests.reference.status import SUCCESS, UNRESOLVABLE, Status

ALWAYS_SCORED = ("cpu", "memory", "ephemeral-storage")


def scored_amounts(cluster: Cluster, node: Object, resource: str, request: int, *, defaulted: bool) -> tuple[int, int] | None:
    """(allocatable, used by others) of a resource that takes part in scoring, None where it does not."""
    capacity = allocatable(node).get(resource, 0)
    pods = cluster.pods_on(name_of(node))
    if resource not in ALWAYS_SCORED and request == 0:
        return None
    if capacity == 0 and class_behind(cluster, resource) is not None:
        capacity, used = device_counts(cluster, resource, node)
    else:
        cost = placed_scoring_cost if defaulted and resource in ("cpu", "memory") else placed_cost
        used = sum(cost(pod).get(resource, 0) for pod in pods)
    return (capacity, used) if capacity > 0 else None


class NodeResourcesFit(Plugin):
    def filter(self, node: Object) -> Status:
        room = allocatable(node)
        pods = self.cluster.pods_on(name_of(node))
        used = sum_of(placed_cost(pod) for pod in pods)
        reasons = []
        hopeless = False
        if len(pods) + 1 > room["pods"]:
            reasons.append("Too many pods")
        for resource, amount in incoming_cost(self.pod).items():
            if amount == 0 or self._ignored(resource) or self._left_to_claims(resource, room.get(resource, 0)):
                continue
            if amount > room.get(resource, 0) - used.get(resource, 0):
                reasons.append(f"Insufficient {resource}")
                hopeless |= amount > room.get(resource, 0)
        if not reasons:
            return SUCCESS
        return Status(UNRESOLVABLE if hopeless else "Unschedulable", tuple(reasons))

    def _ignored(self, resource: str) -> bool:
        if not extended(resource):
            return False
        group = resource.split("/")[0]
        return resource in (self.args.get("ignoredResources") or ()) or group in (self.args.get("ignoredResourceGroups") or ())

    def _left_to_claims(self, resource: str, room: int) -> bool:
        return room == 0 and resource not in ALWAYS_SCORED and class_behind(self.cluster, resource) is not None

    def score(self, node: Object) -> int:
        strategy = self.args["scoringStrategy"]
        request = incoming_scoring_cost(self.pod)
        total = weights = 0
        for entry in strategy["resources"]:
            resource, weight = entry["name"], entry.get("weight", 1)
            asked = request.get(resource, 0)
            amounts = scored_amounts(self.cluster, node, resource, asked, defaulted=True)
            if amounts is None:
                continue
            capacity, used = amounts
            part = self._resource_score(strategy, used + asked, capacity)
            if strategy["type"] == "RequestedToCapacityRatio" and part <= 0:
                continue
            total += weight * part
            weights += weight
        if weights == 0:
            return 0
        if strategy["type"] == "RequestedToCapacityRatio":
            return floor(total / weights + 0.5)
        return int(total // weights)

    @staticmethod
    def _resource_score(strategy: Object, wanted: int, capacity: int) -> int:
        if strategy["type"] == "LeastAllocated":
            return 0 if wanted > capacity else (capacity - wanted) * 100 // capacity
        if strategy["type"] == "MostAllocated":
            return min(wanted, capacity) * 100 // capacity
        points = [
            (int(point.get("utilization", 0)), int(point.get("score", 0)) * 10)
            for point in strategy["requestedToCapacityRatio"]["shape"]
        ]
        return broken_linear(points, 100 if wanted > capacity else wanted * 100 // capacity)
