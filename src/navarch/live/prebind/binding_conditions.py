"""Conditions that a driver sets on an allocated device before its pod is bound, for example after the device was attached to the node.

The allocation names the conditions that have to be true, and those that say that the preparation failed. The driver writes them to
`status.devices` of the claim. A claim whose devices name no conditions is ready at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from navarch.engine.policy import Policy
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.prebind.preparation import PreparationFailed
from navarch.model.objects.devices import RESOURCE_CLAIM

Claim = Mapping[str, Any]
BINDING_TIMEOUT = 600.0
LOOK = 1.0
"""Seconds between two looks."""


def binding_timeout(policy: Policy) -> float:
    """How long a driver may take, in seconds: argument `bindingTimeout` of the plugin DynamicResources."""
    given = (option.arguments.get("bindingTimeout") for tier in policy.tiers for option in tier if option.name == "DynamicResources")
    found = next((value for value in given if isinstance(value, int | float)), BINDING_TIMEOUT)
    return float(found)


class BindingConditions:
    """Waits for the conditions of claims that the pod of a bind uses. `timeout()`: how long a driver may take. `clock`: seconds since
    the epoch."""

    def __init__(self, cache: ClusterCache, timeout: Callable[[], float], clock: Callable[[], float]) -> None:
        self._cache = cache
        self._timeout = timeout
        self._clock = clock

    async def wait(self, bind: AssumedBind, namespace: str, name: str) -> None:
        """Return when the claim is ready. PreparationFailed: its driver failed or is silent, or the pod or claim is gone."""
        if not waits(self._cache.cluster.objects.get(RESOURCE_CLAIM, {}).get((namespace, name)) or {}):
            return
        began = self._clock()
        while True:
            claim = self._cache.api_object(RESOURCE_CLAIM, namespace, name)
            assumed = self._cache.is_assumed(RESOURCE_CLAIM, namespace, name)
            if claim is None and not assumed:
                raise PreparationFailed(f"resource claim {name} is gone")
            # While it is assumed, the watch has not shown our write.
            if not assumed and is_ready(claim):
                return
            at = allocated_at(claim or {})
            if self._clock() > (began if at is None else at) + self._timeout():
                missing = ", ".join(pending(claim or {}))
                raise PreparationFailed(f"resource claim {name}: {missing} not true within {self._timeout():g} s")
            if self._cache.assumed.binds.get(bind.uid) is not bind:
                raise PreparationFailed("the pod is gone")
            await asyncio.sleep(LOOK)


def waits(claim: Claim) -> bool:
    """Whether a device of the claim has binding conditions."""
    return any(result.get("bindingConditions") for result in _results(claim))


def is_ready(claim: Claim) -> bool:
    """Whether all binding conditions are true. PreparationFailed: a driver says that it failed."""
    name = (claim.get("metadata") or {}).get("name")
    for result in _results(claim):
        conditions = result.get("bindingConditions") or ()
        if not conditions:
            continue
        status = _status(claim, result)
        if status is None:
            return False
        said = {each.get("type"): each for each in status.get("conditions") or () if each.get("status") == "True"}
        for condition in result.get("bindingFailureConditions") or ():
            if condition in said:
                text = said[condition].get("message") or said[condition].get("reason") or "the driver gives no reason"
                device = "/".join(str(result.get(key)) for key in ("driver", "pool", "device"))
                raise PreparationFailed(f"resource claim {name}: device {device}: {condition}: {text}")
        if any(condition not in said for condition in conditions):
            return False
    return True


def pending(claim: Claim) -> list[str]:
    """Conditions that are not true yet."""
    found: dict[str, None] = {}
    for result in _results(claim):
        said = (_status(claim, result) or {}).get("conditions") or ()
        true = {each.get("type") for each in said if each.get("status") == "True"}
        found.update(dict.fromkeys(each for each in result.get("bindingConditions") or () if each not in true))
    return list(found)


def allocated_at(claim: Claim) -> float | None:
    """Seconds since the epoch; None: the claim does not say."""
    said = ((claim.get("status") or {}).get("allocation") or {}).get("allocationTimestamp")
    try:
        return datetime.fromisoformat(said).timestamp() if said else None
    except ValueError:
        return None


def _results(claim: Claim) -> list[Mapping[str, Any]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


def _status(claim: Claim, result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for each in (claim.get("status") or {}).get("devices") or ():
        if all(each.get(key) == result.get(key) for key in ("driver", "pool", "device")) and _same_share(each, result):
            found: Mapping[str, Any] = each
            return found
    return None


def _same_share(status: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    return not status.get("shareID") or status.get("shareID") == result.get("shareID")
