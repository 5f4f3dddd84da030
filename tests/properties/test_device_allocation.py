"""Devices on random clusters: which pods are placed, and which devices their claims get, equal those of a slow reference."""

from __future__ import annotations

from typing import Any

import pytest
from tests.reference.cluster import Cluster
from tests.reference.device_allocation import Impossible, allocate
from tests.worlds.random_device_clusters import DeviceMaker, extended_claim

import navarch
from navarch.model.quantity import parse_value

Object = dict[str, Any]
CASES = 400


def told(record: Any) -> dict[str, list[Object]]:
    """Claim -> what it got, in the form of the API."""
    found = {}
    for each in record.claims:
        results = []
        for device in each.devices:
            result: Object = {"request": device.request, "driver": device.driver, "pool": device.pool, "device": device.device}
            if device.admin_access:
                result["adminAccess"] = True
            if device.shared:
                result["shareID"] = "made"
                result["consumedCapacity"] = {name: parse_value(amount) for name, amount in device.consumed}
            results.append(result)
        name = each.claim.removeprefix("default/")
        found[f"{name} {each.uid.removeprefix('default/')}" if each.extended else name] = results
    return found


def check(seed: int) -> int:
    """How many pods were placed. Pods go in the order of their priority; each changes what the next finds."""
    objects = DeviceMaker(seed).case()
    record = navarch.plan(objects, policy="kube-scheduler").records[0]
    binds = {bind.pod.removeprefix("default/"): bind.node for bind in record.binds}
    got = told(record)
    kinds: dict[str, list[Object]] = {}
    for each in objects:
        kinds.setdefault(each["kind"], []).append(each)
    nodes = {each["metadata"]["name"]: each for each in kinds["Node"]}
    claims = {each["metadata"]["name"]: each for each in kinds["ResourceClaim"]}
    cluster = Cluster(kinds["Node"], (), [each for each in objects if each["kind"] not in ("Node", "Pod")])
    for pod in kinds["Pod"]:
        name = pod["metadata"]["name"]
        mine = [claims[each["resourceClaimName"]] for each in pod["spec"].get("resourceClaims") or ()]
        extended = extended_claim(pod)
        mine += [extended] if extended is not None else []
        possible = {}
        for node in nodes:
            try:
                possible[node] = allocate(cluster, nodes[node], mine)
            except Impossible:
                possible[node] = None
        feasible = {node for node, found in possible.items() if found is not None}
        assert (name in binds) == bool(feasible), f"seed {seed}, {name}: feasible on {feasible}, {binds}"
        if name in binds:
            expected = possible[binds[name]]
            assert expected is not None, f"seed {seed}: {name} cannot be on {binds[name]}"
            for claim, results in zip(mine, expected):
                of = claim["metadata"]["name"]
                assert got[of if claim is not extended else f"{of} {name}"] == results, f"seed {seed}, {name}"
                claim["status"] = {"allocation": {"devices": {"results": results}}}
                if claim is extended:
                    cluster.objects.append({"kind": "ResourceClaim", **claim})
    return len(binds)


@pytest.mark.parametrize("block", range(4))
def test_claims_get_the_devices_of_the_reference(block: int) -> None:
    placed = sum(check(seed) for seed in range(block * CASES // 4, (block + 1) * CASES // 4))
    assert placed > CASES // 4
