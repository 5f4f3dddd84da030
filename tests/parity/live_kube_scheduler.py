"""The kube-scheduler that `make envtest` built, asked about random clusters: `make parity SEED=7 CASES=50`.

No recorded answers are needed. Each case makes nodes, running pods and disruption budgets on a real API server and starts
kube-scheduler. Then pods come one after the other: where one of them preempts, its victims stay (nobody ends them) and the next pod
meets its nomination. After each, `navarch.plan` decides for the objects as the server had them: node, nomination, victims, message.
kube-scheduler is started anew for each case: it decides only after it has read everything, so a case cannot see half of a cluster.
Among nodes of equal score, and among equally good nodes to preempt on, it takes any: each is the same answer. Which nodes are equal
is told by tests/reference, which property tests compare with ours.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.envtest import assets
from tests.envtest.server import KubeApiServer, free_port
from tests.reference.cluster import Cluster, key_of, terminating
from tests.reference.cycle import Filtering, totals
from tests.reference.preemption import post_filter
from tests.worlds.random_live_clusters import CLASSES, LiveMaker

import navarch

Object = dict[str, Any]
NAMESPACES = ("default", "other")
POD = {"apiVersion": "v1", "kind": "Pod"}
AT_ONCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
KINDS = {
    "Node": ("v1", "/api/v1/nodes"),
    "Namespace": ("v1", "/api/v1/namespaces"),
    "Pod": ("v1", "/api/v1/pods"),
    "Service": ("v1", "/api/v1/namespaces/default/services"),
    "PodDisruptionBudget": ("policy/v1", "/apis/policy/v1/poddisruptionbudgets"),
    "PriorityClass": ("scheduling.k8s.io/v1", "/apis/scheduling.k8s.io/v1/priorityclasses"),
}
SECONDS = 120.0
VICTIM_SECONDS = 10.0
LOOK = 0.05


@dataclass(frozen=True)
class Answer:
    """What a scheduler did with the pod: bound it, promised it a node for which it evicts, or said why it waits."""

    node: str = ""
    promised: str = ""
    message: str = ""
    victims: frozenset[str] = frozenset()


@dataclass
class Outcome:
    seed: int
    differences: list[str] = field(default_factory=list)
    compared: int = 0
    """Pods."""
    refused: str = ""
    """Why there was nothing to compare: the API server did not take the pods, or kube-scheduler ended."""


class LiveCases:
    """Cases on one API server, one after the other."""

    def __init__(self, server: KubeApiServer) -> None:
        self.server = server
        make_priority_classes(server)
        with contextlib.suppress(RuntimeError):
            server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
        default = server.request("GET", "/api/v1/namespaces/default")
        default["metadata"]["labels"]["team"] = "x"
        server.request("PUT", "/api/v1/namespaces/default", default)

    def compare(self, seed: int) -> Outcome:
        outcome = Outcome(seed)
        case = LiveMaker(seed).live_case()
        try:
            self._set_up(case)
            with kube_scheduler(self.server):
                for pod in case["pods"]:
                    self._compare_pod(pod, outcome)
            return outcome
        finally:
            self._clean_up()

    def _set_up(self, case: Object) -> None:
        for node in case["nodes"]:
            self.server.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **node})
        for pod in case["existingPods"]:
            with contextlib.suppress(RuntimeError):  # one that the API server refuses is not there for either scheduler
                self._run(pod)
        for each in case["objects"]:
            spec = {**each["spec"], "ports": [{"port": 80}]}
            self.server.request("POST", "/api/v1/namespaces/default/services", {**each, "spec": spec})
        for each in case["budgets"]:
            path = f"/apis/policy/v1/namespaces/{each['metadata']['namespace']}/poddisruptionbudgets"
            made = self.server.request("POST", path, each)
            status = {**each["status"], "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
            self.server.request("PUT", f"{path}/{each['metadata']['name']}/status", {**made, "status": status})

    def _compare_pod(self, pod: Object, outcome: Outcome) -> None:
        name = pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        before = self._objects()
        try:
            before.append({**self.server.request("POST", path, {k: v for k, v in pod.items() if k != "status"}), **POD})
        except RuntimeError as error:
            outcome.refused = outcome.refused or _message_of(error)
            return
        theirs = self._ask(f"{path}/{name}")
        ours = our_answer(before, name)
        if theirs.promised:
            theirs = replace(theirs, victims=self._victims(before, ours.victims))
        found = differences(before, name, theirs, ours)
        outcome.compared += 1
        outcome.differences += [f"{name}: {text}" for text in found]
        if not theirs.node and not theirs.promised:
            self.server.request("DELETE", f"{path}/{name}", AT_ONCE)

    def _run(self, pod: Object) -> None:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        self.server.request("POST", path, {key: value for key, value in pod.items() if key != "status"})
        made = self.server.request("GET", f"{path}/{pod['metadata']['name']}")
        made["status"] = {**made.get("status", {}), **pod["status"]}
        self.server.request("PUT", f"{path}/{pod['metadata']['name']}/status", made)

    def _objects(self) -> list[Object]:
        """The cluster as the API server has it."""
        found = []
        for kind, (version, path) in KINDS.items():
            found += [{**each, "apiVersion": version, "kind": kind} for each in self.server.request("GET", path)["items"]]
        return [each for each in found if each["metadata"]["name"] != "kubernetes"]

    def _ask(self, path: str) -> Answer:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            found = self.server.request("GET", path)
            if node := found["spec"].get("nodeName"):
                return Answer(node=node)
            for condition in found["status"].get("conditions") or ():
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return Answer(promised=found["status"].get("nominatedNodeName", ""), message=condition["message"])
            time.sleep(LOOK)
        raise AssertionError("kube-scheduler decided nothing")

    def _victims(self, before: list[Object], expected: frozenset[str]) -> frozenset[str]:
        """Pods that were marked since. They are marked beside the scheduling cycle, so those that we expect are waited for."""
        end = time.monotonic() + VICTIM_SECONDS
        earlier = _marked(before)
        while True:
            found = frozenset(_marked(self._objects()) - earlier)
            if (found and found == expected) or time.monotonic() > end:
                return found
            time.sleep(LOOK)

    def _clean_up(self) -> None:
        for namespace in NAMESPACES:
            for kind, api in (("pods", "/api/v1"), ("poddisruptionbudgets", "/apis/policy/v1")):
                path = f"{api}/namespaces/{namespace}/{kind}"
                for each in self.server.request("GET", path)["items"]:
                    self.server.request("DELETE", f"{path}/{each['metadata']['name']}", AT_ONCE)
        with contextlib.suppress(RuntimeError):
            self.server.request("DELETE", "/api/v1/namespaces/default/services/s")
        self.server.request("DELETE", "/api/v1/nodes")


def make_priority_classes(server: KubeApiServer) -> None:
    for (value, policy), name in CLASSES.items():
        body: Object = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        if policy:
            body["preemptionPolicy"] = policy
        with contextlib.suppress(RuntimeError):  # it is there already
            server.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)


def _marked(objects: list[Object]) -> set[str]:
    """Pods that kube-scheduler preempted."""
    return {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in objects
        if each["kind"] == "Pod"
        and any(c["type"] == "DisruptionTarget" and c["status"] == "True" for c in each["status"].get("conditions") or ())
    }


@contextmanager
def kube_scheduler(server: KubeApiServer, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    binary = assets.find().scheduler
    if binary is None:
        raise assets.Unavailable("no kube-scheduler: run `make envtest` (needs Go)")
    command = [str(binary), f"--kubeconfig={server.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1"]
    command += [f"--secure-port={free_port()}", f"--cert-dir={server.folder / 'kube-scheduler'}", *arguments]
    with (server.folder / "kube-scheduler.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.kill()
            process.wait(timeout=60)


def _message_of(error: RuntimeError) -> str:
    """The sentence of the API server's answer."""
    text = str(error)
    try:
        return str(json.loads(text[text.index("{") :])["message"])
    except (ValueError, KeyError):
        return text


