"""The gang that an owner's spec asks for, for pods that have no group: each kind as its users write it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from navarch.apis.dialect import Settings
from navarch.model.spec import JobSpec, PriorityClassSpec, SubGroupSpec, TopologyDemand
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document

POD = """
      spec:
        schedulerName: kai-scheduler
        containers: [{name: main, image: trainer, resources: {limits: {nvidia.com/gpu: 1}}}]
"""


def inventory(text: str) -> Inventory:
    found = Inventory((Document(each) for each in yaml.safe_load_all(text)), Settings())
    assert [str(mistake) for mistake in found.mistakes] == []
    return found


def only(text: str) -> JobSpec:
    (job,) = inventory(text).jobs.values()
    return job


def shape(job: JobSpec) -> list[tuple[str, int, str]]:
    return [(part.name, part.min_member, part.parent) for part in job.sub_groups]


def members(found: Inventory) -> dict[str, str]:
    return {task.name: task.sub_group for task in found.tasks.values()}


PYTORCH = f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: llm, namespace: team, labels: {{kai.scheduler/queue: research}}}}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: {POD.replace(chr(10), chr(10) + "    ")}
    Worker:
      replicas: 3
      template: {POD.replace(chr(10), chr(10) + "    ")}
"""


def test_a_pytorch_job_starts_whole() -> None:
    found = inventory(PYTORCH)
    (job,) = found.jobs.values()
    assert (job.key, job.queue, job.min_member, job.priority_class) == ("team/pytorchjob/llm", "research", 4, "train")
    assert shape(job) == [("master", 1, ""), ("worker", 3, "")]
    assert members(found) == {
        "llm-master-0": "master",
        "llm-worker-0": "worker",
        "llm-worker-1": "worker",
        "llm-worker-2": "worker",
    }


@pytest.mark.parametrize(
    ("policy", "least", "workers"),
    [
        ({"elasticPolicy": {"minReplicas": 2}}, 2, 1),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": 3}}, "elasticPolicy": {"minReplicas": 2}}, 3, 2),
        ({"runPolicy": {"schedulingPolicy": {"minAvailable": 1}}}, 1, 0),
    ],
)
def test_a_pytorch_job_that_says_how_many_are_enough(policy: dict[str, Any], least: int, workers: int) -> None:
    manifest = yaml.safe_load(PYTORCH)
    manifest["spec"] |= policy
    job = only(yaml.safe_dump(manifest))
    assert (job.min_member, shape(job)) == (least, [("master", 1, ""), ("worker", workers, "")])


def test_segments_of_a_pytorch_job_want_racks_of_their_own() -> None:
    manifest = yaml.safe_load(PYTORCH)
    worker = manifest["spec"]["pytorchReplicaSpecs"]["Worker"]
    worker["replicas"] = 5
    worker["template"]["metadata"] = {
        "annotations": {
            "kai.scheduler/segment-size": "2",
            "kai.scheduler/topology": "racks",
            "kai.scheduler/segment-topology-required-placement": "rack",
        }
    }
    found = inventory(yaml.safe_dump(manifest))
    (job,) = found.jobs.values()
    assert shape(job)[1:] == [("worker", 5, ""), ("worker-0", 2, "worker"), ("worker-1", 2, "worker"), ("worker-2", 1, "worker")]
    assert {part.topology for part in job.sub_groups[2:]} == {TopologyDemand("racks", "rack", "", hard=True)}
    assert job.topology is None, "what a template says of segments is not said of the job"
    assert members(found)["llm-worker-3"] == "worker-1"


