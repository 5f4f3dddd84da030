"""Jobs without pods as `navarch jobs` and `explain` show them: why, in the words of whoever said no."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.worlds.up_process import UpProcess, running_up

pytestmark = pytest.mark.live
POD = {"schedulerName": "navarch", "restartPolicy": "Never"}


def container(image: str = "i", **requests: str) -> dict[str, Any]:
    return {"name": "main", "image": image, "resources": {"requests": requests}}


def job(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    pod = {**POD, "containers": [container()], **spec.pop("pod", {})}
    template = {"metadata": {"annotations": annotations or {}}, "spec": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


def volcano_job(name: str, made: dict[str, Any]) -> dict[str, Any]:
    tasks = [{"name": "worker", "replicas": 1, "template": {"spec": {"containers": [made]}}}]
    spec = {"schedulerName": "navarch", "minAvailable": 1, "tasks": tasks}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with running_up(tmp_path_factory.mktemp("absent"), "--nodes", "1") as found:
        found.kubectl(
            "create",
            "-f",
            "-",
            manifests=[
                volcano_job("banana", container(cpu="banana")),
                volcano_job("noimage", container(image="")),
                job("odd", {"gpu-fraction": "x"}),
                job("noclass", pod={"priorityClassName": "nosuch"}),
                job("paused", suspend=True),
            ],
        )
        yield found


FOUND = [
    ("banana", "Unreadable|Pending", "spec.tasks[0].template.spec.containers[0].resources.requests[cpu]: found 'banana'"),
    ("noimage", "Pending|Inqueue", "its controller cannot create a pod: "),
    ("noimage", "Pending|Inqueue", "spec.containers[0].image: Required value"),
    ("odd", "Unreadable", "metadata.annotations[gpu-fraction]: found 'x', expected a part of one device"),
    ("noclass", "Pending", "no PriorityClass with name nosuch was found"),
    ("paused", "Suspended", "it is suspended: navarch resume paused -n default"),
]


@pytest.mark.parametrize(("name", "phases", "why"), FOUND)
def test_a_job_that_has_no_pods_says_why_in_jobs_and_explain(up: UpProcess, name: str, phases: str, why: str) -> None:
    def row() -> Any:
        return next(iter(json.loads(up.navarch("jobs", name, "-o", "json"))["items"]), {})

    deadline = time.monotonic() + 60
    while why not in row().get("why", "") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert row()["phase"] in phases.split("|") and why in row()["why"], row()
    said = " ".join(up.invoke("explain", name).output.split())
    assert why in said, said


def test_a_job_whose_pods_name_a_group_is_the_row_of_the_group(up: UpProcess) -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "grouped"},
        "spec": {"minMember": 2},
    }
    up.kubectl("create", "-f", "-", manifests=[group, job("grouped", {"scheduling.k8s.io/group-name": "grouped"}, parallelism=2)])
    up.kubectl("wait", "--for=jsonpath={.status.active}=2", "job/grouped", "--timeout=60s")
    assert [row["kind"] for row in json.loads(up.navarch("jobs", "-o", "json"))["items"] if row["name"] == "grouped"] == ["PodGroup"]


def test_the_event_of_an_unreadable_pod_names_scheduler_and_field(up: UpProcess) -> None:
    events = ("get", "events", "--field-selector", "reason=InvalidObject", "-o", "jsonpath={.items[*].message}")
    deadline = time.monotonic() + 60
    while not (said := up.kubectl(*events)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "scheduler navarch cannot use it: Pod default/odd-" in said and "metadata.annotations[gpu-fraction]" in said


def test_no_uid_that_a_controller_added_is_in_an_explanation(up: UpProcess) -> None:
    said = up.invoke("explain", "noimage").output
    assert said.startswith("default/noimage pending") and not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", said), said
