"""Objects of scheduler-plugins' coscheduling as jobs, and pods as their members."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.coscheduling import PodGroup, group_of, read_pod_group
from navarch.apis.dialect import Settings
from navarch.apis.errors import ObjectError
from navarch.model.spec import Condition, JobSpec


def group(status: dict[str, Any] | None = None, **spec: Any) -> JobSpec:
    manifest = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team", "uid": "u"},
        "spec": spec,
        "status": status or {},
    }
    return read_pod_group(from_manifest(manifest, PodGroup), Settings())


def test_a_group_is_a_gang_without_queue_whose_pods_give_its_priority() -> None:
    job = group(minMember=3, minResources={"cpu": "6", "memory": "3Gi"}, scheduleTimeoutSeconds=10)
    assert (job.key, job.min_member, job.queue, job.dialect) == ("team/g", 3, "", "coscheduling")
    assert job.min_resources == (("cpu", 6000), ("memory", 3 << 30)) and job.priority_of_tasks
    assert (job.phase, job.conditions, job.counts) == ("Pending", (), {})
    assert group().min_resources is None and group().min_member == 0


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Pending", "Pending"),
        ("PreScheduling", "Pending"),
        ("Scheduling", "Pending"),
        ("Scheduled", "Pending"),
        ("Running", "Running"),
        ("Finished", "Completed"),
        ("Failed", "Completed"),
        ("Unknown", "Pending"),
    ],
)
def test_the_phase_of_a_group_says_only_whether_it_has_started(phase: str, expected: str) -> None:
    job = group({"phase": phase})
    assert job.phase == expected
    assert job.conditions == ((Condition("Scheduled", "True", phase),) if expected != "Pending" else ())
    assert dict(job.reported)["phase"] == phase


def test_the_status_is_kept_for_its_writer() -> None:
    start = "2026-01-01T00:00:00Z"
    job = group({"phase": "Running", "running": 2, "scheduled": 3, "occupiedBy": "team/job", "scheduleStartTime": start})
    assert job.counts == {"running": 2, "scheduled": 3}
    assert dict(job.reported)["occupiedBy"] == "team/job" and job.last_started == 1767225600.0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"minMember": -1}, "PodGroup team/g: spec.minMember: found -1, expected 0 or more"),
        ({"minMember": "some"}, "PodGroup team/g: spec.minMember: found 'some', expected a whole number"),
        ({"minResources": {"cpu": "x"}}, "PodGroup team/g: spec.minResources[cpu]: found 'x', expected a quantity"),
    ],
)
def test_mistakes_name_object_field_and_value(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ObjectError) as caught:
        group(**spec)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"scheduling.volcano.sh/queue-name": "research"}},
        {"annotations": {"volcano.sh/queue-name": "research"}, "labels": {"kai.scheduler/queue": "other"}},
        {"labels": {"kai.scheduler/queue": "research"}},
    ],
)
def test_a_group_names_its_queue_as_pods_do(metadata: dict[str, Any]) -> None:
    manifest = {"metadata": {"name": "g", **metadata}, "spec": {"minMember": 1}}
    assert read_pod_group(from_manifest(manifest, PodGroup), Settings()).queue == "research"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (None, ""),
        ({"app": "web"}, ""),
        ({"scheduling.x-k8s.io/pod-group": "g"}, "g"),
        ({"pod-group.scheduling.sigs.k8s.io": "old"}, "old"),
        ({"scheduling.x-k8s.io/pod-group": "g", "pod-group.scheduling.sigs.k8s.io": "old"}, "g"),
        ({"scheduling.x-k8s.io/pod-group": "", "pod-group.scheduling.sigs.k8s.io": "old"}, "old"),
    ],
)
def test_a_label_names_a_pods_group(labels: dict[str, str] | None, expected: str) -> None:
    assert group_of(from_manifest({"metadata": {"name": "p", "labels": labels}}, Pod)) == expected
