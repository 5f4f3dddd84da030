"""What of a pod that cannot be read as a whole is read all the same."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.worlds.odd_pods import ODD

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.partial_pod import PartialPod, read_partial_pod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.ingest.pod_reader import PodReader
from navarch.model.status import TaskStatus

WHY = ValueError("why")


def manifest(*resources: Any, **spec: Any) -> dict[str, Any]:
    containers = [{"name": f"c{i}", "resources": each} for i, each in enumerate(resources)]
    metadata = {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "labels": {"app": "x"},
        "annotations": {"scheduling.k8s.io/group-name": "g"},
    }
    return {
        "metadata": metadata,
        "spec": {"nodeName": "n1", "schedulerName": "navarch", "containers": containers, **spec},
        "status": {"phase": "Running", "conditions": [ODD]},
    }


def read(found: dict[str, Any]) -> PartialPod:
    pod = read_partial_pod(msgspec.json.encode(found), WHY)
    assert pod is not None
    return pod


def requests(pod: PartialPod) -> dict[str, int]:
    task = PodReader(Settings(scheduler_names=frozenset({"navarch"}))).read(pod)
    assert task is not None
    return dict(task.shape.requests)


def test_a_field_that_is_not_what_it_should_be_is_left_out_and_the_rest_is_read() -> None:
    found = manifest({"requests": {"cpu": "2"}}, priority=7, nodeSelector=["no", "mapping"])
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(found), type=Pod)
    pod = read(found)
    task = PodReader(Settings(scheduler_names=frozenset({"navarch"}))).read(pod)
    assert task is not None
    assert (task.key, task.uid, task.node, task.status) == ("ns/a", "u", "n1", TaskStatus.RUNNING)
    assert (task.job, task.pod_priority, dict(task.labels)) == ("ns/g", 7, {"app": "x"})
    assert (dict(task.shape.requests), task.conditions) == ({"cpu": 2000}, ())
    assert (pod.error, pod.unknown) == (WHY, False)


@pytest.mark.parametrize(
    ("resources", "asked"),
    [
        ([{"requests": {"cpu": "1", "memory": 1024}}, {"requests": {"cpu": "500m"}}], {"cpu": 1500, "memory": 1024}),
        ([{"requests": {"cpu": "a lot"}, "limits": {"cpu": "3"}}], {"cpu": 3000}),
        ([{"requests": {"cpu": -1}, "limits": {"cpu": "3"}}], {"cpu": 3000}),
        ([{"requests": {"cpu": True}, "limits": {"cpu": 3}}], {"cpu": 3000}),
        ([{"requests": "all", "limits": {"cpu": "3", "memory": "1k"}}], {"cpu": 3000, "memory": 1000}),
        ([{"requests": {"cpu": "1"}, "limits": {"cpu": "a lot"}}], {"cpu": 1000}),
        ([{"requests": {"cpu": "1"}, "limits": 5}], {"cpu": 1000}),
        ([None, {}], {}),
    ],
    ids=["sums", "limit in its place", "negative", "no number", "no mapping", "bad limit", "bad limits", "nothing asked for"],
)
def test_requests_that_can_be_read_are_counted(resources: list[Any], asked: dict[str, int]) -> None:
    pod = read(manifest(*resources))
    assert (requests(pod), pod.unknown) == (asked, False)


def test_init_containers_sidecars_overhead_and_the_pods_own_requests_count() -> None:
    init = [
        {"name": "i", "resources": {"requests": {"cpu": "4"}}},
        {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
    ]
    pod = read(manifest({"requests": {"cpu": "1"}}, initContainers=init, overhead={"cpu": "250m"}))
    assert requests(pod) == {"cpu": 4250}
    pod = read(manifest({"requests": {"cpu": "1"}}, resources={"requests": {"cpu": "6", "memory": "x"}, "limits": {"memory": 7}}))
    assert requests(pod) == {"cpu": 6000, "memory": 7}


@pytest.mark.parametrize(
    "found",
    [
        manifest({"requests": {"cpu": "a lot"}}),
        manifest({"requests": {"cpu": "a lot"}, "limits": {"memory": "1"}}),
        manifest({"requests": {"cpu": "a lot"}, "limits": {"cpu": "more"}}),
        manifest({"requests": ["cpu"]}),
        manifest(["requests"]),
        manifest({}, overhead={"cpu": "some"}),
        manifest({}, overhead=1),
        manifest({}, resources={"requests": {"cpu": []}}),
        manifest({}, initContainers={"name": "i"}),
        manifest(containers="none"),
        manifest(containers=["none"]),
    ],
)
def test_an_unreadable_amount_is_unknown(found: dict[str, Any]) -> None:
    assert read(found).unknown


@pytest.mark.parametrize(
    "found",
    [
        manifest(nodeName=""),
        manifest(nodeName=7),
        manifest(nodeName=None),
        {"metadata": {"name": "a"}},
        {"metadata": ["a"], "spec": {"nodeName": "n1"}},
        {"spec": {"nodeName": "n1"}},
        ["pod"],
        None,
    ],
)
def test_a_pod_without_a_node_or_a_name_is_not_read_in_part(found: Any) -> None:
    assert read_partial_pod(msgspec.json.encode(found), WHY) is None


def test_a_pod_that_was_decoded_is_read_in_the_same_way() -> None:
    found = manifest({"requests": {"cpu": "a lot"}, "limits": {"cpu": "2"}})
    found["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    decoded = from_manifest(found, Pod)
    pod = read_partial_pod(decoded, WHY)
    assert pod is not None and requests(pod) == {"cpu": 2000}
    assert pod.status.conditions == decoded.status.conditions
