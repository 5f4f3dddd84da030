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
LEAVING = frozenset({"Pod", "Job", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "PyTorchJob", "JobSet", "LeaderWorkerSet"})
"""Kinds that are pods or make them."""


def belongs(pod: str, job: str) -> bool:
    """`default/j7-0` belongs to `default/j7`."""
    return pod == job or pod.startswith(f"{job}-")


def full_name(manifest: Mapping[str, Any]) -> str:
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace', 'default')}/{metadata['name']}"


def key(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    return manifest["apiVersion"].rpartition("/")[0], manifest["kind"], full_name(manifest)


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
    kind = manifest["kind"]
    return f"{kind}/{full_name(manifest)}" in remove or f"{kind}/{manifest['metadata']['name']}" in remove


def started(objects: Sequence[Object], job: str, policy: Any, cycles: int, now: float | None = None, goal: int = 0) -> bool | None:
    """At least minMember pods of the job, and one at least, are bound at the end. None: the plan shows no such job. `goal`: so many
    instead of minMember."""
    decided = navarch.plan(copy.deepcopy(list(objects)), policy, cycles, now=now).to_dict()["cycles"]
    bound = {
        full_name(each)
        for each in objects
        if each["kind"] == "Pod"
        and each["spec"].get("nodeName")
        and each.get("status", {}).get("phase") in BOUND_PHASES
        and not each["metadata"].get("deletionTimestamp")
    }
    for cycle in decided:
        bound |= {each["pod"] for each in cycle["binds"]}
        bound -= {each["pod"] for each in cycle["evictions"]}
    mine = _job_of(decided[-1]["jobs"], job)
    if mine is None:
        return None
    return sum(belongs(pod, mine["job"]) for pod in bound) >= (goal or max(1, int(mine["minMember"])))


def _job_of(jobs: Sequence[Object], job: str) -> Object | None:
    """A Deployment's job is named after a hash of its template, which a change may change."""
    stem = job.rpartition("-")[0]
    exact = [each for each in jobs if each["job"] == job]
    alike = [each for each in jobs if stem and belongs(each["job"], stem)]
    return exact[0] if exact else alike[0] if len(alike) == 1 else None


def without(objects: Sequence[Object], jobs: Sequence[str], *, owners: bool) -> list[Object]:
    """The input without the pods of these jobs and without what would make them; `owners`: nor what owns pods that are there."""
    made = {
        f"{each['metadata'].get('namespace', 'default')}/{owner['name']}"
        for each in objects
        for owner in each["metadata"].get("ownerReferences", ())
    }
    out = []
    for each in objects:
        name, is_pod = full_name(each), each["kind"] == "Pod"
        owns_pods = not is_pod and any(belongs(owner, name) for owner in made)
        leaves = any(belongs(name, job) or (not is_pod and belongs(job, name)) for job in jobs)
        if each["kind"] not in LEAVING or (owns_pods and not owners) or not leaves:
            out.append(each)
    return without_free_claims(objects, out)


def without_free_claims(before: Sequence[Object], after: list[Object]) -> list[Object]:
    """Without the claims whose pods have all left: a controller takes their devices back."""
    there = [{full_name(each) for each in objects if each["kind"] == "Pod"} for objects in (before, after)]

    def is_free(claim: Object) -> bool:
        users = claim.get("status", {}).get("reservedFor", ())
        names = {f"{full_name(claim).partition('/')[0]}/{user['name']}" for user in users}
        return bool(names) and names <= there[0] and not names & there[1]

    return [each for each in after if each["kind"] != "ResourceClaim" or not is_free(each)]


def alone(objects: Sequence[Object], job: str, *, makers: bool) -> list[Object]:
    """The input without the pods of all other jobs; `makers`: nor what makes pods."""

    def stays(each: Object) -> bool:
        name = full_name(each)
        other = each["kind"] in LEAVING and not belongs(name, job) and not belongs(job, name)
        return not other or (each["kind"] != "Pod" and not makers)

    return without_free_claims(objects, [each for each in objects if stays(each)])


def _of_the_deciding_rule(objects: Sequence[Object], answer: Mapping[str, Any], policy: Any, now: float | None) -> list[str]:
    """The rule that is said to decide alone does; where none is said to, no other job and no further node starts the job alone."""
    rule, job = answer["deciding"], answer["job"]
    if rule is None:
        return []
    if rule["rule"] != "none":
        did = started(applied(objects, rule), job, policy, rule["cycles"], now)
        return [] if did else [f"rule {rule['text']!r}: it does not start"]
    names = {full_name(each) for each in objects if each["kind"] == "Pod"}
    others = sorted({name.split("-")[0] if "kube-system" not in name else name for name in names if not belongs(name, job)})
    found = [
        f"{other} alone keeps it from starting"
        for other in others
        if started(without(objects, [other], owners=True), job, policy, 3, now)
    ]
    found += [
        f"one more node like {each['metadata']['name']} alone starts it"
        for each in objects
        if each["kind"] == "Node" and started([*objects, _further(each)], job, policy, 3, now)
    ]
    return found


def _further(node: Object) -> Object:
    """An empty node of the kind, ready for work."""
    out = copy.deepcopy(node)
    name = f"{out['metadata']['name']}-more-1"
    out["metadata"]["name"] = name
    if "kubernetes.io/hostname" in out["metadata"].get("labels", {}):
        out["metadata"]["labels"]["kubernetes.io/hostname"] = name
    out.get("spec", {}).pop("unschedulable", None)
    for condition in out["status"].get("conditions", ()):
        if condition["type"] == "Ready":
            condition["status"] = "True"
    return out


def complaints(objects: Sequence[Object], answer: Mapping[str, Any], policy: Any, now: float | None = None) -> list[str]:
    """What the explanation claims and `navarch.plan` does not confirm."""
    job, pods = answer["job"], answer["pods"]
    found: list[str] = []
    held = sum(pods.get(each, 0) for each in ("Binding", "Bound", "Running"))
    grows = answer["state"] == "running" and pods.get("Pending", 0) > 0
    goal = held + 1 if grows else 0
    for change in answer["changes"]:
        did = started(applied(objects, change), job, policy, change["cycles"], now, goal) or False
        if did != change["starts"]:
            found.append(f"change {change['text']!r} in {change['cycles']} cycles: said {change['starts']}, is {did}")
    found += _of_the_deciding_rule(objects, answer, policy, now)
    blockers = answer["blockers"]["jobs"]
    if blockers or answer["blockers"]["minimal"]:
        found += [
            f"does not start without its blockers {blockers} ({owners=})"
            for owners in (True, False)
            if not started(without(objects, blockers, owners=owners), job, policy, 1, now, goal)
        ]
        if answer["blockers"]["minimal"]:
            found += [
                f"blocker {back} of {blockers} is not needed"
                for back in blockers
                for owners in (True, False)
                if started(without(objects, [each for each in blockers if each != back], owners=owners), job, policy, 1, now, goal)
            ]
    if answer["state"] == "impossible":
        found += [
            f"is said to be impossible and starts on the empty cluster ({makers=})"
            for makers in (True, False)
            if started(alone(objects, job, makers=makers), job, policy, 3, now, goal)
        ]
    if not answer["cause"] or not answer["cause"]["code"] or not answer["cause"]["message"]:
        found.append(f"has no cause: {answer['cause']}")
    helped = any(change["starts"] for change in answer["changes"]) or blockers
    waits = answer["state"] == "pending" or grows
    alone_in_vain = any("without any other job either" in note for note in answer["notes"])
    if waits and not helped and not alone_in_vain and answer["complete"]:
        found.append("waits, is complete, and nothing starts it")
    if alone_in_vain:
        found += [
            f"is said not to grow and does on the empty cluster ({makers=})"
            for makers in (True, False)
            if started(alone(objects, job, makers=makers), job, policy, 3, now, goal)
        ]
    if waits and answer["cause"]["code"] != "Starts" and started(objects, job, policy, 1, now, goal):
        found.append(f"starts in the next cycle, and the cause is {answer['cause']['code']}")
    order = answer["order"]
    if (waits or answer["state"] == "impossible") and order["place"] is not None:
        if not 1 <= order["place"] <= order["of"] or not order["place"] <= order["overall"] <= order["overallOf"]:
            found.append(f"stands at an impossible place: {order}")
    return found
