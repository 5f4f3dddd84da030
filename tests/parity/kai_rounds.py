"""Several cycles of a recorded case, with what KAI's test harness does between them.

A pod that was given a node runs there; a promise is forgotten; an evicted pod comes back pending without its devices, unless the
case says that its job was deleted; other claims keep the devices they were given. The objects of each cycle are written anew,
so every cycle starts from manifests alone.
"""

from __future__ import annotations

import copy
from typing import Any

from tests.parity.kai_judge import Outcome, after_cycle, standing_at_start
from tests.parity.kai_session import Case, moment_of, policy_document

from navarch.engine.record import ClaimAllocation
from navarch.offline.plan import Plan, plan

GROUP_LABEL = "runai-gpu-group"


def run_rounds(case: Case) -> tuple[Outcome, Outcome]:
    """What became of every pod at the end of the first cycle, and after all of them."""
    objects = case["objects"]
    deleted = {job["name"] for job in case.get("meta", {}).get("jobs", ()) if job.get("deleteJobInTest")}
    first: Outcome = {}
    found: Outcome = {}
    for number in range(case["rounds"]):
        now = case | {"objects": objects}
        planned: Plan = plan(objects, policy=policy_document(case), now=moment_of(case))
        found = after_cycle(standing_at_start(now), planned.to_dict()["cycles"][0])
        first = first or found
        if case["settle"]:
            objects = _settled(objects, found, planned.records[0].claims, deleted, number)
            found = standing_at_start(case | {"objects": objects})
    return first, found


def _settled(objects: list[Any], found: Outcome, claims: list[ClaimAllocation], deleted: set[str], number: int) -> list[Any]:
    out = []
    given = {claim.claim: claim for claim in claims}
    gone = {key.partition("/")[2] for key, each in found.items() if each["status"] in ("Releasing", "Pipelined")}
    for manifest in copy.deepcopy(objects):
        meta = manifest["metadata"]
        key = f"{meta.get('namespace', 'default')}/{meta['name']}"
        if manifest["kind"] == "Pod" and key in found:
            _settle_pod(manifest, found[key], meta["annotations"].get("pod-group-name") in deleted, number)
        elif manifest["kind"] == "ResourceClaim":
            _release_claim(manifest, gone)
            if key in given:
                _settle_claim(manifest, given[key])
        elif manifest["kind"] == "BindRequest":
            continue
        out.append(manifest)
    return out


def _settle_pod(pod: dict[str, Any], found: dict[str, Any], deleted: bool, number: int) -> None:
    meta, labels = pod["metadata"], pod["metadata"].setdefault("labels", {})
    if found["status"] == "Binding":
        pod["spec"]["nodeName"] = found["node"]
        pod["status"] = pod["status"] | {"phase": "Running"}
        groups = [f"cycle-{number}-{g}" if g.startswith("new-") else g for g in found.get("gpuGroups", ())]
        if len(groups) == 1:
            labels[GROUP_LABEL] = groups[0]
        for group in groups if len(groups) > 1 else ():
            labels[f"{GROUP_LABEL}/{group}"] = group
    elif found["status"] == "Pipelined" or (found["status"] == "Releasing" and not deleted):
        pod["spec"].pop("nodeName", None)
        pod["status"] = pod["status"] | {"phase": "Pending"}
        meta.pop("deletionTimestamp", None)
        for name in [name for name in labels if name.startswith(GROUP_LABEL)]:
            del labels[name]


def _release_claim(manifest: dict[str, Any], gone: set[str]) -> None:
    """What a pod that was evicted held alone is free again."""
    status = manifest.get("status") or {}
    users = status.get("reservedFor") or []
    left = [user for user in users if user["name"] not in gone]
    if users and not left:
        status.pop("allocation", None)
    if users:
        status["reservedFor"] = left


def _settle_claim(manifest: dict[str, Any], given: ClaimAllocation) -> None:
    results = [
        {"device": device.device, "driver": device.driver, "pool": device.pool, "request": device.request} for device in given.devices
    ]
    status = manifest.setdefault("status", {})
    status["allocation"] = {"devices": {"results": results}}
    status["reservedFor"] = [*status.get("reservedFor", ()), {"name": given.uid, "resource": "pods", "uid": given.uid}]
