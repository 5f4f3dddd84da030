"""Judges what `navarch explain` says of placed pods, nodes and queues by `navarch.plan` alone.

A pod is pinned to a node by its name, and a cycle is run. Whether it is bound there tells whether the node takes it; where it is
bound without a pin tells which node scores best. Where a queue refuses the pod, nothing is judged.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.worlds.explained_judge import LEAVING, Object, belongs, full_name

import navarch
from navarch.model.resources import parse_amount

NAME_FIELD = "metadata.name"
_GANG_RULES = ("subGroups", "minTaskMember", "subGroupPolicy", "networkTopology", "topologyConstraint", "minResources")


def is_pending(manifest: Mapping[str, Any]) -> bool:
    return (
        manifest["kind"] == "Pod"
        and not manifest["spec"].get("nodeName")
        and manifest.get("status", {}).get("phase", "Pending") == "Pending"
    )


def waits_alone(objects: Sequence[Object], pod: str) -> list[Object]:
    """The input with this one pod to be placed and no other, and without workloads that would make further pods. Others that wait are
    gated: some scores look at what waits."""
    owners = {str(owner["name"]) for each in objects for owner in each["metadata"].get("ownerReferences", ())}
    out = []
    for each in objects:
        mine = each["kind"] == "Pod" and full_name(each) == pod
        makes = each["kind"] in LEAVING and each["kind"] != "Pod" and not any(belongs(o, each["metadata"]["name"]) for o in owners)
        if not makes:
            out.append(copy.deepcopy(each))
            if is_pending(each) and not mine:
                out[-1]["spec"]["schedulingGates"] = [{"name": "not-now"}]
    found = next(each for each in out if each["kind"] == "Pod" and full_name(each) == pod)
    found["spec"].pop("nodeName", None)
    found["metadata"].pop("deletionTimestamp", None)
    found["status"] = {"phase": "Pending"}
    return out


def pinned(objects: Sequence[Object], pod: str, operator: str, node: str) -> list[Object]:
    """The pod may go to this node alone (`In`), or to any other (`NotIn`)."""
    out = copy.deepcopy(list(objects))
    found = next(each for each in out if each["kind"] == "Pod" and full_name(each) == pod)
    affinity = found["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": [{}]})
    for term in required["nodeSelectorTerms"]:
        term.setdefault("matchFields", []).append({"key": NAME_FIELD, "operator": operator, "values": [node]})
    return out


def as_single_pods(objects: list[Object]) -> list[Object]:
    """Groups start with one pod, wherever it is."""
    for each in objects:
        if each["kind"] == "PodGroup":
            for rule in _GANG_RULES:
                each["spec"].pop(rule, None)
            if "schedulingPolicy" in each["spec"]:
                each["spec"]["schedulingPolicy"] = {"gang": {"minCount": 1}}
            else:
                each["spec"]["minMember"] = 1
    return objects


class Probe:
    """Where one pod is bound in the next cycle, as `navarch.plan` says."""

    def __init__(self, objects: Sequence[Object], pod: str, policy: Any, now: float) -> None:
        self._objects, self._pod, self._policy, self._now = objects, pod, policy, now
        self.refused_by_nodes = False

    def bound(self, operator: str = "", node: str = "") -> str:
        objects = pinned(self._objects, self._pod, operator, node) if operator else self._objects
        cycle = navarch.plan(copy.deepcopy(list(objects)), self._policy, 1, now=self._now).to_dict()["cycles"][0]
        waits = (each for each in cycle["jobs"] if belongs(self._pod, each["job"]))
        self.refused_by_nodes = any(reason["nodes"] for each in waits for reason in each["reasons"])
        return next((each["node"] for each in cycle["binds"] if each["pod"] == self._pod), "")


def placement_complaints(objects: Sequence[Object], placement: Mapping[str, Any], policy: Any, now: float) -> list[str]:
    """What is said of a pod that runs: the nodes that would take it, its rank, and the runner-up."""
    pod, node = placement["pod"], placement["node"]
    if _is_spread(objects, pod):
        return []
    probe = Probe(waits_alone(objects, pod), pod, policy, now)
    names = sorted(each["metadata"]["name"] for each in objects if each["kind"] == "Node")
    takes = [name for name in names if probe.bound("In", name) == name]
    if placement["scores"] is None:
        return [f"{pod}: {node} is said to refuse it and takes it"] if node in takes else []
    if not takes:
        probe.bound()  # refused by its queue, or by every node?
        return [] if not probe.refused_by_nodes else [f"{pod}: {placement['feasible']} nodes are said to take it, and none does"]
    found = []
    if len(takes) != placement["feasible"] or node not in takes:
        found.append(f"{pod}: {placement['feasible']} nodes with {node} are said to take it, and {takes} do")
    best, other = placement["scores"], placement["runnerUp"]
    if (other is None) != (takes == [node]):
        found.append(f"{pod}: the runner-up is {other}, and {takes} take it")
    found += [
        f"{pod}: the scores on {each['node']} do not add up: {each}"
        for each in (best, other)
        if each is not None and abs(each["total"] - sum(each["scores"].values())) > 0.01 * max(1, len(each["scores"]))
    ]
    chosen, first = probe.bound(), node if placement["rank"] == 1 else other["node"] if other is not None else ""
    ties = other is not None and abs(other["total"] - best["total"]) < 0.01
    if chosen != first and not (ties and chosen == other["node"]):
        found.append(f"{pod}: {first} is said to be best, and it goes to {chosen}; rank {placement['rank']}, {best}, {other}")
    return found


def node_complaints(objects: Sequence[Object], answer: Mapping[str, Any], policy: Any, now: float) -> list[str]:
    """What is said of a node: what is free, which waiting pods it refuses, what is of no use."""
    name, found = answer["node"], []
    node = next(each for each in objects if each["kind"] == "Node" and each["metadata"]["name"] == name)
    here = [each for each in objects if each["kind"] == "Pod" and each["spec"].get("nodeName") == name]
    here = [each for each in here if each.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
    free = parse_amount("cpu", node["status"]["allocatable"]["cpu"]) - sum(cpu_of(each["spec"]) for each in here)
    left_out = answer["notes"] and not answer["free"]
    if not left_out and max(free, 0) != parse_amount("cpu", answer["free"].get("cpu", 0)):
        found.append(f"{name}: cpu {answer['free'].get('cpu')} is said to be free, and {free} thousandths are")
    useful = {resource for each in answer["waiting"] if not each["refused"] for resource in each["requests"]}
    asked = {resource for each in answer["waiting"] for resource in each["requests"]}
    found += [
        f"{name}: {resource} is said to be of no use: {answer}"
        for resource, amount in answer["useless"].items()
        if resource in useful or resource not in asked or amount != answer["free"][resource]
    ]
    kinds = Counter(job for each in answer["waiting"] for job in each["jobs"])
    for each in answer["waiting"]:
        for pod in _waiting_pods(objects, each) if kinds[each["jobs"][0]] == 1 else ():
            if _is_spread(objects, pod):
                continue
            probe = Probe(as_single_pods(waits_alone(objects, pod)), pod, policy, now)
            bound = probe.bound("In", name)
            if each["refused"] and bound:
                found.append(f"{name}: is said to refuse {pod} ({each['refused']}) and takes it")
            if not each["refused"] and not bound and probe.refused_by_nodes:
                found.append(f"{name}: is said to take {pod}, and refuses it")
    return found


def _is_spread(objects: Sequence[Object], pod: str) -> bool:
    """Whether it has spread constraints: a pin would change which nodes these count."""
    return any(
        bool(each["spec"].get("topologySpreadConstraints")) for each in objects if each["kind"] == "Pod" and full_name(each) == pod
    )


def cpu_of(spec: Mapping[str, Any]) -> int:
    """Thousandths that a pod without sidecars and overhead requests."""

    def one(container: Mapping[str, Any]) -> int:
        resources = container.get("resources", {})
        asked = resources.get("requests", {}).get("cpu", resources.get("limits", {}).get("cpu", 0))
        return int(parse_amount("cpu", asked))

    return max(sum(map(one, spec["containers"])), max(map(one, spec.get("initContainers", ())), default=0))


def _waiting_pods(objects: Sequence[Object], kind: Mapping[str, Any]) -> list[str]:
    """A pod of the input of this kind; none where pods of the job that differ could be meant."""
    for job in kind["jobs"][:1]:
        pods = [each for each in objects if is_pending(each) and belongs(full_name(each), job)]
        if pods and all(each["spec"] == pods[0]["spec"] for each in pods):
            same = all(each["metadata"].get("annotations") == pods[0]["metadata"].get("annotations") for each in pods)
            return [full_name(pods[0])] if same else []
    return []


def queue_complaints(answers: Mapping[str, Mapping[str, Any]], plan: Mapping[str, Any], parents: Mapping[str, str]) -> list[str]:
    """What is said of all queues, beside the figures and the waiting jobs of `plan` for the same input."""
    cycle, found = plan["cycles"][0], []
    figures = {each["queue"]: each for each in cycle["queues"]}
    held_back = any(job["pods"].get("Allocated") for job in cycle["jobs"])  # by a gang that is not whole
    still = not cycle["binds"] and not cycle["evictions"] and not cycle["nominations"] and not held_back
    for name, answer in answers.items():
        own = figures.get(name)
        if own is None:
            continue
        if answer["request"] != own["request"] or answer["deserved"] != own.get("fairShare", own["deserved"]):
            found.append(f"queue {name}: {answer['deserved']} of {answer['request']} is not what plan says: {own}")
        if still and (answer["allocated"] != own["allocated"] or abs(answer["share"] - own["share"]) > 1e-6):
            found.append(f"queue {name}: holds {answer['allocated']}, share {answer['share']}; plan says {own}")
        found += _step_complaints(name, answer)
        for word, back in (("borrows", "lends"), ("lends", "borrows")):
            for loan in answer[word]:
                mirrored = [each for each in answers[loan["queue"]][back] if each["queue"] == name]
                if not mirrored or mirrored[0]["amounts"] != loan["amounts"]:
                    found.append(f"queue {name} {word} {loan}, the other side says {mirrored}")
                if name in _line(parents, loan["queue"]) or loan["queue"] in _line(parents, name):
                    found.append(f"queue {name} {word} {loan}, and one is above the other")
        bound = {each["pod"] for each in cycle["binds"]}
        for job in cycle["jobs"]:
            if job["queue"] == name and job["pods"].get("Pending") and not any(belongs(pod, job["job"]) for pod in bound):
                holds = sum(number for status, number in job["pods"].items() if status not in ("Pending", "Failed", "Pipelined"))
                listed = any(each["job"] == job["job"] for each in answer["waiting"])
                if not holds and not listed:
                    found.append(f"queue {name}: {job['job']} waits and is not told")
        told = [each["job"] for each in answer["waiting"]]
        known = {each["job"]: each for each in cycle["jobs"]}
        found += [f"queue {name}: {job} is said to wait: {known.get(job)}" for job in told if not known[job]["pods"].get("Pending")]
    return found


def _line(parents: Mapping[str, str], name: str) -> list[str]:
    out: list[str] = []
    while name and name not in out:
        out.append(name)
        name = parents.get(name, "")
    return out


def _step_complaints(name: str, answer: Mapping[str, Any]) -> list[str]:
    """Steps that add or take something lead from one amount to the next."""

    def amounts(*beginnings: str) -> dict[str, int]:
        step: Mapping[str, Any] = next((each for each in answer["steps"] if each["text"].startswith(beginnings)), {"amounts": {}})
        return {resource: int(parse_amount(resource, amount)) for resource, amount in step["amounts"].items()}

    owed = amounts("so it is owed")
    deserved = {each: int(parse_amount(each, amount)) for each, amount in answer["deserved"].items() if each != "pods"}
    if any(each["text"].startswith("so it is owed") for each in answer["steps"]) and owed != deserved:
        return [f"queue {name}: is owed {owed} by its steps, {deserved} in all"]
    if any(each["text"].startswith("its weight is") for each in answer["steps"]):
        start, less, more = amounts("its weight is"), amounts("less what"), amounts("and what")
    elif any(each["text"].startswith("of its quota") for each in answer["steps"]):
        start, less, more = amounts("of its quota"), {}, amounts("and of what quotas leave over")
        owed = {each: amount for each, amount in owed.items() if each in amounts("its quota is")}
    else:
        return []
    for each in start.keys() | owed.keys():
        total = start.get(each, 0) - less.get(each, 0) + more.get(each, 0)
        if abs(total - owed.get(each, 0)) > 3 + 1e-6 * owed.get(each, 0):
            return [f"queue {name}: the steps for {each} lead to {total}, and it is owed {owed.get(each, 0)}: {answer['steps']}"]
    return []
