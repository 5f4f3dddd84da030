"""The pods that controllers make: for Job, ReplicaSet, Deployment, StatefulSet, DaemonSet, Volcano's Job and kinds of operators.

A plan shows what happens when the manifests are applied, and then controllers create pods. Names, uids and times are derived from the
workload, so the same input gives the same pods. If pods or other children of a workload are in the input, nothing is made for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from navarch.apis.core.daemon_nodes import daemon_pods
from navarch.apis.core.objects import identity
from navarch.apis.core.template_fields import count, mappings, template_at
from navarch.apis.errors import ObjectError, shown
from navarch.apis.volcano.job import volcano_job
from navarch.object_types import ReadOnlyManifest
from navarch.offline.manifests import Document
from navarch.offline.operator_pods import (
    PodMade,
    job_set_pods,
    kubeflow_pods,
    leader_worker_pods,
    ray_cluster_of,
    ray_pods,
)

Made = dict[str, Any]
Make = Callable[[ReadOnlyManifest, Iterable[ReadOnlyManifest]], Iterator[tuple[Made, str]]]
"""Workload and nodes -> objects, each with the field of the workload that defines it."""
_TEMPLATE = "spec.template"
_TELLING = {
    "JobSet": "jobset.sigs.k8s.io/jobset-name",
    "LeaderWorkerSet": "leaderworkerset.sigs.k8s.io/name",
    "RayJob": "ray.io/originated-from-cr-name",
    "RayService": "ray.io/originated-from-cr-name",
}
"""Kind -> the label by which pods name their workload. The objects between them need not be in the input."""
_LABELS = sorted(set(_TELLING.values()))


def expand(documents: Iterable[Document]) -> tuple[list[Document], list[ObjectError]]:
    """The objects that controllers would add to these, each with the source of its workload."""
    documents = list(documents)
    workloads = [each for each in documents if kind_of(each.manifest) in EXPANDED]
    if not workloads:
        return [], []
    have_children = {owner for each in documents for owner in _controllers(each.manifest)}
    nodes = [each.manifest for each in documents if kind_of(each.manifest) == ("v1", "Node")]
    told = {fact for each in documents for fact in _owners_by_label(each.manifest)}
    made: list[Document] = []
    mistakes: list[ObjectError] = []
    for each in workloads:
        manifest = each.manifest
        kind, name = identity(manifest)
        try:
            namespace, plain = _key(manifest)
            if (namespace, kind, plain) in have_children or (namespace, _TELLING.get(kind, ""), plain) in told:
                continue
            if kind == "Deployment" and _has_orphaned_pods(namespace, plain, have_children):
                continue
            _look_at(manifest)
            children = EXPANDED[kind_of(manifest)](manifest, nodes)
            made += [Document(child, each.source, (kind, name, part)) for child, part in children]
        except ObjectError as error:
            mistakes.append(error.at(each.source))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            found = shown(error.args[0]) if error.args else ""
            mistakes.append(ObjectError(kind, name, "spec", found, f"a {kind} with a pod template and whole numbers", each.source))
    return made, mistakes


def kind_of(manifest: ReadOnlyManifest) -> tuple[str, str]:
    return str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))


def pod_from(
    owner: ReadOnlyManifest,
    template: ReadOnlyManifest,
    name: str,
    *,
    owner_kind: str = "",
    owner_name: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Made:
    """A pod of a template, controlled by `owner` (or by a child of it that the controller would make)."""
    namespace, plain = _key(owner)
    kind = owner_kind or owner["kind"]
    controller = owner_name or plain
    given = template.get("metadata") or {}
    metadata: Made = {
        "name": name,
        "namespace": namespace,
        "uid": f"{namespace}/{name}",
        "labels": {**(given.get("labels") or {}), **(labels or {})},
        "annotations": {**(given.get("annotations") or {}), **(annotations or {})},
        "ownerReferences": [
            {
                "apiVersion": owner["apiVersion"],
                "kind": kind,
                "name": controller,
                "uid": uid_of(owner) if not owner_name else f"{kind}/{namespace}/{controller}",
                "controller": True,
            }
        ],
    }
    if created := owner["metadata"].get("creationTimestamp"):
        metadata["creationTimestamp"] = created
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": dict(template.get("spec") or {}),
        "status": {"phase": "Pending"},
    }


def uid_of(owner: ReadOnlyManifest) -> str:
    namespace, plain = _key(owner)
    return str(owner["metadata"].get("uid") or f"{owner['kind']}/{namespace}/{plain}")


def _key(manifest: ReadOnlyManifest) -> tuple[str, str]:
    metadata = manifest["metadata"]
    return str(metadata.get("namespace") or "default"), str(metadata["name"])


def _look_at(workload: ReadOnlyManifest) -> None:
    if not isinstance(workload.get("spec"), Mapping):
        raise ObjectError(*identity(workload), "spec", shown(workload.get("spec")), "a mapping")


def _controllers(manifest: ReadOnlyManifest) -> Iterator[tuple[str, str, str]]:
    metadata = manifest.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(owners, list | tuple):
        for owner in owners:
            if isinstance(owner, dict) and owner.get("controller"):
                yield str(metadata.get("namespace") or "default"), str(owner.get("kind")), str(owner.get("name"))


def _owners_by_label(manifest: ReadOnlyManifest) -> Iterator[tuple[str, str, str]]:
    metadata = manifest.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(labels, dict):
        for label in _LABELS:
            if label in labels:
                yield str(metadata.get("namespace") or "default"), label, str(labels[label])


def _has_orphaned_pods(namespace: str, name: str, controllers: Iterable[tuple[str, str, str]]) -> bool:
    """Whether a ReplicaSet that is not in the input, but owns pods of it, belongs to this Deployment by its name."""
    return any(
        owner_namespace == namespace and kind == "ReplicaSet" and owner.rpartition("-")[0] == name
        for owner_namespace, kind, owner in controllers
    )


def _replica_set(owner: ReadOnlyManifest, nodes: Iterable[ReadOnlyManifest]) -> Iterator[tuple[Made, str]]:
    template = template_at(owner, _TEMPLATE, owner["spec"].get("template"))
    for i in range(count(owner, "spec.replicas", owner["spec"].get("replicas"), 1)):
        yield pod_from(owner, template, f"{owner['metadata']['name']}-{i}"), _TEMPLATE


def _deployment(owner: ReadOnlyManifest, nodes: Iterable[ReadOnlyManifest]) -> Iterator[tuple[Made, str]]:
    """The pods of the ReplicaSet that the controller makes; its name contains a hash of the template."""
    spec = owner["spec"]
    template = template_at(owner, _TEMPLATE, spec.get("template"))
    digest = hashlib.sha256(msgspec.json.encode(template, order="sorted")).hexdigest()[:10]
    replica_set = f"{owner['metadata']['name']}-{digest}"
    for i in range(count(owner, "spec.replicas", spec.get("replicas"), 1)):
        pod = pod_from(
            owner,
            template,
            f"{replica_set}-{i}",
            owner_kind="ReplicaSet",
            owner_name=replica_set,
            labels={"pod-template-hash": digest},
        )
        yield pod, _TEMPLATE


def _stateful_set(owner: ReadOnlyManifest, nodes: Iterable[ReadOnlyManifest]) -> Iterator[tuple[Made, str]]:
    """Pods by ordinal, and the claims of their volume claim templates."""
    spec, name = owner["spec"], owner["metadata"]["name"]
    template = template_at(owner, _TEMPLATE, spec.get("template"))
    start = count(owner, "spec.ordinals.start", (spec.get("ordinals") or {}).get("start"), 0)
    claims = mappings(owner, "spec.volumeClaimTemplates", spec.get("volumeClaimTemplates"))
    for i, claim in enumerate(claims):
        if not isinstance(claim.get("metadata"), Mapping) or not claim["metadata"].get("name"):
            path = f"spec.volumeClaimTemplates[{i}].metadata"
            raise ObjectError(*identity(owner), path, shown(claim.get("metadata")), "a mapping with a name")
    for ordinal in range(start, start + count(owner, "spec.replicas", spec.get("replicas"), 1)):
        pod = pod_from(
            owner,
            template,
            f"{name}-{ordinal}",
            labels={"statefulset.kubernetes.io/pod-name": f"{name}-{ordinal}", "apps.kubernetes.io/pod-index": str(ordinal)},
        )
        mounted = {claim["metadata"]["name"]: f"{claim['metadata']['name']}-{name}-{ordinal}" for claim in claims}
        if mounted:
            kept = [volume for volume in pod["spec"].get("volumes") or () if volume.get("name") not in mounted]
            pod["spec"]["volumes"] = kept + [
                {"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in mounted.items()
            ]
        for claim in claims:
            own = {"name": mounted[claim["metadata"]["name"]], "namespace": pod["metadata"]["namespace"]}
            metadata = {**claim["metadata"], **own}
            yield {**claim, "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}, "spec.volumeClaimTemplates"
        yield pod, _TEMPLATE


def _job(owner: ReadOnlyManifest, nodes: Iterable[ReadOnlyManifest]) -> Iterator[tuple[Made, str]]:
    """As many pods as may run at once and are still to be completed; none if the Job is suspended or finished."""
    spec, name, status = owner["spec"], owner["metadata"]["name"], owner.get("status") or {}
    done = any(c.get("type") in ("Complete", "Failed") and c.get("status") == "True" for c in status.get("conditions") or ())
    if spec.get("suspend") or done:
        return
    template = template_at(owner, _TEMPLATE, spec.get("template"))
    wanted = count(owner, "spec.parallelism", spec.get("parallelism"), 1)
    if spec.get("completions") is not None:
        succeeded = count(owner, "status.succeeded", status.get("succeeded"), 0)
        wanted = min(wanted, max(0, count(owner, "spec.completions", spec["completions"], 1) - succeeded))
    indexed = spec.get("completionMode") == "Indexed"
    for i in range(wanted):
        labels = {"batch.kubernetes.io/job-name": name, "job-name": name}
        annotations = {}
        if indexed:
            labels["batch.kubernetes.io/job-completion-index"] = str(i)
            annotations["batch.kubernetes.io/job-completion-index"] = str(i)
        yield pod_from(owner, template, f"{name}-{i}", labels=labels, annotations=annotations), _TEMPLATE


def _daemon_set(owner: ReadOnlyManifest, nodes: Iterable[ReadOnlyManifest]) -> Iterator[tuple[Made, str]]:
    template = template_at(owner, _TEMPLATE, owner["spec"].get("template"))
    for node, spec in daemon_pods(template, nodes):
        pod = pod_from(owner, template, f"{owner['metadata']['name']}-{node}")
        pod["spec"] = spec
        yield pod, _TEMPLATE


def _volcano_job(owner: ReadOnlyManifest, nodes: Iterable[ReadOnlyManifest]) -> Iterator[tuple[Made, str]]:
    for made in volcano_job(owner):
        if isinstance(made, tuple):
            name, template, labels, annotations, path = made
            yield pod_from(owner, template, name, labels=labels, annotations=annotations), path
        else:
            yield made, "spec"


def _by_operator(lay_out: Callable[[ReadOnlyManifest], Iterator[PodMade]]) -> Make:
    def make(owner: ReadOnlyManifest, nodes: Iterable[ReadOnlyManifest]) -> Iterator[tuple[Made, str]]:
        cluster = ray_cluster_of(owner)
        if cluster is not None:
            yield cluster, "spec"
        for name, template, labels, said, path, child in lay_out(owner):
            kind, between = child or ("", "")
            yield pod_from(owner, template, name, owner_kind=kind, owner_name=between, labels=labels, annotations=said), path

    return make


EXPANDED: dict[tuple[str, str], Make] = {
    ("apps/v1", "ReplicaSet"): _replica_set,
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("apps/v1", "DaemonSet"): _daemon_set,
    ("batch/v1", "Job"): _job,
    ("v1", "ReplicationController"): _replica_set,
    ("batch.volcano.sh/v1alpha1", "Job"): _volcano_job,
    ("kubeflow.org/v1", "PyTorchJob"): _by_operator(kubeflow_pods),
    ("kubeflow.org/v1", "TFJob"): _by_operator(kubeflow_pods),
    ("kubeflow.org/v1", "MPIJob"): _by_operator(kubeflow_pods),
    ("kubeflow.org/v2beta1", "MPIJob"): _by_operator(kubeflow_pods),
    ("kubeflow.org/v1", "XGBoostJob"): _by_operator(kubeflow_pods),
    ("kubeflow.org/v1", "JAXJob"): _by_operator(kubeflow_pods),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): _by_operator(job_set_pods),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): _by_operator(leader_worker_pods),
    ("ray.io/v1", "RayCluster"): _by_operator(ray_pods),
    ("ray.io/v1", "RayJob"): _by_operator(ray_pods),
    ("ray.io/v1", "RayService"): _by_operator(ray_pods),
}
