"""Which group a pod without one gets, by what owns it."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.ingest.groups import ShadowGroups
from navarch.ingest.pod_reader import PodReader
from navarch.model.spec import JobSpec, PriorityClassSpec, TopologyDemand

Text = dict[str, str]


def job_of(
    owner: tuple[str, str] | None = None,
    labels: Text | None = None,
    annotations: Text | None = None,
    classes: dict[str, PriorityClassSpec] | None = None,
    scheduler: str = "kai-scheduler",
) -> JobSpec:
    metadata: dict[str, Any] = {"name": "p-0", "namespace": "team", "labels": labels or {}, "annotations": annotations or {}}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "uid": "u", "controller": True}]
    pod = from_manifest({"metadata": metadata, "spec": {"schedulerName": scheduler, "containers": [{"name": "c"}]}}, Pod)
    task = PodReader(Settings()).read(pod)
    assert task is not None
    job = ShadowGroups(Settings(), {}, classes or {}).put(task)
    assert job is not None and job.key == task.job
    return job


@pytest.mark.parametrize(
    ("owner", "labels", "annotations", "key", "least", "priority_class"),
    [
        (None, {}, {}, "team/pod/p-0", 1, "train"),
        (None, {"spark-app-selector": "s1", "spark-app-name": "n"}, {}, "team/sparkapplication/s1", 1, "train"),
        (("Job", "j"), {}, {}, "team/job/j", 1, "train"),
        (("Job", "j"), {}, {"kai.scheduler/batch-min-member": "4"}, "team/job/j", 4, "train"),
        (("ReplicaSet", "web-5c"), {"pod-template-hash": "5c"}, {}, "team/pod/p-0", 1, "inference"),
        (("ReplicaSet", "web"), {}, {}, "team/replicaset/web", 1, "train"),
        (("ReplicaSet", "k"), {"serving.knative.dev/revision": "k-1"}, {}, "team/pod/p-0", 1, "inference"),
        (("StatefulSet", "db"), {}, {}, "team/statefulset/db", 1, "train"),
        (("StatefulSet", "nb"), {"notebook-name": "nb"}, {}, "team/notebook/nb", 1, "build"),
        (("PyTorchJob", "t"), {}, {}, "team/pytorchjob/t", 1, "train"),
        (
            ("StatefulSet", "lws-1"),
            {"leaderworkerset.sigs.k8s.io/name": "lws", "leaderworkerset.sigs.k8s.io/group-index": "1"},
            {"leaderworkerset.sigs.k8s.io/size": "3"},
            "team/leaderworkerset/lws-1",
            3,
            "train",
        ),
    ],
)
def test_the_owner_decides(
    owner: tuple[str, str] | None, labels: Text, annotations: Text, key: str, least: int, priority_class: str
) -> None:
    job = job_of(owner, labels, annotations)
    assert (job.key, job.min_member, job.priority_class, job.shadow) == (key, least, priority_class, True)
    assert job.queue == "default-queue"


def test_inference_workloads_are_not_preemptible_by_default() -> None:
    deployed = {"pod-template-hash": "5c"}
    serving = job_of(("ReplicaSet", "w-5c"), deployed)
    assert (serving.priority, serving.preemptable) == (125, False)
    assert job_of(("ReplicaSet", "w-5c"), {**deployed, "kai.scheduler/preemptibility": "preemptible"}).preemptable
    assert not job_of(None, {"kai.scheduler/preemptibility": "non-preemptible"}).preemptable
    assert (job_of().priority, job_of().preemptable) == (50, True)


def test_a_class_on_the_pod_counts_if_it_exists() -> None:
    classes = {"urgent": PriorityClassSpec("urgent", 300), "train": PriorityClassSpec("train", 42)}
    urgent = job_of(labels={"priorityClassName": "urgent"}, classes=classes)
    assert (urgent.priority, urgent.preemptable) == (300, False)
    assert job_of(labels={"priorityClassName": "nonsense"}, classes=classes).priority == 42


def test_labels_and_annotations_say_where() -> None:
    placed = job_of(
        labels={"kai.scheduler/queue": "research"},
        annotations={"kai.scheduler/topology": "t", "kai.scheduler/topology-preferred-placement": "rack"},
        scheduler="default-scheduler",
    )
    assert placed.queue == "research"
    assert placed.topology == TopologyDemand("t", "", "rack", hard=False)
    assert job_of(labels={"project": "p"}).queue == "p"
    assert job_of(annotations={"kai.scheduler/preemption-delay": "30s"}).preemption_delay == 30.0
