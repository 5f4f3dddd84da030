from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.errors import ObjectError
from navarch.apis.kai.objects import with_bind_request
from navarch.apis.kai.podgroups import devices_of, gpu_groups_of, hints_of
from navarch.apis.registry import KINDS
from navarch.ingest.groups import completed
from navarch.ingest.pod_reader import PodReader
from navarch.model.objects.bind_requests import BindRequestSpec
from navarch.model.objects.numa import NodeNumaSpec
from navarch.model.objects.topologies import LevelSpec, TopologySpec
from navarch.model.spec import (
    DeviceRequest,
    JobSpec,
    ObjectSpec,
    PriorityClassSpec,
    QueueShare,
    QueueSpec,
    Requests,
    SubGroupSpec,
    TopologyDemand,
)
from navarch.model.status import TaskStatus

NEW_YEAR = 1767225600.0


def read(manifest: dict[str, Any]) -> Any:
    kind = KINDS[manifest["apiVersion"], manifest["kind"]]
    return kind.read(from_manifest(manifest, kind.struct), Settings())


def group(spec: dict[str, Any], **metadata: Any) -> JobSpec:
    found = read(
        {
            "apiVersion": "scheduling.run.ai/v2alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "team", **metadata},
            "spec": spec,
        }
    )
    assert isinstance(found, JobSpec)
    return found


def queue(spec: dict[str, Any]) -> QueueSpec:
    found = read({"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec})
    assert isinstance(found, QueueSpec)
    return found


def pod(annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None, **more: Any) -> Pod:
    metadata = {"name": "p", "namespace": "team", "annotations": annotations or {}, "labels": labels or {}}
    metadata.update(more.pop("metadata", {}))
    spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "c"}], **more.pop("spec", {})}
    return from_manifest({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, **more}, Pod)


def test_a_group_reads_whole() -> None:
    found = group(
        {
            "minMember": 3,
            "queue": "research",
            "priorityClassName": "train",
            "preemptibility": "non-preemptible",
            "markUnschedulable": False,
            "schedulingBackoff": 1,
            "preemptionDelay": "5m",
            "stalenessGracePeriod": "-1s",
            "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "zone", "preferredTopologyLevel": "rack"},
        },
        annotations={
            "kai.scheduler/last-start-timestamp": "2026-01-01T00:00:00Z",
            "kai.scheduler/stale-podgroup-timestamp": "2026-01-01T00:00:10Z",
        },
    )
    assert (found.key, found.queue, found.min_member, found.dialect) == ("team/g", "research", 3, "kai")
    assert (found.preemptable, found.preemptible_below) == (False, None)
    assert (found.mark_unschedulable, found.tried_once) == (False, True)
    assert (found.preemption_delay, found.staleness_grace) == (300.0, -1.0)
    assert found.topology == TopologyDemand("t", "zone", "rack", hard=True)
    assert (found.last_started, found.stale_since, found.last_evicted) == (NEW_YEAR, NEW_YEAR + 10, None)


def nested(deep: int) -> list[dict[str, str]]:
    return [{"name": f"p{i}", "parent": f"p{i - 1}" if i else ""} for i in range(deep)]


def test_minima_that_are_absent() -> None:
    found = group({"subGroups": [{"name": "a"}, {"name": "b", "parent": "A", "minMember": 2, "minSubGroup": 1}]})
    assert found.min_member == 2, "what its parts need"
    assert found.sub_groups == (
        SubGroupSpec("a", min_member=0),
        SubGroupSpec("b", min_member=2, parent="a", min_sub_groups=1, min_groups=1),
    )
    assert group({"minMember": 0}).min_member == 0
    assert group({"minSubGroup": 2}).min_sub_groups == 2


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"minMember": -1}, r"PodGroup team/g: spec\.minMember: found -1"),
        ({"preemptibility": "sometimes"}, r"spec\.preemptibility: found 'sometimes'"),
        ({"subGroups": [{"name": "a"}, {"name": "a"}]}, r"spec\.subGroups\[1\]\.name"),
        ({"subGroups": [{"name": "a", "parent": "b"}]}, r"spec\.subGroups\[0\]\.parent: found 'b'"),
        (
            {"subGroups": nested(400)},
            r"spec\.subGroups\[51\]\.parent: found 'p50', expected sub-groups that are nested at most 50 deep",
        ),
        ({"subGroups": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]}, "not its own descendant"),
        ({"preemptionDelay": "soon"}, r"spec\.preemptionDelay: found 'soon', expected a duration"),
    ],
)
def test_mistakes_in_groups_name_their_field(spec: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ObjectError, match=complaint):
        group(spec)


