"""A real kube-scheduler (client-go: informers, protobuf bodies, leases, events) places pods on the embedded server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.envtest.fixtures import binaries_or_skip
from tests.worlds.embedded.objects import node, pod
from tests.worlds.embedded.server import ServerThread, http_of

pytestmark = pytest.mark.live


def scheduler_binary() -> Path:
    found = binaries_or_skip().scheduler
    if found is None:
        pytest.skip("no kube-scheduler here: `make envtest` builds one")
    return found


@pytest.mark.parametrize("content_type", ["application/vnd.kubernetes.protobuf", "application/json"])
def test_kube_scheduler_runs_on_it(tmp_path: Path, content_type: str) -> None:
    binary = scheduler_binary()
    thread = ServerThread(taint_new_nodes=False)
    with thread as server:
        api = http_of(server, tmp_path)
        for index in range(3):
            api.post("/api/v1/nodes", node(f"n{index}"))
        pods = "/api/v1/namespaces/default/pods"
        for index in range(12):
            api.post(pods, pod(f"p{index}", containers=[_asking("500m")]))
        api.post(pods, pod("too-large", containers=[_asking("64")]))
        settings = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(api.kubeconfig), "contentType": content_type},
            "leaderElection": {"leaderElect": True},
        }
        (tmp_path / "scheduler.yaml").write_text(json.dumps(settings))
        log = (tmp_path / "scheduler.log").open("wb")
        command = [str(binary), f"--config={tmp_path / 'scheduler.yaml'}", "--secure-port=0"]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            placed: set[str] = set()
            refused = False
            with api.watch(pods) as events:
                for event in events:
                    obj = event["object"]
                    if obj["spec"].get("nodeName"):
                        placed.add(obj["metadata"]["name"])
                    conditions = obj["status"].get("conditions") or ()
                    refused |= any(each.get("reason") == "Unschedulable" for each in conditions)
                    if len(placed) == 12 and refused:
                        break
            lease = api.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler").body
            assert lease["spec"]["holderIdentity"]
            with api.watch("/apis/events.k8s.io/v1/namespaces/default/events") as events:
                assert any(event["object"]["reason"] == "Scheduled" for event in events)
        finally:
            process.terminate()
            process.wait(120)
            log.close()
            api.close()


def _asking(cpu: str) -> dict[str, object]:
    return {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
