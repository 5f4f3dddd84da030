"""The kube-scheduler that `make envtest` built, asked about random clusters: `make parity SEED=7 CASES=50`.

No recorded answers are needed. Each case makes nodes, running pods and one pending pod on a real API server, starts kube-scheduler,
and reads what it did with the pod. Then `navarch.plan` decides for the objects as the server has them. kube-scheduler is started anew
for each case: it decides only after it has read everything, so a case cannot see half of a cluster. Among nodes of equal score it
takes any, so a node of equal score is the same answer. Scores come from tests/reference, which property tests compare with ours.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.envtest import assets
from tests.envtest.server import KubeApiServer, free_port
from tests.reference.cluster import Cluster
from tests.reference.cycle import Filtering, totals
from tests.worlds.random_clusters import Maker

import navarch

Object = dict[str, Any]
NAMESPACES = ("default", "other")
CLASSES = {5: "five", 10: "ten"}
"""Priority -> its class: the API server takes no priority without one."""
SECONDS = 120.0
LOOK = 0.05


@dataclass(frozen=True)
class Answer:
    """What a scheduler did with the pod: bound it, promised it a node for which it evicts, or said why it waits."""

    node: str = ""
    promised: str = ""
    message: str = ""


@dataclass
class Outcome:
    seed: int
    differences: list[str] = field(default_factory=list)
    refused: str = ""
    """Why the API server did not take the pending pod; nothing was compared."""


class LiveCases:
    """Cases on one API server, one after the other."""

    def __init__(self, server: KubeApiServer) -> None:
        self.server = server
        for value, name in CLASSES.items():
            body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
            server.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
        with contextlib.suppress(RuntimeError):
            server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
        default = server.request("GET", "/api/v1/namespaces/default")
        default["metadata"]["labels"]["team"] = "x"
        server.request("PUT", "/api/v1/namespaces/default", default)

    def compare(self, seed: int) -> Outcome:
        outcome = Outcome(seed)
        case = Maker(seed).case()
        try:
            for node in case["nodes"]:
                self.server.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **node})
            for pod in case["existingPods"]:
                with contextlib.suppress(RuntimeError):  # one that the API server refuses is not there for either scheduler
                    self._run(pod)
            for each in case["objects"]:
                if each["kind"] == "Service":
                    spec = {**each["spec"], "ports": [{"port": 80}]}
                    self.server.request("POST", "/api/v1/namespaces/default/services", {**each, "spec": spec})
            try:
                path = f"/api/v1/namespaces/{case['pod']['metadata']['namespace']}/pods"
                self.server.request("POST", path, _acceptable(case["pod"]))
            except RuntimeError as error:
                outcome.refused = _message_of(error)
                return outcome
            before = self._objects()
            theirs = self._ask(case["pod"])
            outcome.differences = differences(before, case["pod"]["metadata"]["name"], theirs)
            return outcome
        finally:
            self._clean_up()

    def _run(self, pod: Object) -> None:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        self.server.request("POST", path, _acceptable(pod))
        made = self.server.request("GET", f"{path}/{pod['metadata']['name']}")
        made["status"] = {**made.get("status", {}), **pod["status"]}
        self.server.request("PUT", f"{path}/{pod['metadata']['name']}/status", made)

    def _objects(self) -> list[Object]:
        """The cluster as the API server has it."""
        kinds = {
            "Node": ("v1", "/api/v1/nodes"),
            "Namespace": ("v1", "/api/v1/namespaces"),
            "Pod": ("v1", "/api/v1/pods"),
            "Service": ("v1", "/api/v1/namespaces/default/services"),
            "PriorityClass": ("scheduling.k8s.io/v1", "/apis/scheduling.k8s.io/v1/priorityclasses"),
        }
        found = []
        for kind, (version, path) in kinds.items():
            found += [{**each, "apiVersion": version, "kind": kind} for each in self.server.request("GET", path)["items"]]
        return [each for each in found if each["metadata"]["name"] != "kubernetes"]

    def _ask(self, pod: Object) -> Answer:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        with kube_scheduler(self.server):
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

    def _clean_up(self) -> None:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        for namespace in NAMESPACES:
            for name in [
                each["metadata"]["name"] for each in self.server.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
            ]:
                self.server.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", options)
        with contextlib.suppress(RuntimeError):
            self.server.request("DELETE", "/api/v1/namespaces/default/services/s")
        self.server.request("DELETE", "/api/v1/nodes")


@contextmanager
def kube_scheduler(server: KubeApiServer) -> Iterator[subprocess.Popen[bytes]]:
    binary = assets.find().scheduler
    if binary is None:
        raise assets.Unavailable("no kube-scheduler: run `make envtest` (needs Go)")
    command = [str(binary), f"--kubeconfig={server.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1"]
    command += [f"--secure-port={free_port()}", f"--cert-dir={server.folder / 'kube-scheduler'}"]
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


def _acceptable(pod: Object) -> Object:
    """The pod in a form that the API server takes: a class for its priority, limits for what cannot be overcommitted, rules about
    nodes and spread that are valid, no fields that only the server writes."""
    made = deepcopy(pod)
    made["metadata"] = {key: made["metadata"][key] for key in ("name", "namespace", "labels")}
    made.pop("status", None)
    priority = made["spec"].pop("priority", 0)
    if priority:
        made["spec"]["priorityClassName"] = CLASSES[priority]
    for container in made["spec"]["containers"]:
        requests = (container.get("resources") or {}).get("requests") or {}
        if "example.com/gpu" in requests:
            container["resources"]["limits"] = {"example.com/gpu": requests["example.com/gpu"]}
    _make_valid(made["spec"])
    return made


def _make_valid(spec: Object) -> None:
    """Change what filters understand and the API server refuses: no term at all, a field compared with several values, a weight of 0,
    labels that a selector already names."""
    rules = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = rules.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None and not required.get("nodeSelectorTerms"):
        del rules["requiredDuringSchedulingIgnoredDuringExecution"]
        required = None
    preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    for wish in preferred:
        wish["weight"] = max(wish["weight"], 1)
    for term in [*(required or {}).get("nodeSelectorTerms", ()), *(wish["preference"] for wish in preferred)]:
        for field_ in term.get("matchFields") or ():
            field_["values"] = (field_.get("values") or ["n0"])[:1]
    for constraint in spec.get("topologySpreadConstraints") or ():
        selector = constraint.get("labelSelector")
        if "matchLabelKeys" not in constraint:
            continue
        rules = selector or {}
        named = {each["key"] for each in rules.get("matchExpressions") or ()} | {*(rules.get("matchLabels") or {})}
        constraint["matchLabelKeys"] = [key for key in constraint["matchLabelKeys"] or () if selector is not None and key not in named]


def differences(objects: list[Object], name: str, theirs: Answer) -> list[str]:
    """Where the answers differ, in sentences."""
    ours = our_answer(objects, name)
    if theirs.node:
        if ours.node == theirs.node or (ours.node and _equal(objects, name, ours.node, theirs.node)):
            return []
        return [f"kube-scheduler binds to {theirs.node}; navarch: {_said(ours)}"]
    if ours.node:
        return [f"kube-scheduler: {_said(theirs)}; navarch binds to {ours.node}"]
    if bool(theirs.promised) != bool(ours.promised):
        return [f"kube-scheduler: {_said(theirs)}; navarch: {_said(ours)}"]
    if theirs.message != ours.message:
        return [f"kube-scheduler says {theirs.message!r}; navarch says {ours.message!r}"]
    return []


def our_answer(objects: list[Object], name: str) -> Answer:
    plan = navarch.plan(objects, "kube-scheduler")
    (record,) = plan.records
    node = next((bind.node for bind in record.binds if bind.pod.endswith(f"/{name}")), "")
    promised = next((each.node for each in record.nominations if each.pod.endswith(f"/{name}")), "")
    message = next((r.message for job in record.jobs for r in job.refusals if r.pod.endswith(f"/{name}")), "")
    return Answer(node, promised, message)


def _said(answer: Answer) -> str:
    if answer.node:
        return f"binds to {answer.node}"
    return f"preempts on {answer.promised}" if answer.promised else f"waits ({answer.message})"


def _equal(objects: list[Object], name: str, one: str, other: str) -> bool:
    """Whether both nodes have the highest score of the feasible ones."""
    kinds: Mapping[str, list[Object]] = {
        kind: [each for each in objects if each["kind"] == kind] for kind in ("Node", "Pod", "Namespace", "Service")
    }
    placed = [pod for pod in kinds["Pod"] if pod["spec"].get("nodeName")]
    (pod,) = [pod for pod in kinds["Pod"] if pod["metadata"]["name"] == name]
    cluster = Cluster(kinds["Node"], placed, [*kinds["Namespace"], *kinds["Service"]])
    feasible = [node for node, status in Filtering(cluster, pod).all_nodes().items() if status.ok]
    scores = totals(cluster, pod, [cluster.nodes[node] for node in feasible])
    return {one, other} <= set(feasible) and scores[one] == scores[other] == max(scores.values())


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
            compared += not outcome.refused
            if outcome.refused:
                print(f"case {outcome.seed}: not compared, the API server refuses the pod: {outcome.refused}", flush=True)
            wrong += bool(outcome.differences)
            for each in outcome.differences:
                print(f"case {outcome.seed}: {each}", flush=True)
    print(f"{compared} of {given.cases} random clusters compared with kube-scheduler, {wrong} differ (seed {given.seed})")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    raise SystemExit(main())