@pytest.mark.parametrize(("value", "preemptable"), [(99, True), (100, False)])
def test_priority_decides_whether_a_group_is_preemptible(value: int, preemptable: bool) -> None:
    classes = {"c": PriorityClassSpec("c", value)}
    assert completed(group({"priorityClassName": "c"}), Settings(), {}, classes).preemptable is preemptable
    assert completed(group({"priorityClassName": "c", "preemptibility": "preemptible"}), Settings(), {}, classes).preemptable


def test_a_group_without_a_class_has_priority_fifty() -> None:
    assert completed(group({}), Settings(), {}, {}).priority == 50
    assert completed(group({}), Settings(), {}, {"d": PriorityClassSpec("d", 7, global_default=True)}).priority == 7


def test_a_queue_in_its_units() -> None:
    found = queue(
        {
            "parentQueue": "dep",
            "priority": 3,
            "reclaimMinRuntime": "2m0s",
            "resources": {
                "gpu": {"quota": 1.5, "overQuotaWeight": 2, "limit": -1},
                "cpu": {"quota": 4000, "limit": 8000, "overQuotaWeight": 1},
                "memory": {"quota": 10, "limit": -1},
            },
        }
    )
    assert found.shares["gpu"] == QueueShare(1.5, -1.0, 2.0)
    assert found.shares["cpu"] == QueueShare(4000.0, 8000.0, 1.0)
    assert found.shares["memory"] == QueueShare(10e6, -1.0, 0.0)
    assert (found.parent, found.priority, found.reclaim_min_runtime, found.preempt_min_runtime) == ("dep", 3, 120.0, None)


def test_omitted_fields_of_a_queue_are_zero() -> None:
    found = queue({"resources": {"gpu": {"quota": 1}}})
    assert found.shares["gpu"] == QueueShare(1.0, 0.0, 0.0)
    assert found.shares["cpu"] == QueueShare(0.0, 0.0, 0.0)
    assert found.priority == 100
    with pytest.raises(ObjectError, match=r"Queue q: spec\.resources: found nothing"):
        queue({})


@pytest.mark.parametrize(
    ("annotations", "devices"),
    [
        ({"gpu-fraction": "0.5"}, DeviceRequest(fraction=500)),
        ({"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"}, DeviceRequest(fraction=250, count=2)),
        ({"gpu-memory": "4096"}, DeviceRequest(memory=4096)),
        ({}, None),
    ],
)
def test_annotations_ask_for_parts_of_gpus(annotations: dict[str, str], devices: DeviceRequest | None) -> None:
    assert devices_of(pod(annotations)) == devices


def test_mig_resources_ask_for_slices_of_gpus() -> None:
    resources = {"requests": {"nvidia.com/mig-1g.10gb": "2", "cpu": "1"}}
    sliced = pod(spec={"containers": [{"name": "c", "resources": resources}]})
    assert devices_of(sliced) == DeviceRequest(profiles=(("nvidia.com/mig-1g.10gb", 2),))
    assert hints_of(pod({"nvidia.com/mig-1g.10gb": "1"})) == (("nvidia.com/mig-1g.10gb", "1"),)


