"""kube-scheduler and ours on random clusters of devices: `make parity-devices SEED=7 CASES=50`.

Each case makes nodes, slices, classes and claims on a real API server and starts kube-scheduler. Then pods come one after the other.
Each is compared before the next comes: whether it gets a node, on that node which devices its claims get, and the message of a pod
that waits. Which of several nodes it is depends on scores and on chance, so ours decides for the node that kube-scheduler chose.

Devices that consume counters take part with `--partitions`. kube-scheduler before 1.36.4 does not give counters back when it passes
over a device, does not count those of devices that claims share, and ends on a request for all devices if one consumes counters.

No request for several devices is under a `distinctAttribute`: kube-scheduler compares a device only with the last of each request
(docs/parity.md). DeviceTaintRules take no part: kube-scheduler before 1.36.4 ends when it meets one.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import time
from typing import Any

from tests.envtest.server import KubeApiServer
from tests.parity.live_kube_scheduler import AT_ONCE, Outcome, kube_scheduler
from tests.worlds.random_device_clusters import IN_MEMORY, DeviceMaker

import navarch
from navarch.model.quantity import parse_nano

Object = dict[str, Any]
RESOURCE = "/apis/resource.k8s.io/v1"
PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/default/pods",
    "Namespace": "/api/v1/namespaces",
    "DeviceClass": f"{RESOURCE}/deviceclasses",
    "ResourceSlice": f"{RESOURCE}/resourceslices",
    "ResourceClaim": f"{RESOURCE}/namespaces/default/resourceclaims",
}
VERSIONS = {"Node": "v1", "Pod": "v1", "Namespace": "v1"}
SECONDS = 120.0
LOOK = 0.05
FATAL = ('running "DynamicResources" filter plugin', 'running Score plugins: plugin "DynamicResources"')
"""It refuses all nodes for what is wrong on one (docs/parity.md). Before 1.36.4 it cannot score a pod if some of its claims have
devices already and others do not."""


class Crashed(Exception):
    """kube-scheduler ended: there is nothing to compare."""


class DeviceCases:
    """Cases on one API server, one after the other."""

    def __init__(self, server: KubeApiServer, *, partitions: bool = False) -> None:
        self.server = server
        self.partitions = partitions
        self.compared = 0
        default = server.request("GET", "/api/v1/namespaces/default")
        default["metadata"]["labels"]["resource.kubernetes.io/admin-access"] = "true"
        server.request("PUT", "/api/v1/namespaces/default", default)

    def compare(self, seed: int) -> Outcome:
        outcome = Outcome(seed)
        objects = DeviceMaker(seed, partitions=self.partitions, repeats=False, wide=True).case()
        try:
            for each in objects:
                if each["kind"] != "Pod":
                    self.server.request("POST", PATHS[each["kind"]], _fresh(each))
            with kube_scheduler(self.server) as process:
                for each in objects:
                    if each["kind"] == "Pod":
                        outcome.differences += [f"{each['metadata']['name']}: {text}" for text in self._pod(each, process)]
        except Crashed as error:
            outcome.refused = str(error)
        finally:
            self._clean_up()
        return outcome

    def _pod(self, pod: Object, process: subprocess.Popen[bytes]) -> list[str]:
        name = pod["metadata"]["name"]
        made = _fresh(pod)
        made["spec"].pop("priority", None)
        before = self._objects()
        before.append({**self.server.request("POST", PATHS["Pod"], made), "apiVersion": "v1", "kind": "Pod"})
        path = f"{PATHS['Pod']}/{name}"
        node, message = self._ask(path, process)
        self.compared += 1
        if not node:
            ours, said = _ours(before, name)
            _delete(self.server, path)
            if message.startswith(FATAL):
                return []
            if ours:
                return [f"kube-scheduler: waits ({message}); navarch binds to {ours}"]
            return [] if said == message else [f"kube-scheduler says {message!r}; navarch says {said!r}"]
        there = [each for each in before if each["kind"] != "Node" or each["metadata"]["name"] == node]
        ours, devices = _ours(there, name)
        if not ours:
            return [f"kube-scheduler binds to {node}; navarch: waits ({devices})"]
        had = {each["metadata"]["name"] for each in before if (each.get("status") or {}).get("allocation")}
        theirs = {name: found for name, found in self._devices(pod).items() if name not in had}
        return [] if devices == theirs else [f"kube-scheduler allocates {theirs} on {node}; navarch {devices}"]

    def _objects(self) -> list[Object]:
        found = []
        for kind, path in PATHS.items():
            version = VERSIONS.get(kind, "resource.k8s.io/v1")
            found += [{**each, "apiVersion": version, "kind": kind} for each in self.server.request("GET", path)["items"]]
        return found

    def _ask(self, path: str, process: subprocess.Popen[bytes]) -> tuple[str, str]:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if process.poll() is not None:
                raise Crashed(f"kube-scheduler ended with {process.returncode}")
            found = self.server.request("GET", path)
            if node := found["spec"].get("nodeName"):
                return node, ""
            for condition in found["status"].get("conditions") or ():
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return "", condition["message"]
            time.sleep(LOOK)
        raise AssertionError("kube-scheduler decided nothing")

    def _devices(self, pod: Object) -> dict[str, list[Object]]:
        found = {}
        names = {each["resourceClaimName"]: each["resourceClaimName"] for each in pod["spec"].get("resourceClaims") or ()}
        status = self.server.request("GET", f"{PATHS['Pod']}/{pod['metadata']['name']}")["status"]
        if made := status.get("extendedResourceClaimStatus"):
            names[IN_MEMORY] = made["resourceClaimName"]
        for shown, name in names.items():
            claim = self.server.request("GET", f"{PATHS['ResourceClaim']}/{name}")
            results = claim["status"]["allocation"]["devices"].get("results") or ()
            found[shown] = [_result(result) for result in results]
        return found

    def _clean_up(self) -> None:
        for each in self.server.request("GET", PATHS["Pod"])["items"]:
            _delete(self.server, f"{PATHS['Pod']}/{each['metadata']['name']}")
        clear_claims(self.server)
        for kind in ("ResourceSlice", "DeviceClass", "Node"):
            self.server.request("DELETE", PATHS[kind])


def _delete(server: KubeApiServer, path: str) -> None:
    with contextlib.suppress(RuntimeError):
        server.request("DELETE", path, AT_ONCE)


def clear_claims(server: KubeApiServer) -> None:
    """No controller runs that would free the devices of claims nobody uses."""
    for claim in server.request("GET", PATHS["ResourceClaim"])["items"]:
        path = f"{PATHS['ResourceClaim']}/{claim['metadata']['name']}"
        if (claim.get("status") or {}).get("allocation"):
            claim["status"] = {}
            claim = server.request("PUT", f"{path}/status", claim)
        if claim["metadata"].pop("finalizers", None):
            server.request("PUT", path, claim)
        _delete(server, path)


def _fresh(thing: Object) -> Object:
    """Without what only the server writes."""
    metadata = {key: value for key, value in thing["metadata"].items() if key not in ("uid", "creationTimestamp", "resourceVersion")}
    return {**{key: value for key, value in thing.items() if key != "status" or thing["kind"] == "Node"}, "metadata": metadata}


def _result(result: Object) -> Object:
    found = {key: result[key] for key in ("request", "driver", "pool", "device")}
    if result.get("adminAccess"):
        found["adminAccess"] = True
    if result.get("shareID"):
        found["consumed"] = {name: parse_nano(amount) for name, amount in (result.get("consumedCapacity") or {}).items()}
    return found


def _ours(objects: list[Object], name: str) -> tuple[str, Any]:
    """Our node for the pod, and the devices of its claims; or why it waits."""
    (record,) = navarch.plan(objects, "kube-scheduler").records
    node = next((bind.node for bind in record.binds if bind.pod.endswith(f"/{name}")), "")
    if not node:
        return "", next((r.message for job in record.jobs for r in job.refusals if r.pod.endswith(f"/{name}")), "")
    devices = {}
    for each in record.claims:
        results = []
        for device in each.devices:
            found: Object = {"request": device.request, "driver": device.driver, "pool": device.pool, "device": device.device}
            if device.admin_access:
                found["adminAccess"] = True
            if device.shared:
                found["consumed"] = {key: parse_nano(amount) for key, amount in device.consumed}
            results.append(found)
        devices[each.claim.partition("/")[2]] = results
    return node, devices


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--partitions", action="store_true", help="devices that consume counters take part")
    given = parser.parse_args()
    wrong = crashed = 0
    with KubeApiServer() as server:
        cases = DeviceCases(server, partitions=given.partitions)
        for number in range(given.cases):
            outcome = cases.compare(given.seed * 1_000_003 + number)
            wrong += bool(outcome.differences)
            crashed += bool(outcome.refused)
            for each in outcome.differences:
                print(f"case {outcome.seed}: {each}", flush=True)
    text = f"{given.cases} random clusters with {cases.compared} pods compared with kube-scheduler, {wrong} differ"
    print(f"{text}; it ended in {crashed} (seed {given.seed})")
    return 1 if wrong or not cases.compared else 0


if __name__ == "__main__":
    raise SystemExit(main())