@pytest.mark.parametrize(
    ("kind", "field", "roles"),
    [
        ("TFJob", "tfReplicaSpecs", {"Chief": 1, "PS": 2, "Worker": 4}),
        ("XGBoostJob", "xgbReplicaSpecs", {"Master": 1, "Worker": 6}),
        ("JAXJob", "jaxReplicaSpecs", {"Worker": 7}),
        ("MPIJob", "mpiReplicaSpecs", {"Launcher": 1, "Worker": 6}),
    ],
)
def test_kubeflow_jobs_need_all_their_replicas(kind: str, field: str, roles: dict[str, int]) -> None:
    template = yaml.safe_load(POD)
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {field: {role: {"replicas": n, "template": template} for role, n in roles.items()}},
    }
    found = inventory(yaml.safe_dump(manifest))
    (job,) = found.jobs.values()
    assert (job.key, job.min_member, job.sub_groups) == (f"team/{kind.lower()}/train", 7, ())
    assert len(found.tasks) == 7 and set(members(found).values()) == {""}


JOB_SET = f"""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: sim, namespace: team}}
spec:
  replicatedJobs:
  - name: driver
    template: {{spec: {{template: {{spec: {{schedulerName: kai-scheduler, containers: [{{name: c}}]}}}}}}}}
  - name: workers
    replicas: 2
    template:
      metadata: {{annotations: {{kai.scheduler/topology: racks, kai.scheduler/topology-preferred-placement: rack}}}}
      spec:
        parallelism: 4
        completions: 3
        template: {POD.replace(chr(10), chr(10) + "      ")}
"""


def test_a_job_set_is_one_group_with_each_replica_a_part() -> None:
    found = inventory(JOB_SET)
    (job,) = found.jobs.values()
    assert (job.key, job.min_member, job.min_sub_groups) == ("team/jobset/sim", 7, 2)
    assert shape(job) == [
        ("driver", 0, ""),
        ("driver-replica-0", 1, "driver"),
        ("workers", 0, ""),
        ("workers-replica-0", 3, "workers"),
        ("workers-replica-1", 3, "workers"),
    ]
    assert [part.min_sub_groups for part in job.sub_groups] == [1, None, 2, None, None]
    assert job.sub_groups[3].topology == TopologyDemand("racks", "", "rack", hard=False)
    assert members(found)["sim-workers-1-2"] == "workers-replica-1"


@pytest.mark.parametrize(
    ("change", "least", "parts"),
    [
        ({"spec": {"startupPolicy": {"startupPolicyOrder": "InOrder"}}}, 1, 1),
        ({"metadata": {"annotations": {"kai.scheduler/batch-min-member": "1"}}}, 1, 1),
        ({"metadata": {"annotations": {"kai.scheduler/batch-min-member": "9"}}}, 7, 2),
    ],
)
def test_a_job_set_that_starts_in_order_or_says_how_many_jobs_it_needs(change: Any, least: int, parts: int) -> None:
    manifest = yaml.safe_load(JOB_SET)
    for field, more in change.items():
        manifest[field] |= more
    job = only(yaml.safe_dump(manifest))
    assert (job.min_member, job.min_sub_groups) == (least, parts)


RAY = f"""
apiVersion: ray.io/v1
kind: RayCluster
metadata: {{name: tune, namespace: team, labels: {{ray.io/priority-class-name: urgent}}}}
spec:
  headGroupSpec: {{template: {{spec: {{schedulerName: kai-scheduler, containers: [{{name: head}}]}}}}}}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 4
    minReplicas: 2
    numOfHosts: 2
    template:
      metadata: {{annotations: {{kai.scheduler/topology: racks, kai.scheduler/topology-required-placement: rack}}}} {POD}
  - groupName: cpu
    replicas: 3
    template: {POD}
  - groupName: later
    replicas: 0
    template: {POD}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {{name: urgent}}
value: 300
"""


def test_a_ray_cluster_needs_its_head_and_the_minimum_of_each_group() -> None:
    found = inventory(RAY)
    (job,) = found.jobs.values()
    assert (job.key, job.min_member, job.priority) == ("team/raycluster/tune", 8, 300)
    assert shape(job) == [("headgroup", 1, ""), ("gpu", 4, ""), ("cpu", 3, "")]
    assert job.sub_groups[1].topology == TopologyDemand("racks", "rack", "", hard=True)
    assert job.topology is None, "a group's place is not the cluster's"
    assert len(found.tasks) == 1 + 8 + 3
    assert members(found)["tune-head"] == "headgroup" and members(found)["tune-gpu-worker-7"] == "gpu"