@pytest.mark.parametrize(
    ("annotations", "complaint"),
    [
        ({"gpu-fraction": "half"}, r"Pod team/p: metadata\.annotations\[gpu-fraction\]: found 'half'"),
        ({"gpu-fraction": "1.5"}, "at most 1"),
        ({"gpu-fraction": "nan"}, "more than 0"),
        ({"gpu-memory": "4Gi"}, "a whole number from 1 to 2147483647"),
        ({"gpu-fraction": "0.5", "gpu-memory": "10"}, "not both"),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}, "a whole number from 1 to 2147483647"),
    ],
)
def test_parts_that_cannot_be(annotations: dict[str, str], complaint: str) -> None:
    with pytest.raises(ObjectError, match=complaint):
        devices_of(pod(annotations))


def test_gpu_annotations_on_pods_of_other_schedulers_are_ignored() -> None:
    assert devices_of(pod({"gpu-memory": "lots"}, spec={"schedulerName": "default-scheduler"})) is None


def test_the_shared_gpus_a_pod_sits_on() -> None:
    assert gpu_groups_of(pod(labels={"runai-gpu-group": "0"})) == ("0",)
    assert gpu_groups_of(pod(labels={"runai-gpu-group/b": "b", "runai-gpu-group/a": "a"})) == ("a", "b")
    assert gpu_groups_of(pod()) == ()
    assert gpu_groups_of(pod({"runai-gpu-group": "b,a"})) == ("a", "b"), "where no label was copied from the binding"
    assert gpu_groups_of(pod({"runai-gpu-group": "old"}, labels={"runai-gpu-group": "0"})) == ("0",)


def test_a_pod_of_a_group() -> None:
    zones = '[{"zone":"zone-1","amount":{"cpu":"3"}}]'
    annotations = {"pod-group-name": "g", "kai.scheduler/numa-placement-observed": zones}
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    task = PodReader(Settings()).read(pod(annotations, {"kai.scheduler/subgroup-name": "a"}, metadata=deleted))
    assert task is not None
    assert (task.job, task.sub_group, task.deleted) == ("team/g", "a", NEW_YEAR)
    assert task.numa_placement == (("zone-1", (("cpu", 3000),)),)


