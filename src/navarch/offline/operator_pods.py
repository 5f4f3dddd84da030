"""The pods that operators make from their workloads: Kubeflow's jobs, JobSet, Ray, LeaderWorkerSet.

The pods have the labels and annotations that the operators write, because these name the group and the sub-group of a pod. Pods that
an operator creates later (of a JobSet that starts in order, of a launcher that waits for its workers) are made at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from navarch.apis.core.template_fields import count, mappings, template_at
from navarch.object_types import ReadOnlyManifest

PodMade = tuple[str, ReadOnlyManifest, dict[str, str], dict[str, str], str, tuple[str, str] | None]
"""Name, template, labels, annotations, the path of the template, and the owner of the pod if it is a child of the workload."""
_OVER = frozenset({"Succeeded", "Failed", "Complete", "Completed"})
_REPLICAS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}
_LWS = "leaderworkerset.sigs.k8s.io/"


def kubeflow_pods(job: ReadOnlyManifest) -> Iterator[PodMade]:
    spec, kind, name = job["spec"], job["kind"], job["metadata"]["name"]
    if (spec.get("runPolicy") or {}).get("suspend") or _is_over(job):
        return
    field = _REPLICAS[kind]
    for role, replicas in sorted((spec.get(field) or {}).items()):
        path = f"spec.{field}.{role}"
        template = template_at(job, f"{path}.template", replicas.get("template"))
        for i in range(count(job, f"{path}.replicas", replicas.get("replicas"), 1)):
            labels = {
                "training.kubeflow.org/job-name": name,
                "training.kubeflow.org/operator-name": f"{kind.lower()}-controller",
                "training.kubeflow.org/replica-type": role.lower(),
                "training.kubeflow.org/replica-index": str(i),
            }
            if kind == "MPIJob":
                labels["training.kubeflow.org/job-role"] = role.lower()
            yield f"{name}-{role.lower()}-{i}", template, labels, {}, f"{path}.template", None


def job_set_pods(job_set: ReadOnlyManifest) -> Iterator[PodMade]:
    spec, name = job_set["spec"], job_set["metadata"]["name"]
    if spec.get("suspend") or _is_over(job_set):
        return
    for at, job in enumerate(mappings(job_set, "spec.replicatedJobs", spec.get("replicatedJobs"))):
        path = f"spec.replicatedJobs[{at}]"
        inner = (job.get("template") or {}).get("spec") or {}
        template = template_at(job_set, f"{path}.template.spec.template", inner.get("template"))
        replicas = count(job_set, f"{path}.replicas", job.get("replicas"), 1)
        pods = count(job_set, f"{path}.template.spec.parallelism", inner.get("parallelism"), 1)
        if inner.get("completions") is not None:
            pods = min(pods, count(job_set, f"{path}.template.spec.completions", inner["completions"], 1))
        for replica in range(replicas):
            made = f"{name}-{job['name']}-{replica}"
            for i in range(pods):
                labels = {
                    "jobset.sigs.k8s.io/jobset-name": name,
                    "jobset.sigs.k8s.io/replicatedjob-name": job["name"],
                    "jobset.sigs.k8s.io/replicatedjob-replicas": str(replicas),
                    "jobset.sigs.k8s.io/job-index": str(replica),
                    "batch.kubernetes.io/job-name": made,
                    "batch.kubernetes.io/job-completion-index": str(i),
                }
                yield f"{made}-{i}", template, labels, {}, f"{path}.template.spec.template", ("Job", made)


def ray_pods(cluster: ReadOnlyManifest) -> Iterator[PodMade]:
    """The pods of a RayCluster, or of the cluster that a RayJob or RayService describes."""
    name = cluster["metadata"]["name"]
    field = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}.get(cluster["kind"], "")
    spec, path = (cluster["spec"].get(field) or {}, f"spec.{field}") if field else (cluster["spec"], "spec")
    child = ("RayCluster", name) if field else None
    if cluster["spec"].get("suspend") or _is_over(cluster):
        return
    head = (spec.get("headGroupSpec") or {}).get("template")
    facts = {"ray.io/cluster": name, "ray.io/is-ray-node": "yes"}
    yield (
        f"{name}-head",
        template_at(cluster, f"{path}.headGroupSpec.template", head),
        {**facts, "ray.io/group": "headgroup", "ray.io/node-type": "head"},
        {},
        f"{path}.headGroupSpec.template",
        child,
    )
    for at, group in enumerate(mappings(cluster, f"{path}.workerGroupSpecs", spec.get("workerGroupSpecs"))):
        place = f"{path}.workerGroupSpecs[{at}]"
        if group.get("suspend"):
            continue
        replicas = count(cluster, f"{place}.replicas", group.get("replicas"), 0)
        replicas = max(replicas, count(cluster, f"{place}.minReplicas", group.get("minReplicas"), 0))
        template = template_at(cluster, f"{place}.template", group.get("template"))
        named = group.get("groupName") or f"worker-group-{at}"
        labels = {**facts, "ray.io/group": named, "ray.io/node-type": "worker"}
        for i in range(replicas * count(cluster, f"{place}.numOfHosts", group.get("numOfHosts"), 1)):
            yield f"{name}-{named}-worker-{i}", template, labels, {}, f"{place}.template", child


def leader_worker_pods(workload: ReadOnlyManifest) -> Iterator[PodMade]:
    spec, name = workload["spec"], workload["metadata"]["name"]
    template, path = spec.get("leaderWorkerTemplate") or {}, "spec.leaderWorkerTemplate"
    size = count(workload, f"{path}.size", template.get("size"), 1)
    workers = template_at(workload, f"{path}.workerTemplate", template.get("workerTemplate"))
    leads = template.get("leaderTemplate")
    leader = template_at(workload, f"{path}.leaderTemplate", leads) if leads is not None else workers
    policy = template.get("subGroupPolicy") or {}
    annotations = {f"{_LWS}size": str(size)}
    if policy.get("subGroupSize") is not None:
        annotations[f"{_LWS}subgroup-size"] = str(count(workload, f"{path}.subGroupPolicy.subGroupSize", policy["subGroupSize"], 1))
    if policy.get("subGroupPolicyType") == "LeaderExcluded":
        annotations[f"{_LWS}subgroup-policy-type"] = "LeaderExcluded"
    for group in range(count(workload, "spec.replicas", spec.get("replicas"), 1)):
        for index in range(size):
            labels = {f"{_LWS}name": name, f"{_LWS}group-index": str(group), f"{_LWS}worker-index": str(index)}
            pod, made_of, owner = (
                (f"{name}-{group}-{index}", "worker", f"{name}-{group}") if index else (f"{name}-{group}", "leader", name)
            )
            at = f"{path}.{made_of}Template" if index or leads is not None else f"{path}.workerTemplate"
            yield pod, workers if index else leader, labels, annotations, at, ("StatefulSet", owner)


def ray_cluster_of(workload: ReadOnlyManifest) -> dict[str, Any] | None:
    """The RayCluster object that a RayJob or RayService creates, which owns the pods."""
    field = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}.get(workload["kind"])
    if field is None or not isinstance(workload["spec"].get(field), Mapping):
        return None
    given = workload["metadata"]
    kept = {key: given[key] for key in ("namespace", "labels", "annotations", "creationTimestamp") if given.get(key)}
    above = {"apiVersion": workload["apiVersion"], "kind": workload["kind"], "name": given["name"], "controller": True}
    metadata = {**kept, "name": given["name"], "ownerReferences": [above]}
    return {"apiVersion": workload["apiVersion"], "kind": "RayCluster", "metadata": metadata, "spec": workload["spec"][field]}


def _is_over(workload: ReadOnlyManifest) -> bool:
    status = workload.get("status") or {}
    ended = any(c.get("type") in _OVER and c.get("status") == "True" for c in status.get("conditions") or ())
    return ended or status.get("jobDeploymentStatus") in ("Complete", "Failed")