def test_an_autoscaler_may_empty_a_group_without_a_minimum() -> None:
    manifests = list(yaml.safe_load_all(RAY))
    manifests[0]["spec"]["enableInTreeAutoscaling"] = True
    assert shape(only(yaml.safe_dump_all(manifests))) == [("headgroup", 1, ""), ("gpu", 4, ""), ("cpu", 0, "")]


@pytest.mark.parametrize(("kind", "field"), [("RayJob", "rayClusterSpec"), ("RayService", "rayClusterConfig")])
def test_a_ray_job_and_a_ray_service_speak_for_their_cluster(kind: str, field: str) -> None:
    cluster = yaml.safe_load_all(RAY)
    manifest = next(iter(cluster))
    manifest["kind"], manifest["spec"] = kind, {field: manifest["spec"]}
    manifest["metadata"]["labels"] = {"kai.scheduler/queue": "serving"}
    job = only(yaml.safe_dump(manifest))
    assert (job.key, job.min_member, job.queue) == ("team/raycluster/tune", 8, "serving")


LWS = f"""
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: vllm, namespace: team, labels: {{kai.scheduler/preemptibility: non-preemptible}}}}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 3
    workerTemplate: {POD}
"""


def test_each_group_of_a_leader_worker_set_starts_whole() -> None:
    found = inventory(LWS)
    assert sorted(found.jobs) == ["team/leaderworkerset/vllm-0", "team/leaderworkerset/vllm-1"]
    for job in found.jobs.values():
        assert (job.min_member, job.preemptable) == (3, False)
        assert shape(job) == [("leader", 1, ""), ("workers", 2, "")]
    assert members(found) == {
        "vllm-0": "leader",
        "vllm-0-1": "workers",
        "vllm-0-2": "workers",
        "vllm-1": "leader",
        "vllm-1-1": "workers",
        "vllm-1-2": "workers",
    }


