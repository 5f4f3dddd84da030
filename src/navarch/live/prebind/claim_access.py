"""What every writer of ResourceClaims needs: the client, the served version, what the cache shows, and the form of an allocation."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from navarch.apis.devices.allocation_body import allocation, slices_by_pool
from navarch.engine.record import ClaimAllocation
from navarch.kube.client import Client
from navarch.kube.resources import Resource
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.prebind.binding_conditions import BindingConditions
from navarch.model.timestamps import rfc3339

AllocationBody = Callable[[ClaimAllocation, Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class ClaimAccess:
    """`resource()` is the version of ResourceClaim that is served now. `clock`: seconds since the epoch."""

    client: Client
    cache: ClusterCache
    resource: Callable[[], Resource]
    conditions: BindingConditions
    clock: Callable[[], float] = time.time

    def allocation_body(self) -> AllocationBody:
        """Writes an allocation of a cycle for its claim. All of a cycle share the slices and the time."""
        objects = self.cache.cluster.objects
        slices, classes = slices_by_pool(objects.get("ResourceSlice", {}).values()), objects.get("DeviceClass", {})
        now = rfc3339(self.clock())

        def device_class(name: str) -> Mapping[str, Any]:
            found: Mapping[str, Any] = classes.get(("", name)) or {}
            return found

        return lambda found, claim: allocation(found, claim, slices, device_class, now, lambda: str(uuid.uuid4()))