def test_topologies() -> None:
    levels = [{"nodeLabel": "zone"}, {"nodeLabel": "rack", "alias": "r"}, {"nodeLabel": "kubernetes.io/hostname"}]
    manifest = {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": "t"}}
    found = read({**manifest, "spec": {"levels": levels}})
    expected = (LevelSpec("zone"), LevelSpec("rack", "r"), LevelSpec("kubernetes.io/hostname"))
    assert found == ObjectSpec("Topology", "", "t", TopologySpec("t", expected))
    with pytest.raises(ObjectError, match="on the last level only"):
        read({**manifest, "spec": {"levels": levels[::-1]}})
    with pytest.raises(ObjectError, match="no other level has"):
        read({**manifest, "spec": {"levels": levels[:1] * 2}})
    with pytest.raises(ObjectError, match="1 to 16 levels"):
        read(manifest)


def test_bind_requests() -> None:
    found = read(
        {
            "apiVersion": "scheduling.run.ai/v1alpha2",
            "kind": "BindRequest",
            "metadata": {"name": "p", "namespace": "team"},
            "spec": {
                "podName": "p",
                "selectedNode": "n",
                "receivedResourceType": "Fraction",
                "receivedGPU": {"count": 1, "portion": "0.50"},
                "selectedGPUGroups": ["1"],
            },
            "status": {"phase": "Failed", "failedAttempts": 2},
        }
    )
    value = found.value
    assert isinstance(value, BindRequestSpec)
    assert (found.kind, found.namespace, found.name) == ("BindRequest", "team", "p")
    assert (value.node, value.gpu_groups, value.resource_type) == ("n", ("1",), "Fraction")
    assert (value.gpu_count, value.gpu_portion, value.failed_attempts, value.is_under_way) == (1, "0.50", 2, False)


def test_numa_zones() -> None:
    def zone(name: str, kind: str = "Node") -> dict[str, Any]:
        return {"name": name, "type": kind, "resources": [{"name": "cpu", "allocatable": "4", "available": "3"}]}

    manifest = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": {"name": "n"}}
    zones = [zone("node-10"), zone("node-2"), zone("socket-0", "Socket")]
    attributes = [{"name": "topologyManagerPolicy", "value": "restricted"}, {"name": "topologyManagerScope", "value": "pod"}]
    value = read({**manifest, "zones": zones, "attributes": attributes}).value
    assert isinstance(value, NodeNumaSpec)
    assert [z.name for z in value.zones] == ["node-2", "node-10"]
    assert (value.policy, value.scope) == ("restricted", "pod")
    assert (value.zones[0].allocatable, value.zones[0].available) == ((("cpu", 4000),), (("cpu", 3000),))
    old = read({**manifest, "topologyPolicies": ["SingleNUMANodePodLevel"]}).value
    assert isinstance(old, NodeNumaSpec) and (old.policy, old.scope) == ("single-numa-node", "pod")


def test_a_pod_that_a_binder_has_in_hand_stands_on_its_node() -> None:
    task = PodReader(Settings()).read(pod({"pod-group-name": "g"}))
    assert task is not None
    bound = with_bind_request(task, BindRequestSpec("team", "p", "n", gpu_groups=("1",)))
    assert (bound.status, bound.node, bound.gpu_groups) == (TaskStatus.BINDING, "n", ("1",))
    failed = BindRequestSpec("team", "p", "n", phase="Failed", failed_attempts=2, backoff_limit=3)
    assert (failed.is_under_way, with_bind_request(task, failed).node) == (True, "n"), "its binder tries again"
    given_up = replace(failed, failed_attempts=3)
    assert (given_up.is_under_way, with_bind_request(task, given_up).node) == (False, "n"), "no other can be made while it is there"
    assert with_bind_request(task, replace(failed, phase="Succeeded")) is task
    assert with_bind_request(replace(task, uid="1"), replace(failed, pod_uid="2")).node == "", "it was for another pod of that name"
    assert with_bind_request(task, None) is task


def test_numa_zones_of_a_request_count_before_a_prediction_and_after_an_observation() -> None:
    def zones(name: str) -> tuple[tuple[str, Requests], ...]:
        return ((name, (("cpu", 1000),)),)

    def seen(annotations: dict[str, str], asked: str) -> str:
        task = PodReader(Settings()).read(pod({"pod-group-name": "g", **annotations}))
        assert task is not None
        request = BindRequestSpec("team", "p", "n", numa_placement=zones(asked) if asked else ())
        return with_bind_request(task, request).numa_placement[0][0]

    def annotation(word: str) -> dict[str, str]:
        return {f"kai.scheduler/numa-placement-{word}": f'[{{"zone": "{word}", "amount": {{"cpu": 1}}}}]'}

    observed, predicted = annotation("observed"), annotation("predicted")
    assert [seen(predicted, ""), seen(predicted, "asked"), seen(predicted | observed, "asked")] == ["predicted", "asked", "observed"]


def test_a_pod_without_a_group_is_in_the_pool_that_its_label_names() -> None:
    blue, rest = (PodReader(Settings(node_pool_key="pool", node_pool=value)) for value in ("blue", ""))

    def labelled(annotations: dict[str, str], **labels: str) -> Pod:
        found = pod(annotations)
        return replace(found, metadata=replace(found.metadata, labels={"kai.scheduler/queue": "q", **labels}))

    alone, marked, member = labelled({}), labelled({}, pool="blue"), labelled({"pod-group-name": "g"})
    assert [blue.is_ours(each) for each in (alone, marked, member)] == [False, True, True]
    assert [rest.is_ours(each) for each in (alone, marked, member)] == [True, False, True]
    task = blue.read(marked)
    assert task is not None and blue.reread(alone, marked, task) is None, "it has left the pool"
    assert blue.is_ours(pod(spec={"schedulerName": "navarch"})), "nothing of KAI is about it"


def test_only_what_is_in_the_pool_is_ours() -> None:
    everything, unlabelled, mine = Settings(), Settings(node_pool_key="pool"), Settings(node_pool_key="pool", node_pool="a")
    assert [s.is_in_pool({"pool": "a"}) for s in (everything, unlabelled, mine)] == [True, False, True]
    assert [s.is_in_pool({}) for s in (everything, unlabelled, mine)] == [True, True, False]