@pytest.mark.parametrize(
    ("size", "policy", "expected", "seats"),
    [
        (
            5,
            {"subGroupSize": 2},
            [("segment-0", 0, ""), ("segment-1", 2, ""), ("leader", 1, "segment-0"), ("workers", 2, "segment-0")],
            ["leader", "workers", "workers", "segment-1", "segment-1"],
        ),
        (
            4,
            {"subGroupSize": 2},
            [("segment-0", 0, ""), ("segment-1", 2, ""), ("leader", 1, "segment-0"), ("workers", 1, "segment-0")],
            ["leader", "workers", "segment-1", "segment-1"],
        ),
        (
            5,
            {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"},
            [("leader", 1, ""), ("workers", 2, ""), ("segment-1", 2, "")],
            ["leader", "workers", "workers", "segment-1", "segment-1"],
        ),
    ],
)
def test_segments_of_a_leader_worker_set(size: int, policy: Any, expected: Any, seats: list[str]) -> None:
    manifest = yaml.safe_load(LWS)
    manifest["spec"]["replicas"] = 1
    manifest["spec"]["leaderWorkerTemplate"] |= {"size": size, "subGroupPolicy": policy}
    found = inventory(yaml.safe_dump(manifest))
    (job,) = found.jobs.values()
    assert (shape(job), job.min_member) == (expected, size)
    assert [members(found)["vllm-0" + (f"-{i}" if i else "")] for i in range(size)] == seats


def test_a_grove_gang_is_the_group_of_its_cliques() -> None:
    text = """
apiVersion: scheduler.grove.io/v1alpha1
kind: PodGang
metadata: {name: serve-0, namespace: team, annotations: {grove.io/topology-name: racks}}
spec:
  topologyConstraint: {packConstraint: {required: block}}
  topologyConstraintGroupConfigs:
  - {name: prefills, podGroupNames: [serve-0-prefill], topologyConstraint: {packConstraint: {preferred: rack}}}
  podgroups:
  - {name: serve-0-prefill, minReplicas: 2, podReferences: [{namespace: team, name: serve-0-prefill-a}]}
  - {name: serve-0-decode, minReplicas: 1, podReferences: []}
---
apiVersion: v1
kind: Pod
metadata:
  name: serve-0-prefill-a
  namespace: team
  labels: {grove.io/podgang: serve-0}
  ownerReferences: [{apiVersion: grove.io/v1alpha1, kind: PodClique, name: serve-0-prefill, uid: u, controller: true}]
spec: {schedulerName: kai-scheduler, containers: [{name: c}]}
"""
    found = inventory(text)
    (job,) = found.jobs.values()
    assert (job.key, job.min_member) == ("team/podgang/serve-0", 3)
    assert job.topology == TopologyDemand("racks", "block", "", hard=True)
    assert job.sub_groups == (
        SubGroupSpec("prefills", 0, topology=TopologyDemand("racks", "", "rack", hard=False)),
        SubGroupSpec("serve-0-prefill", 2, "prefills", min_groups=1),
        SubGroupSpec("serve-0-decode", 1, min_groups=1),
    )
    assert members(found) == {"serve-0-prefill-a": "serve-0-prefill"}


def test_an_azure_job_needs_its_nodes() -> None:
    text = """
apiVersion: amlarc.azureml.com/v1alpha1
kind: AmlJob
metadata: {name: aml, namespace: team}
spec: {job: {options: {envs: {AZUREML_NODE_COUNT: 4}}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: aml-0
  namespace: team
  ownerReferences: [{apiVersion: amlarc.azureml.com/v1alpha1, kind: AmlJob, name: aml, uid: u, controller: true}]
spec: {schedulerName: kai-scheduler, containers: [{name: c}]}
"""
    assert only(text).min_member == 4


def owned(kind: str, name: str, labels: dict[str, str] | None = None, **above: Any) -> str:
    """A pod of an owner that is in the input as well, with whatever owns that in turn."""
    owner = {"apiVersion": "x/v1", "kind": kind, "name": name, "uid": "u", "controller": True}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team", "labels": labels or {}, "ownerReferences": [owner]},
        "spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "c"}]},
    }
    return yaml.safe_dump_all([pod, *above["objects"]])


def thing(kind: str, name: str, version: str = "x/v1", owner: tuple[str, str] | None = None, **meta: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "team", **meta}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "uid": "u", "controller": True}]
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def test_a_job_says_its_own_minimum() -> None:
    job = thing("Job", "j", "batch/v1", annotations={"kai.scheduler/batch-min-member": "3"}, labels={"kai.scheduler/queue": "q"})
    job["spec"] = {"parallelism": 3, "template": yaml.safe_load(POD)}
    made = only(yaml.safe_dump(job))
    assert (made.key, made.min_member, made.queue) == ("team/job/j", 3, "q")


def test_a_cron_job_does_not_speak_for_its_jobs() -> None:
    cron = thing("CronJob", "nightly", "batch/v1", labels={"kai.scheduler/queue": "cron"})
    job = thing("Job", "nightly-1", "batch/v1", ("CronJob", "nightly"), labels={"project": "p"})
    assert only(owned("Job", "nightly-1", {"kai.scheduler/node-pool": "a100"}, objects=[job, cron])).queue == "p-a100"


def test_the_top_owner_speaks_before_the_pod() -> None:
    deployment = thing(
        "Deployment",
        "web",
        "apps/v1",
        labels={"kai.scheduler/queue": "serving", "kai.scheduler/preemptibility": "preemptible"},
        annotations={"kai.scheduler/topology": "t", "kai.scheduler/topology-preferred-placement": "zone"},
    )
    labels = {"pod-template-hash": "5c", "kai.scheduler/queue": "pod"}
    job = only(owned("ReplicaSet", "web-5c", labels, objects=[deployment]))
    assert (job.key, job.queue, job.preemptable, job.priority_class) == ("team/pod/p", "serving", True, "inference")
    assert job.topology == TopologyDemand("t", "", "zone", hard=False)


