"""Random objects of every API that ingest reads, as an API server shows them: defaulted, with uids, with statuses."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from navarch.apis.admission.admission import AdmissionContext, admit
from navarch.testing.builders import Builder, budget, namespace, node, pod, pod_group, priority_class, queue

Objects = list[dict[str, Any]]
KUBE_BATCH = ("scheduling.incubator.k8s.io/v1alpha1", "scheduling.sigs.dev/v1alpha2")
NAMESPACES = ("a", "b")
NODES = ("n1", "n2")
POOL = "pool"
SCHEDULERS = ("navarch", "volcano", "kai-scheduler")
_namespaces = st.sampled_from(NAMESPACES)
_pools = st.sampled_from((None, None, "x"))


def _in_pool(made: Builder, pool: str | None) -> Builder:
    return made if pool is None else made.label(POOL, pool)


@st.composite
def namespaces(draw: st.DrawFn) -> Builder:
    made = namespace(draw(_namespaces)).label("team", draw(st.sampled_from(("one", "two"))))
    if named := draw(st.sampled_from((None, "q", "other"))):
        made.annotate("scheduling.volcano.sh/queue-name", named)
    return made


@st.composite
def queues(draw: st.DrawFn) -> Builder:
    """Names that several APIs, implied queues and namespaces share."""
    name, weight = draw(st.sampled_from(("q", "default", "root", "a"))), draw(st.integers(1, 3))
    api = draw(st.sampled_from(("volcano", "kai", *KUBE_BATCH)))
    if api == "kai":
        made = Builder("scheduling.run.ai/v2", "Queue", name)
        share = {"quota": weight, "limit": -1, "overQuotaWeight": 1}
        made["spec"] = {"resources": {"cpu": share, "memory": share, "gpu": share}}
    else:
        made = queue(name, weight, *(() if api == "volcano" else (api,)))
    return _in_pool(made, draw(_pools))


@st.composite
def groups(draw: st.DrawFn) -> Builder:
    name, space, least = draw(st.sampled_from(("g", "h"))), draw(_namespaces), draw(st.integers(1, 3))
    api = draw(st.sampled_from(("volcano", "kai", "coscheduling", *KUBE_BATCH)))
    if api == "kai":
        made = Builder("scheduling.run.ai/v2alpha2", "PodGroup", name, space)
        made["spec"] = {"minMember": least, "queue": "q"}
    elif api == "coscheduling":
        made = Builder("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, space)
        made["spec"] = {"minMember": least}
    else:
        made = pod_group(name, least, space, *(() if api == "volcano" else (api,)))
        if named := draw(st.sampled_from((None, "q", "default"))):
            made["spec"]["queue"] = named
        if draw(st.booleans()):
            made["spec"]["priorityClassName"] = "high"
        if api == "volcano" and draw(st.booleans()):
            made.owned_by("Job", "train")
    return _in_pool(made.created("2026-01-01T00:00:00Z"), draw(_pools))


@st.composite
def volcano_jobs(draw: st.DrawFn) -> Builder:
    made = Builder("batch.volcano.sh/v1alpha1", "Job", "train", draw(_namespaces))
    made["spec"] = {"schedulerName": draw(st.sampled_from(SCHEDULERS)), "tasks": []}
    return made


@st.composite
def pods(draw: st.DrawFn, readable: bool = True) -> Builder:
    number = draw(st.integers(0, 6))
    made = pod(f"p{number}" if readable else f"odd{number}", draw(_namespaces)).cpu(draw(st.sampled_from(("1", "500m"))))
    made.scheduler(draw(st.sampled_from(SCHEDULERS))).priority(draw(st.integers(0, 3)))
    made.created(f"2026-01-01T00:00:0{draw(st.integers(0, 3))}Z")
    match draw(st.sampled_from(("none", "volcano", "kai", "coscheduling", "replicaset", "pytorchjob"))):
        case "volcano":
            made.in_group(draw(st.sampled_from(("g", "h", "absent"))))
        case "kai":
            made.annotate("pod-group-name", draw(st.sampled_from(("g", "h"))))
        case "coscheduling":
            made.label("scheduling.x-k8s.io/pod-group", "g")
        case "replicaset":
            made.owned_by("ReplicaSet", draw(st.sampled_from(("web", "api"))))
        case "pytorchjob":
            made.owned_by("PyTorchJob", "torch").label("kai.scheduler/queue", "q")
    if draw(st.booleans()):
        made.label("kai.scheduler/queue", draw(st.sampled_from(("q", "default"))))
    place, phase = draw(st.sampled_from(("", *NODES, "unknown"))), draw(st.sampled_from(("Running", "Running", "Succeeded")))
    if place:
        made.bound_to(place).phase(phase)
    if draw(st.booleans()):
        made.label("app", "x")
    if not readable:
        made["spec"].setdefault("nodeName", "n1")
        made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "much"
        made.phase("Running")
    return made


@st.composite
def torch_jobs(draw: st.DrawFn) -> Builder:
    made = Builder("kubeflow.org/v1", "PyTorchJob", "torch", draw(_namespaces))
    worker = {"replicas": draw(st.integers(1, 3)), "template": {"spec": {"containers": [{"name": "c"}]}}}
    made["spec"] = {"pytorchReplicaSpecs": {"Worker": worker}}
    return made


@st.composite
def bind_requests(draw: st.DrawFn) -> Builder:
    name = f"p{draw(st.integers(0, 6))}"
    made = Builder("scheduling.run.ai/v1alpha2", "BindRequest", name, draw(_namespaces))
    made["spec"] = {"podName": name, "selectedNode": draw(st.sampled_from(NODES)), "receivedResourceType": "Regular"}
    if draw(st.booleans()):
        made["status"] = {"phase": draw(st.sampled_from(("Pending", "Failed"))), "failedAttempts": draw(st.integers(0, 2))}
    return made


@st.composite
def budgets(draw: st.DrawFn) -> Builder:
    made = budget(draw(st.sampled_from(("b1", "b2"))), {"app": "x"}, draw(st.integers(0, 2)), draw(_namespaces))
    made["spec"]["minAvailable"] = draw(st.integers(1, 3))
    return made.owned_by("ReplicaSet", draw(st.sampled_from(("web", "api"))))


@st.composite
def nodes(draw: st.DrawFn) -> Builder:
    return _in_pool(node(draw(st.sampled_from(NODES))).cpu(draw(st.sampled_from(("4", "8")))), draw(_pools))


@st.composite
def others(draw: st.DrawFn) -> Builder:
    """Kinds that are kept for plugins, and quotas."""
    match draw(st.sampled_from(("Service", "StorageClass", "PersistentVolumeClaim", "ResourceSlice", "ResourceQuota"))):
        case "Service":
            made = Builder("v1", "Service", "s", draw(_namespaces))
            made["spec"] = {"selector": {"app": "x"}}
        case "StorageClass":
            made = Builder("storage.k8s.io/v1", "StorageClass", "fast")
            made["provisioner"] = "disk"
        case "PersistentVolumeClaim":
            made = Builder("v1", "PersistentVolumeClaim", "data", draw(_namespaces))
            made["spec"] = {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
        case "ResourceSlice":
            made = Builder("resource.k8s.io/v1", "ResourceSlice", "gpus")
            made["spec"] = {"driver": "gpu", "nodeName": "n1", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
        case _:
            made = Builder("v1", "ResourceQuota", "all", draw(_namespaces))
            made["spec"], made["status"] = {"hard": {"cpu": "4"}}, {"hard": {"cpu": "4"}, "used": {"cpu": "1"}}
    return made


@st.composite
def classes(draw: st.DrawFn) -> Builder:
    return priority_class(draw(st.sampled_from(("high", "low"))), draw(st.integers(1, 5)), default=draw(st.booleans()))


def identity(made: dict[str, Any]) -> tuple[str, str, str, str]:
    """Objects that are the same one to an API server."""
    meta = made["metadata"]
    return made["apiVersion"].rpartition("/")[0], made["kind"], meta.get("namespace", ""), meta["name"]


@st.composite
def object_sets(draw: st.DrawFn) -> Objects:
    one = st.one_of(
        namespaces(),
        queues(),
        groups(),
        groups(),
        volcano_jobs(),
        pods(),
        pods(),
        pods(),
        pods(readable=False),
        torch_jobs(),
        bind_requests(),
        budgets(),
        nodes(),
        classes(),
        others(),
    )
    found = {identity(made): made for made in draw(st.lists(one, max_size=24))}
    for group, kind, space, name in list(found):  # without a child of theirs the plan would make all that controllers make
        if group == "batch.volcano.sh":
            made = pod_group("made", 2, space).owned_by(kind, name)
            found[identity(made)] = made
        if group == "kubeflow.org":
            child = pod(f"{name}-worker-0", space).scheduler("navarch").priority(0).owned_by("PyTorchJob", name)
            found["", "Pod", space, f"{name}-worker-0"] = child.label("kai.scheduler/queue", "q")
    return [as_stored(made) for made in found.values()]


def as_stored(made: dict[str, Any]) -> dict[str, Any]:
    """What an API server would show of it."""
    stored = admit(made, AdmissionContext()).obj if made["metadata"]["name"][:3] != "odd" else made
    if made["kind"] == "Pod":
        stored["spec"]["priority"] = made["spec"]["priority"]
    stored["metadata"]["uid"] = "/".join(identity(made))
    return dict(stored)
