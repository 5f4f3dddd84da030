"""Judges an explanation by `navarch.plan` alone, as its contract says: changes are applied to the input and cycles are run.

Nothing here uses Navarch's own reading of objects. Pods of job `j7` are those named `j7` or `j7-...`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import navarch

Object = dict[str, Any]
BOUND_PHASES = ("Pending", "Running")
LEAVING = frozenset({"Pod", "Job", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"})
"""Kinds that are pods or make them."""


def belongs(pod: str, job: str) -> bool:
    """`default/j7-0` belongs to `default/j7`."""
    return pod == job or pod.startswith(f"{job}-")


def key(manifest: Mapping[str, Any]) -> tuple[str, str, str, str]:
    metadata = manifest["metadata"]
    group = manifest["apiVersion"].rpartition("/")[0]
    return group, manifest["kind"], metadata.get("namespace", "default"), metadata["name"]


def applied(objects: Sequence[Object], change: Mapping[str, Any]) -> list[Object]:
    """The input after a change: replaced, added and removed objects."""
    new = {key(each): each for each in change["objects"]}
    out = []
    for each in objects:
        if _removed(each, change["remove"]):
            continue
        out.append(new.pop(key(each), each))
    return copy.deepcopy(out + list(new.values()))


def _removed(manifest: Object, remove: Sequence[str]) -> bool:
    metadata = manifest["metadata"]
    kind, name = manifest["kind"], metadata["name"]
    return f"{kind}/{metadata.get('namespace', 'default')}/{name}" in remove or f"{kind}/{name}" in remove


def started(objects: Sequence[Object], job: str, policy: Any, cycles: int, now: float | None = None) -> bool:
    """At least minMember pods of the job, and one at least, are bound at the end."""
    decided = navarch.plan(copy.deepcopy(list(objects)), policy, cycles, now=now).to_dict()["cycles"]
    bound = {
        f"{each['metadata'].get('namespace', 'default')}/{each['metadata']['name']}"
        for each in objects
        if each["kind"] == "Pod"
        and each["spec"].get("nodeName")
        and each.get("status", {}).get("phase") in BOUND_PHASES
        and not each["metadata"].get("deletionTimestamp")
    }
    for cycle in decided:
        bound |= {each["pod"] for each in cycle["binds"]}
        bound -= {each["pod"] for each in cycle["evictions"]}
    mine = [each for each in decided[-1]["jobs"] if belongs(each["job"], job)]
    least = max((each["minMember"] for each in mine), default=1)
    return sum(belongs(pod, job) for pod in bound) >= max(1, least)


def without(objects: Sequence[Object], jobs: Sequence[str], *, owners: bool) -> list[Object]:
    """The input without the pods of these jobs and without what would make them; `owners`: nor what owns pods that are there."""
    made = {
        f"{each['metadata'].get('namespace', 'default')}/{owner['name']}"
        for each in objects
        for owner in each["metadata"].get("ownerReferences", ())
    }
    out = []
    for each in objects:
        name = f"{each['metadata'].get('namespace', 'default')}/{each['metadata']['name']}"
        owns_pods = any(belongs(owner, name) for owner in made)
        if (
            each["kind"] not in LEAVING
            or (owns_pods and not owners)
            or not any(belongs(name, job) or belongs(job, name) for job in jobs)
        ):
            out.append(each)
    return out


def complaints(objects: Sequence[Object], answer: Mapping[str, Any], policy: Any, now: float | None = None) -> list[str]:
    """What the explanation claims and `navarch.plan` does not confirm."""
    job, found = answer["job"], []
    # A Deployment's job is named after a hash of its template, which a change may change.
    name = (
        job
        if not any(
            f"default/{each['metadata']['name']}" == job.rpartition("-")[0] and each["kind"] == "Deployment" for each in objects
        )
        else job.rpartition("-")[0]
    )
    for change in answer["changes"]:
        did = started(applied(objects, change), name, policy, change["cycles"], now)
        if did != change["starts"]:
            found.append(f"change {change['text']!r} in {change['cycles']} cycles: said {change['starts']}, is {did}")
    blockers = answer["blockers"]["jobs"]
    if blockers or answer["blockers"]["minimal"]:
        found += [
            f"does not start without its blockers {blockers} ({owners=})"
            for owners in (True, False)
            if not started(without(objects, blockers, owners=owners), name, policy, 1, now)
        ]
        if answer["blockers"]["minimal"]:
            found += [
                f"blocker {back} of {blockers} is not needed"
                for back in blockers
                for owners in (True, False)
                if started(without(objects, [each for each in blockers if each != back], owners=owners), name, policy, 1, now)
            ]
    if answer["state"] == "impossible":
        others = [f"default/{each['metadata']['name']}" for each in objects if each["kind"] in LEAVING]
        pods = [each for each in others if not belongs(each, name)]
        found += [
            f"is said to be impossible and starts on the empty cluster ({owners=})"
            for owners in (True, False)
            if started(without(objects, pods, owners=owners), name, policy, 3, now)
        ]
    if not answer["cause"] or not answer["cause"]["code"] or not answer["cause"]["message"]:
        found.append(f"has no cause: {answer['cause']}")
    helped = any(change["starts"] for change in answer["changes"]) or blockers
    if answer["state"] == "pending" and not helped and answer["complete"]:
        found.append("is pending, complete, and nothing starts it")
    order = answer["order"]
    if answer["state"] in ("pending", "impossible") and order["place"] is not None:
        if not 1 <= order["place"] <= order["of"] or not order["place"] <= order["overall"] <= order["overallOf"]:
            found.append(f"stands at an impossible place: {order}")
    return found