def test_a_wrapper_lends_what_the_workload_does_not_say() -> None:
    """TrainJob, the second Kubeflow, wraps a JobSet."""
    train = thing("TrainJob", "t", labels={"kai.scheduler/queue": "lent", "project": "lent"})
    job_set = thing("JobSet", "t", "jobset.x-k8s.io/v1alpha2", ("TrainJob", "t"), labels={"kai.scheduler/queue": "own"})
    job_set["spec"] = {"replicatedJobs": [{"name": "node", "template": {"spec": {"parallelism": 2}}}]}
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "t",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/job-index": "0",
    }
    job = only(owned("Job", "t-node-0", labels, objects=[train, job_set]))
    assert (job.key, job.queue, job.min_member) == ("team/jobset/t", "own", 2)
    del job_set["metadata"]["labels"]
    assert only(owned("Job", "t-node-0", labels, objects=[train, job_set])).queue == "lent"
    workflow = thing("Workflow", "w", labels={"kai.scheduler/queue": "flows"})
    alone = only(owned("Workflow", "w", objects=[workflow]))
    assert (alone.key, alone.queue) == ("team/pod/p", "flows")


@pytest.mark.parametrize(
    ("owner", "labels", "key", "priority_class"),
    [
        (("TaskRun", "build-1"), {"tekton.dev/pipelineRun": "build"}, "team/pipelinerun/build", "train"),
        (("ReplicaSet", "s-1"), {"seldon-deployment-id": "s"}, "team/seldondeployment/s", "train"),
        (("RunaiJob", "r"), {}, "team/runaijob/p", "train"),
        (("SPOTRequest", "s"), {}, "team/spotrequest/s", "inference"),
        (("DaemonSet", "d"), {}, "team/daemonset/d", "train"),
        (("VirtualMachineInstance", "vm"), {}, "team/virtualmachineinstance/vm", "train"),
    ],
)
def test_kinds_of_which_each_pod_may_start_alone(
    owner: tuple[str, str], labels: dict[str, str], key: str, priority_class: str
) -> None:
    job = only(owned(*owner, labels, objects=[]))
    assert (job.key, job.min_member, job.priority_class, job.sub_groups) == (key, 1, priority_class, ())


def test_a_class_on_the_pods_spec_counts() -> None:
    pod = yaml.safe_load(owned("StatefulSet", "s", objects=[]))
    pod["spec"]["priorityClassName"] = "gold"
    gold = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gold"}, "value": 7}
    job = only(yaml.safe_dump_all([pod, gold]))
    assert (job.priority_class, job.priority) == ("gold", 7)
    assert PriorityClassSpec("gold", 7).value == job.priority


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (PYTORCH.replace("replicas: 3", "replicas: -3"), "spec.pytorchReplicaSpecs[Worker].replicas: found -3"),
        (PYTORCH.replace("replicas: 3", "replicas: lots"), "spec.pytorchReplicaSpecs[Worker].replicas: found 'lots'"),
        (JOB_SET.replace("name: workers", "name: driver"), "spec.replicatedJobs: found 'driver', expected names that all differ"),
        (LWS.replace("size: 3", "size: many"), "spec.leaderWorkerTemplate.size: found 'many'"),
    ],
)
def test_an_owner_that_cannot_be_read_is_told_once(manifest: str, words: str) -> None:
    found = Inventory((Document(each, f"f document {i}") for i, each in enumerate(yaml.safe_load_all(manifest), 1)), Settings())
    (mistake,) = found.mistakes
    assert words in str(mistake)


def test_pods_in_the_input_are_not_made_again() -> None:
    """Of workloads that own their pods through others, which need not be in the input."""
    made = inventory(JOB_SET)
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{task.name}-x7",
                "namespace": "team",
                "labels": dict(task.labels),
                "ownerReferences": [{"kind": "Job", "name": "sim-driver-0", "uid": "u", "controller": True}],
            },
            "spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "c"}]},
        }
        for task in made.tasks.values()
    ]
    assert len(inventory(yaml.safe_dump_all([yaml.safe_load(JOB_SET), *pods])).tasks) == len(pods)
