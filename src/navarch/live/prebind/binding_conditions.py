"""Conditions that a driver sets on an allocated device before its pod is bound, for example after the device was attached to the node.

The allocation names the conditions that have to be true, and those that say that the preparation failed. The driver writes them to
`status.devices` of the claim. A claim whose devices name no conditions is ready at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from navarch.engine.policy import Policy
from navarch.live.prebind.preparation import PreparationFailed

Claim = Mapping[str, Any]
BINDING_TIMEOUT = 600.0


def binding_timeout(policy: Policy) -> float:
    """How long a driver may take, in seconds: argument `bindingTimeout` of the plugin DynamicResources."""
    given = (option.arguments.get("bindingTimeout") for tier in policy.tiers for option in tier if option.name == "DynamicResources")
    found = next((value for value in given if isinstance(value, int | float)), BINDING_TIMEOUT)
    return float(found)


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