def differences(objects: list[Object], name: str, theirs: Answer, ours: Answer | None = None) -> list[str]:
    """Where the answers differ, in sentences."""
    ours = our_answer(objects, name) if ours is None else ours
    if theirs.node:
        if ours.node == theirs.node or (ours.node and _equal(objects, name, ours.node, theirs.node)):
            return []
        return [f"kube-scheduler binds to {theirs.node}; navarch: {_said(ours)}"]
    if ours.node:
        return [f"kube-scheduler: {_said(theirs)}; navarch binds to {ours.node}"]
    if bool(theirs.promised) != bool(ours.promised):
        return [f"kube-scheduler: {_said(theirs)}; navarch: {_said(ours)}"]
    if theirs.promised and (ours.promised, ours.victims) != (theirs.promised, theirs.victims):
        return [] if _equally_good(objects, name, ours, theirs) else [f"kube-scheduler: {_said(theirs)}; navarch: {_said(ours)}"]
    if theirs.message != ours.message:
        return [f"kube-scheduler says {theirs.message!r}; navarch says {ours.message!r}"]
    return []


def our_answer(objects: list[Object], name: str) -> Answer:
    plan = navarch.plan(objects, "kube-scheduler")
    (record,) = plan.records
    node = next((bind.node for bind in record.binds if bind.pod.endswith(f"/{name}")), "")
    promised = next((each.node for each in record.nominations if each.pod.endswith(f"/{name}")), "")
    message = next((r.message for job in record.jobs for r in job.refusals if r.pod.endswith(f"/{name}")), "")
    return Answer(node, promised, message, frozenset(each.pod for each in record.evictions))


