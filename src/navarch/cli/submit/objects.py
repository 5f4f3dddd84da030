"""The objects of `navarch submit`: a workload and its PodGroup, made from what the user says. No I/O.

Where Volcano's Job is served, its controller makes the PodGroup and the pods. Elsewhere a Job of Kubernetes makes the pods, and the
PodGroup is owned by the Job, so that both go together. A Job ignores pods that were preempted, so preemption does not use up its
back-off limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from navarch.apis.coscheduling import GROUP_LABELS
from navarch.apis.kai.podgroups import FRACTION, GROUP_NAME
from navarch.apis.volcano.podgroups import QUEUE_NAMES
from navarch.kube.resources import Resource
from navarch.object_types import Manifest

GPU: Final = "nvidia.com/gpu"
EXPECTED_DURATION: Final = "navarch.io/expected-duration"
VOLCANO_JOBS: Final = Resource("batch.volcano.sh", "v1alpha1", "jobs")
JOBS: Final = Resource("batch", "v1", "jobs")
POD_GROUP_APIS: Final = (
    Resource("scheduling.volcano.sh", "v1beta1", "podgroups"),
    Resource("scheduling.incubator.k8s.io", "v1alpha1", "podgroups"),
    Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups"),
    Resource("scheduling.run.ai", "v2alpha2", "podgroups"),
)
"""In the order in which one of those that a cluster serves is chosen."""


@dataclass(frozen=True)
class Submission:
    """What a user asks for."""

    name: str
    namespace: str
    image: str
    command: tuple[str, ...] = ()
    gang: int = 1
    """How many pods it has."""
    minimum: int | None = None
    """How many of them start together; None: all."""
    gpus: int = 0
    gpu_fraction: str = ""
    requests: Mapping[str, str] = field(default_factory=dict)
    """Resource -> quantity, besides GPUs."""
    queue: str = ""
    priority_class: str = ""
    scheduler_name: str = "navarch"
    labels: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    duration: str = ""
    """How long it runs, as far as the user knows."""

    @property
    def least(self) -> int:
        return self.gang if self.minimum is None else self.minimum


def volcano_job(wanted: Submission) -> Manifest:
    """Volcano's controller restarts the job as a whole if one of its pods is evicted, since a gang cannot go on without it."""
    spec: Manifest = {
        "schedulerName": wanted.scheduler_name,
        "minAvailable": wanted.least,
        "plugins": {"env": [], "svc": []},
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}] if wanted.least == wanted.gang else [],
        "tasks": [{"name": "worker", "replicas": wanted.gang, "template": _template(wanted, {}, {})}],
    }
    if wanted.queue:
        spec["queue"] = wanted.queue
    if wanted.priority_class:
        spec["priorityClassName"] = wanted.priority_class
    return {"apiVersion": VOLCANO_JOBS.api_version, "kind": "Job", "metadata": _metadata(wanted), "spec": spec}


def batch_job(wanted: Submission, group_api: Resource | None) -> Manifest:
    """A Job whose pods name the PodGroup of that API. Without such an API each of its pods starts alone."""
    labels, annotations = ({}, {}) if group_api is None else _membership(wanted.name, group_api)
    if group_api is None and wanted.queue:
        annotations = {QUEUE_NAMES[0]: wanted.queue}
    spec: Manifest = {
        "parallelism": wanted.gang,
        "completions": wanted.gang,
        "completionMode": "Indexed",
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]},
        "template": _template(wanted, labels, annotations),
    }
    return {"apiVersion": JOBS.api_version, "kind": "Job", "metadata": _metadata(wanted), "spec": spec}


def pod_group(wanted: Submission, group_api: Resource, owner: Manifest | None = None) -> Manifest:
    """`owner`: the Job as the API server has it."""
    metadata = _metadata(wanted)
    spec: Manifest = {"minMember": wanted.least}
    if group_api.group == "scheduling.x-k8s.io":
        if wanted.queue:
            metadata["annotations"] = {**metadata.get("annotations", {}), QUEUE_NAMES[0]: wanted.queue}
    else:
        if wanted.queue:
            spec["queue"] = wanted.queue
        if wanted.priority_class:
            spec["priorityClassName"] = wanted.priority_class
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ]
    return {"apiVersion": group_api.api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def one_pod(workload: Manifest) -> Manifest:
    """A pod as the controller of the job would make it."""
    spec = workload["spec"]
    template = spec["tasks"][0]["template"] if "tasks" in spec else spec["template"]
    metadata = {**template.get("metadata", {}), "generateName": "navarch-submit-", "namespace": workload["metadata"]["namespace"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def command(action: str, job: Manifest) -> Manifest:
    """A Command to Volcano's controller about one of its Jobs: AbortJob, ResumeJob ..."""
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    target = {"apiVersion": VOLCANO_JOBS.api_version, "kind": "Job", "name": name, "uid": uid, "controller": True}
    metadata = {"generateName": f"{name}-{action.lower()}-", "namespace": job["metadata"]["namespace"], "ownerReferences": [target]}
    return {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": metadata, "action": action, "target": target}


def _metadata(wanted: Submission) -> Manifest:
    found: Manifest = {"name": wanted.name, "namespace": wanted.namespace}
    if wanted.labels:
        found["labels"] = dict(wanted.labels)
    if wanted.duration:
        found["annotations"] = {EXPECTED_DURATION: wanted.duration}
    return found


def _membership(group: str, api: Resource) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations by which a pod names its group."""
    if api.group == "scheduling.x-k8s.io":
        return {GROUP_LABELS[0]: group}, {}
    if api.group == "scheduling.run.ai":
        return {}, {GROUP_NAME: group}
    return {}, {"scheduling.k8s.io/group-name": group}


def _template(wanted: Submission, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Manifest:
    container: Manifest = {"name": "main", "image": wanted.image}
    if wanted.command:
        container["command"] = list(wanted.command)
    if wanted.environment:
        container["env"] = [{"name": name, "value": value} for name, value in wanted.environment.items()]
    resources: Manifest = {}
    if wanted.requests:
        resources["requests"] = dict(wanted.requests)
    if wanted.gpus:
        resources["limits"] = {GPU: str(wanted.gpus)}
    if resources:
        container["resources"] = resources
    noted = dict(annotations)
    if wanted.gpu_fraction:
        noted[FRACTION] = wanted.gpu_fraction
    if wanted.duration:
        noted[EXPECTED_DURATION] = wanted.duration
    spec: Manifest = {"schedulerName": wanted.scheduler_name, "restartPolicy": "Never", "containers": [container]}
    if wanted.priority_class:
        spec["priorityClassName"] = wanted.priority_class
    if wanted.node_selector:
        spec["nodeSelector"] = dict(wanted.node_selector)
    metadata: Manifest = {}
    if labels or wanted.labels:
        metadata["labels"] = {**wanted.labels, **labels}
    if noted:
        metadata["annotations"] = noted
    return {**({"metadata": metadata} if metadata else {}), "spec": spec}
