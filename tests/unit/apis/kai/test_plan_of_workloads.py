"""`navarch plan` on what a data scientist has: the operator's workload, with or without its pods, and no PodGroup."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from navarch.cli.main import main

FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
TEMPLATE = {"spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}


def queue(name: str, **spec: Any) -> dict[str, Any]:
    spec["resources"] = {"gpu": FREE, "cpu": FREE, "memory": FREE}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def pytorch_job(name: str, workers: int) -> dict[str, Any]:
    replicas = {"Master": {"replicas": 1, "template": TEMPLATE}, "Worker": {"replicas": workers, "template": TEMPLATE}}
    metadata = {"name": name, "labels": {"kai.scheduler/queue": "team"}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata, "spec": {"pytorchReplicaSpecs": replicas}}


def worker(job: str, index: int) -> dict[str, Any]:
    metadata = {
        "name": f"{job}-worker-{index}",
        "labels": {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": str(index)},
        "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": job, "uid": "u", "controller": True}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **TEMPLATE}


def planned(folder: Path, *objects: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Pods that are bound, and the jobs."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "dgx"},
        "status": {"allocatable": {"cpu": "64", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}},
    }
    file = folder / "input.yaml"
    file.write_text(yaml.safe_dump_all([node, queue("org"), queue("team", parentQueue="org"), *objects]))
    result = CliRunner().invoke(main, ["plan", "-f", str(file), "--policy", "kai", "-o", "json"])
    assert result.exit_code == 0, result.output
    (cycle,) = json.loads(result.stdout)["cycles"]
    return [bind["pod"] for bind in cycle["binds"]], {job["job"]: job for job in cycle["jobs"]}


def test_a_gang_that_does_not_fit_leaves_the_gpus_to_one_that_does(tmp_path: Path) -> None:
    bound, jobs = planned(tmp_path, pytorch_job("large", 8), pytorch_job("small", 3))
    assert bound == ["default/small-master-0", *(f"default/small-worker-{i}" for i in range(3))]
    assert (jobs["default/large"]["minMember"], jobs["default/large"]["queue"]) == (9, "team")
    assert "requires 8 pods for gang scheduling" in jobs["default/large"]["reasons"][0]["message"]


def test_pods_of_an_owner_in_the_input_wait_for_the_rest_of_their_gang(tmp_path: Path) -> None:
    pods = [worker("llm", 0), worker("llm", 1)]
    bound, jobs = planned(tmp_path, pytorch_job("llm", 2), *pods)
    assert bound == [] and jobs["default/llm"]["pods"] == {"Pending": 2}, "there is no master yet"


def test_pods_of_an_owner_of_unknown_kind_start_alone(tmp_path: Path) -> None:
    pods = [worker("llm", 0), worker("llm", 1)]
    for pod in pods:
        pod["metadata"]["labels"]["kai.scheduler/queue"] = "team"
    bound, jobs = planned(tmp_path, *pods)
    assert bound == ["default/llm-worker-0", "default/llm-worker-1"]
    assert jobs["default/llm"]["minMember"] == 1


def test_a_pod_that_the_pod_grouper_is_to_skip_waits_until_it_names_a_group(tmp_path: Path) -> None:
    left, named = worker("train", 0), worker("train", 1)
    for pod in (left, named):
        pod["metadata"]["annotations"] = {"kai.scheduler/skip-podgrouper": "true"}
    named["metadata"]["annotations"]["pod-group-name"] = "made-elsewhere"
    spec = {"minMember": 1, "queue": "team"}
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "made-elsewhere"}, "spec": spec}
    bound, jobs = planned(tmp_path, left, named, group)
    assert bound == ["default/train-worker-1"]
    (reason,) = jobs["default/train-worker-0"]["reasons"]
    assert reason["message"] == "kai.scheduler/skip-podgrouper keeps a group from being made for it, and it names no PodGroup"