def _said(answer: Answer) -> str:
    if answer.node:
        return f"binds to {answer.node}"
    if answer.promised:
        return f"preempts {', '.join(sorted(answer.victims)) or 'nothing'} on {answer.promised}"
    return f"waits ({answer.message})"


def _world(objects: list[Object], name: str) -> tuple[Cluster, Object]:
    """The cluster of the reference, and the pod in question."""
    kinds: Mapping[str, list[Object]] = {kind: [each for each in objects if each["kind"] == kind] for kind in KINDS}
    placed = [pod for pod in kinds["Pod"] if pod["spec"].get("nodeName")]
    promised = [pod for pod in kinds["Pod"] if not pod["spec"].get("nodeName") and (pod.get("status") or {}).get("nominatedNodeName")]
    (pod,) = [pod for pod in kinds["Pod"] if pod["metadata"]["name"] == name]
    others = [*kinds["Namespace"], *kinds["Service"], *kinds["PodDisruptionBudget"]]
    return Cluster(kinds["Node"], placed, others, promised), pod


def _equal(objects: list[Object], name: str, one: str, other: str) -> bool:
    """Whether both nodes have the highest score of the feasible ones."""
    cluster, pod = _world(objects, name)
    feasible = [node for node, status in Filtering(cluster, pod).all_nodes().items() if status.ok]
    scores = totals(cluster, pod, [cluster.nodes[node] for node in feasible])
    return {one, other} <= set(feasible) and scores[one] == scores[other] == max(scores.values())


def _equally_good(objects: list[Object], name: str, *answers: Answer) -> bool:
    """Whether each answer names a node that no other one beats, and the victims there."""
    cluster, pod = _world(objects, name)
    found = post_filter(cluster, pod, Filtering(cluster, pod).all_nodes())
    return all(
        answer.promised in found.chosen
        and answer.victims == {key_of(victim) for victim in found.candidates[answer.promised].victims if not terminating(victim)}
        for answer in answers
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=20)
    given = parser.parse_args()
    wrong = compared = 0
    with KubeApiServer() as server:
        cases = LiveCases(server)
        for number in range(given.cases):
            outcome = cases.compare(given.seed * 1_000_003 + number)
            compared += outcome.compared
            if outcome.refused:
                print(f"case {outcome.seed}: a pod is not compared, the API server refuses it: {outcome.refused}", flush=True)
            wrong += bool(outcome.differences)
            for each in outcome.differences:
                print(f"case {outcome.seed}: {each}", flush=True)
    text = f"{given.cases} random clusters with {compared} pods compared with kube-scheduler, {wrong} differ"
    print(f"{text} (seed {given.seed})")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    raise SystemExit(main())
