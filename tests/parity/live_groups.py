"""kube-scheduler and ours on random clusters with groups of `scheduling.k8s.io`: `make parity-groups SEED=7 CASES=50`.

Each case makes nodes and running groups on a real API server and starts kube-scheduler with the feature gates of groups. Then groups
come one after the other, and single pods among them. The pods of a group are made before their PodGroup: kube-scheduler takes them
into one cycle when it comes. After each these are compared: how many of its pods get a node, whether they keep to one rack, and
whether it preempts.

Which pods are the victims is not compared, because Navarch follows 1.37: it keeps the nodes that it found for all pods of the group,
and a group that goes together is one victim for single pods as well. 1.36 repeats its search for each victim that may stay, and is
content with the minimum. Nor does 1.36 preempt for a group with a topology constraint.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from typing import Any

from tests.envtest.server import UPSTREAM_GROUPS, KubeApiServer
from tests.parity.live_device_claims import clear_claims
from tests.parity.live_kube_scheduler import AT_ONCE, LOOK, Outcome, kube_scheduler, make_priority_classes
from tests.worlds.random_group_clusters import GroupMaker

import navarch

Object = dict[str, Any]
PATHS = {
    "Node": ("v1", "/api/v1/nodes"),
    "Namespace": ("v1", "/api/v1/namespaces"),
    "Pod": ("v1", "/api/v1/namespaces/default/pods"),
    "PodDisruptionBudget": ("policy/v1", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"),
    "PriorityClass": ("scheduling.k8s.io/v1", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    "DeviceClass": ("resource.k8s.io/v1", "/apis/resource.k8s.io/v1/deviceclasses"),
    "ResourceSlice": ("resource.k8s.io/v1", "/apis/resource.k8s.io/v1/resourceslices"),
    "ResourceClaim": ("resource.k8s.io/v1", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"),
    "PodGroup": ("scheduling.k8s.io/v1alpha2", "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"),
}
TRIED_AGAIN = 'running PreBind plugin "DynamicResources"'
"""Pods of one group write a claim that they share at the same time; the slower ones try again at once."""
SECONDS = 30.0
QUIET_SECONDS = 1.5
"""How long to look for victims where none are expected: pods are marked beside the scheduling cycle."""


class GroupCases:
    """Cases on one API server, one after the other."""

    def __init__(self, server: KubeApiServer) -> None:
        self.server = server
        make_priority_classes(server)

    def compare(self, seed: int) -> Outcome:
        outcome = Outcome(seed)
        objects, groups = GroupMaker(seed).case()
        try:
            for each in objects:
                self._make(each)
            with kube_scheduler(self.server, UPSTREAM_GROUPS[0]):
                for group in groups:
                    if self._compare_group(group, outcome):
                        break  # 1.36 nominates no nodes for a group, so what follows differs
        finally:
            self._clean_up()
        return outcome

    def _compare_group(self, group: list[Object], outcome: Outcome) -> bool:
        """Whether what follows cannot be compared."""
        before = {each["metadata"]["uid"] for each in self._objects() if each["kind"] == "Pod"}
        for each in group[:-1]:
            self._make(each)
        objects = self._objects()
        made = self._make(group[-1])
        kind = group[-1]["kind"]
        objects.append({**made, "apiVersion": PATHS[kind][0], "kind": kind})
        names = [each["metadata"]["name"] for each in group if each["kind"] == "Pod"]
        answer = self._ask(names)
        if answer is None:
            outcome.refused = "kube-scheduler keeps trying"
            return True
        nodes, waiting = answer
        ours, evicted = _ours(objects)
        theirs = self._victims(objects, evicted)
        outcome.compared += 1
        last = group[-1]["metadata"]["name"]
        outcome.differences += [f"{last}: {text}" for text in _differences(group, objects, nodes, ours, waiting)]
        if not _constraint(group) and bool(theirs) != bool(evicted):
            text = f"kube-scheduler evicts {sorted(theirs)} ({waiting}), navarch {sorted(evicted)}"
            outcome.differences.append(f"{last}: {text}")
        if waiting and not theirs:
            self._delete_waiting(before)
        return bool(theirs) and kind == "PodGroup"

    def _ask(self, names: list[str]) -> tuple[dict[str, str], str] | None:
        """Pods with a node, once every pod was decided on, and the message of one that waits. None: that takes too long."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            nodes, told = {}, {}
            for name in names:
                found = self.server.request("GET", f"{PATHS['Pod'][1]}/{name}")
                if node := found["spec"].get("nodeName"):
                    nodes[name] = node
                for each in found["status"].get("conditions") or ():
                    waits = (each["type"], each["status"]) == ("PodScheduled", "False") and each.get("reason") != "SchedulingGated"
                    if waits and not each["message"].startswith(TRIED_AGAIN):
                        told[name] = each["message"]
            if len(nodes.keys() | told.keys()) == len(names):
                return nodes, next((told[name] for name in names if name not in nodes), "")
            time.sleep(LOOK)
        return None

    def _victims(self, before: list[Object], expected: set[str]) -> set[str]:
        end = time.monotonic() + (10.0 if expected else QUIET_SECONDS)
        earlier = _marked(before)
        while True:
            found = _marked(self._objects()) - earlier
            if (expected and found == expected) or time.monotonic() > end:
                return found
            time.sleep(LOOK)

    def _make(self, thing: Object) -> Object:
        body = {key: value for key, value in thing.items() if key != "status" or thing["kind"] == "Node"}
        body["metadata"] = {key: value for key, value in thing["metadata"].items() if key in ("name", "namespace", "labels")}
        path = PATHS[thing["kind"]][1]
        made: Object = self.server.request("POST", path, body)
        if thing["kind"] == "PodDisruptionBudget" or (thing["kind"] == "Pod" and "nodeName" in thing["spec"]):
            status = thing["status"]
            if thing["kind"] == "PodDisruptionBudget":
                status = {**status, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
            made["status"] = {**made.get("status", {}), **status}
            self.server.request("PUT", f"{path}/{thing['metadata']['name']}/status", made)
        return made

    def _objects(self) -> list[Object]:
        found = []
        for kind, (version, path) in PATHS.items():
            found += [{**each, "apiVersion": version, "kind": kind} for each in self.server.request("GET", path)["items"]]
        return found

    def _delete_waiting(self, before: set[str]) -> None:
        path = PATHS["Pod"][1]
        for each in self.server.request("GET", path)["items"]:
            if each["metadata"]["uid"] not in before and not each["spec"].get("nodeName"):
                self.server.request("DELETE", f"{path}/{each['metadata']['name']}", AT_ONCE)

    def _clean_up(self) -> None:
        for kind in ("Pod", "PodDisruptionBudget", "PodGroup"):
            path = PATHS[kind][1]
            for each in self.server.request("GET", path)["items"]:
                one = f"{path}/{each['metadata']['name']}"
                with contextlib.suppress(RuntimeError):
                    self.server.request("DELETE", one, AT_ONCE)
                if kind == "PodGroup":
                    self._release(one)
        clear_claims(self.server)
        for kind in ("ResourceSlice", "DeviceClass", "Node"):
            self.server.request("DELETE", PATHS[kind][1])

    def _release(self, path: str) -> None:
        """No controller runs that would take the finalizer away."""
        with contextlib.suppress(RuntimeError):
            found = self.server.request("GET", path)
            found["metadata"]["finalizers"] = []
            self.server.request("PUT", path, found)


def _ours(objects: list[Object]) -> tuple[dict[str, str], set[str]]:
    """Our binds, and our victims: pods that a group which starts leaves behind are tried again, and may preempt then."""
    first, second = navarch.plan(objects, "kube-scheduler", cycles=2).records
    records = [first] if first.evictions else [first, second]
    nodes = {bind.pod.partition("/")[2]: bind.node for record in records for bind in record.binds}
    return nodes, {each.pod.partition("/")[2] for record in records for each in record.evictions}


def _marked(objects: list[Object]) -> set[str]:
    return {
        each["metadata"]["name"]
        for each in objects
        if each["kind"] == "Pod"
        and any(c["type"] == "DisruptionTarget" and c["status"] == "True" for c in each["status"].get("conditions") or ())
    }


def _constraint(group: list[Object]) -> bool:
    return bool(group[-1]["spec"].get("schedulingConstraints"))


def _differences(group: list[Object], objects: list[Object], theirs: dict[str, str], ours: dict[str, str], waiting: str) -> list[str]:
    names = {each["metadata"]["name"] for each in group if each["kind"] == "Pod"}
    mine = {name: node for name, node in ours.items() if name in names}
    if len(mine) != len(theirs):
        return [f"kube-scheduler binds {theirs} ({waiting}), navarch {mine}"]
    rack = {each["metadata"]["name"]: each["metadata"]["labels"].get("rack") for each in objects if each["kind"] == "Node"}
    if _constraint(group) and len({rack[node] for node in mine.values()}) > 1:
        return [f"navarch leaves the rack: {mine}"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=20)
    given = parser.parse_args()
    wrong = compared = 0
    with KubeApiServer(UPSTREAM_GROUPS) as server:
        cases = GroupCases(server)
        for number in range(given.cases):
            outcome = cases.compare(given.seed * 1_000_003 + number)
            compared += outcome.compared
            wrong += bool(outcome.differences)
            for each in outcome.differences:
                print(f"case {outcome.seed}: {each}", flush=True)
    print(f"{given.cases} random clusters with {compared} groups compared with kube-scheduler, {wrong} differ (seed {given.seed})")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    raise SystemExit(main())
