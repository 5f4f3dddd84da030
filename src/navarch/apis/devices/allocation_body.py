"""`status.allocation` of a ResourceClaim: the devices that a cycle chose, in the form that the API has for them.

A share of a device gets an id of its own from the caller: cycles make no random numbers. The node selector says from where all
devices can be used: this node alone if one of them is a node's own or binds to its node, otherwise all that the slices of the devices
ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from navarch.apis.devices import device_settings
from navarch.engine.record import ClaimAllocation
from navarch.model.objects.devices import AllocatedDevice

Object = dict[str, Any]
Slices = Mapping[tuple[str, str], list[Mapping[str, Any]]]
"""(driver, pool) -> the spec of each slice."""


def slices_by_pool(slices: Iterable[Mapping[str, Any]]) -> Slices:
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for slice_ in slices:
        spec = slice_.get("spec") or {}
        found.setdefault((spec.get("driver") or "", (spec.get("pool") or {}).get("name") or ""), []).append(spec)
    return found


def allocation(
    found: ClaimAllocation,
    claim: Mapping[str, Any],
    slices: Slices,
    device_class: Callable[[str], Mapping[str, Any]],
    now: str,
    new_id: Callable[[], str],
) -> Object:
    """`now` is written if binding waits for the devices: the time-out counts from it. `new_id` gives the id of a share."""
    results = [_result(device, claim, new_id) for device in found.devices]
    out: Object = {"devices": {"results": results}}
    if told := device_settings.config(claim, {device.request for device in found.devices}, device_class):
        out["devices"]["config"] = told
    selector = _node_selector(found, slices)
    if selector is not None:
        out["nodeSelector"] = selector
    if any(device.binding_conditions for device in found.devices):
        out["allocationTimestamp"] = now
    return out


def dropped_field(sent: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    """A field of the results that the API server did not keep because it does not know it; empty if it kept all."""
    for ours, theirs in zip(_results(sent), _results(kept)):
        for field in ("shareID", "bindingConditions"):
            if ours.get(field) and not theirs.get(field):
                return field
    return ""


def _results(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


def _result(device: AllocatedDevice, claim: Mapping[str, Any], new_id: Callable[[], str]) -> Object:
    result: Object = {"request": device.request, "driver": device.driver, "pool": device.pool, "device": device.device}
    if device.admin_access:
        result["adminAccess"] = True
    if tolerated := device_settings.tolerations(claim, device.request):
        result["tolerations"] = tolerated
    if device.shared:
        result["shareID"] = new_id()
        if device.consumed:
            result["consumedCapacity"] = dict(device.consumed)
    if device.binding_conditions:
        result["bindingConditions"] = list(device.binding_conditions)
        if device.binding_failure_conditions:
            result["bindingFailureConditions"] = list(device.binding_failure_conditions)
    return result


def _node_selector(found: ClaimAllocation, slices: Slices) -> Object | None:
    fields: list[Any] = []
    expressions: list[Any] = []
    for device in found.devices:
        place = _place(device, slices.get((device.driver, device.pool), ()))
        if place is None:
            continue
        if place.get("nodeName") or place.get("bindsToNode"):
            only = {"key": "metadata.name", "operator": "In", "values": [found.node]}
            return {"nodeSelectorTerms": [{"matchFields": [only]}]}
        for term in (place.get("nodeSelector") or {}).get("nodeSelectorTerms") or ():
            fields += [each for each in term.get("matchFields") or () if each not in fields]
            expressions += [each for each in term.get("matchExpressions") or () if each not in expressions]
    term = {name: said for name, said in (("matchFields", fields), ("matchExpressions", expressions)) if said}
    return {"nodeSelectorTerms": [term]} if term else None


def _place(device: AllocatedDevice, slices: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """What says from where the device can be used; None: no slice offers it any more."""
    newest: tuple[int, Mapping[str, Any]] | None = None
    for spec in slices:
        for each in spec.get("devices") or ():
            generation = int((spec.get("pool") or {}).get("generation") or 0)
            if each.get("name") == device.device and (newest is None or generation > newest[0]):
                body = each.get("basic") or each
                place = body if spec.get("perDeviceNodeSelection") else spec
                binds = {"bindsToNode": True} if body.get("bindsToNode") else {}
                newest = generation, {name: place[name] for name in ("nodeName", "nodeSelector") if place.get(name)} | binds
    return newest[1] if newest is not None else None
