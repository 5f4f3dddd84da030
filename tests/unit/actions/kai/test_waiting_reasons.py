"""Why a job waits in a tree of queues: what a researcher reads in a plan, its numbers, and what would have to happen first."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.kai_cluster import BEGIN, CLUSTER, NOW, TEAMS, Manifest, gpu_node, group, queue, worker, workers

from navarch.offline.plan import plan
from navarch.testing.builders import node

ROOM = ["pod removed", "node added", "node changed"]
BOUNDS = ["pod removed", "queue changed", "job changed"]
PLACE = ["queue changed", "job changed"]
TOPOLOGY = {
    "apiVersion": "kai.scheduler/v1alpha1",
    "kind": "Topology",
    "metadata": {"name": "net"},
    "spec": {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]},
}


def reasons(objects: list[Manifest]) -> dict[str, list[dict[str, Any]]]:
    (cycle,) = plan(objects, policy="kai", now=NOW).to_dict()["cycles"]
    return {job["job"].partition("/")[2]: job["reasons"] for job in cycle["jobs"]}


def only(objects: list[Manifest], job: str = "new") -> list[tuple[str, list[str]]]:
    return [(reason["message"], reason["undoneBy"]) for reason in reasons(objects)[job]]


def test_over_the_limit_of_its_queue() -> None:
    objects = [*CLUSTER, queue("vision", limit=8), group("new", 2), *workers("new", 2)]
    text = (
        "vision quota has reached the allowable limit of GPUs. Limit is 8 GPUs, currently 0 GPUs allocated and workload "
        "requested 16 GPUs"
    )
    assert only(objects) == [(text, BOUNDS)]


def test_non_preemptible_jobs_stay_within_quota() -> None:
    objects = [*CLUSTER, *TEAMS, group("new", 2, preemptibility="non-preemptible"), *workers("new", 2)]
    text = (
        "Non-preemptible workload is over quota. Workload requested 16 GPUs, but vision quota is 8 GPUs, while 0 GPUs are already "
        "allocated for non-preemptible pods. Use a preemptible workload to go over quota."
    )
    assert only(objects) == [(text, BOUNDS)]


def test_a_gang_that_fits_in_part() -> None:
    objects = [*CLUSTER, *TEAMS, group("new", 3), *workers("new", 3)]
    first, second = reasons(objects)["new"]
    assert first["message"] == (
        "Resources were found for 2 pods while 3 are required for gang scheduling. Additional pods cannot be scheduled due to: "
        "no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPUs."
    )
    assert first["nodes"] == {"node(s) didn't have enough resources: GPUs": 2}
    figures = {"found": 2, "needed": 3, "nvidia.com/gpu requested": "8", "nvidia.com/gpu free on the best node": "0"}
    assert figures.items() <= first["figures"].items()
    assert first["undoneBy"] == ROOM
    assert second["message"] == (
        "vision may not take from other queues: it holds 0 GPUs and the workload requested 24 GPUs, more than its fair share of "
        "16 GPUs"
    )


def test_a_level_that_the_topology_lacks() -> None:
    near = {"topology": "net", "requiredTopologyLevel": "block"}
    objects = [*CLUSTER, *TEAMS, TOPOLOGY, group("new", 2, topologyConstraint=near), *workers("new", 2)]
    assert only(objects) == [('the topology "net" has no level "block" (it has: zone, rack)', ["job changed", "node changed"])]
    absent = group("new", 2, topologyConstraint={"topology": "ring", "requiredTopologyLevel": "rack"})
    assert only([*CLUSTER, *TEAMS, TOPOLOGY, absent, *workers("new", 2)])[0][0] == (
        'the topology "ring" does not exist (there are: net)'
    )


def test_no_rack_holds_the_gang() -> None:
    near = {"topology": "net", "requiredTopologyLevel": "rack"}
    racks = [gpu_node("gpu-1", zone="a", rack="r1"), gpu_node("gpu-2", zone="a", rack="r2"), CLUSTER[2]]
    objects = [*racks, *TEAMS, TOPOLOGY, group("new", 2, topologyConstraint=near), *workers("new", 2)]
    assert only(objects) == [
        ("topology net, requirement rack couldn't be satisfied for job <lab/new>", ROOM),
        ("node-group a.r1 can allocate only 1 of 2 required pods", ROOM),
        ("node-group a.r2 can allocate only 1 of 2 required pods", ROOM),
    ]


def test_more_memory_than_any_gpu_has() -> None:
    objects = [*CLUSTER, *TEAMS, group("new"), worker("new-0", "new").annotate("gpu-memory", "96000")]
    (reason,) = reasons(objects)["new"]
    assert reason["message"].endswith("no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPU memory.")
    assert reason["figures"]["GPU memory requested"] == "96000Mi"
    assert reason["figures"]["GPU memory of the best node"] == "80000Mi"


def test_a_slice_that_no_node_has() -> None:
    objects = [*CLUSTER, *TEAMS, group("new"), worker("new-0", "new").limit("nvidia.com/mig-3g.40gb", 1)]
    text, undone = only(objects)[0]
    assert text == (
        "Resources were not found for pod lab/new-0 due to: Scheduling conditions were not met for pod lab/new-0:\n"
        "MaxNodePoolResources: The pod lab/new-0 requires GPU: 3, CPU: 1 (cores), memory: 1 (GB), pods: 1, mig "
        "nvidia.com/mig-3g.40gb: 1. No node in the default node-pool has nvidia.com/mig-3g.40gb resources.\n"
    )
    assert undone == ["node added", "node changed"]


@pytest.mark.parametrize(
    ("named", "more", "text"),
    [
        ("gone", [], 'the queue "gone" does not exist'),
        (
            "lost",
            [queue("lost", "nobody")],
            "queue 'lost' has no place in the tree of queues: its parent 'nobody' (spec.parentQueue) does not exist",
        ),
        (
            "low",
            [queue("mid", "nobody"), queue("low", "mid")],
            "queue 'low' has no place in the tree of queues: its ancestor 'mid' has none, its parent 'nobody' (spec.parentQueue) "
            "does not exist",
        ),
        (
            "own",
            [queue("own", "own")],
            "queue 'own' has no place in the tree of queues: it names itself as its parent (spec.parentQueue)",
        ),
        (
            "a",
            [queue("a", "b"), queue("b", "a")],
            "queue 'a' has no place in the tree of queues: its way up is a circle, a -> b -> a (spec.parentQueue)",
        ),
        ("org", [], "queue 'org' is the parent of speech, vision: jobs must name a queue without children"),
    ],
)
def test_a_queue_without_a_place_says_what_is_wrong(named: str, more: list[Manifest], text: str) -> None:
    objects = [*CLUSTER, *TEAMS, *more, group("new", queue=named), *workers("new", 1)]
    assert only(objects) == [(text, PLACE)]


def test_no_node_has_the_label() -> None:
    objects = [*CLUSTER, *TEAMS, group("new"), worker("new-0", "new", 1).select("gpu-type", "h200")]
    text, undone = only(objects)[0]
    assert text.endswith("no nodes with enough resources were found: 2 node(s) didn't match Pod's node affinity/selector.")
    assert undone == ROOM


PARTS = [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": 3}]


def test_a_sub_group_that_does_not_fit() -> None:
    pods = [*workers("new", 1, 0, "leader"), *workers("new", 3, 8, "workers")]
    text, _ = only([*CLUSTER, *TEAMS, group("new", subGroups=PARTS), *pods])[0]
    assert text == (
        "Resources were found for 2 pods from all sub-groups while sub-group workers requires 3 pods for gang scheduling. "
        "Additional pods cannot be scheduled in this sub-group due to: no nodes with enough resources were found: "
        "2 node(s) didn't have enough resources: GPUs."
    )


def test_a_sub_group_with_too_few_pods() -> None:
    pods = [*workers("new", 1, 0, "leader"), *workers("new", 2, 8, "workers")]
    text = "Waiting for 4 pods, currently 3 exist, 0 are gated, sub-group workers has 2 of 3"
    assert only([*CLUSTER, *TEAMS, group("new", subGroups=PARTS), *pods]) == [(text, ["pod changed", "job changed"])]


def running(name: str, at: str, queue: str) -> list[Manifest]:
    return [group(name, queue=queue, started=BEGIN), worker(f"{name}-0", name, 8).on(at)]


def test_possible_victims_have_not_run_for_their_minimum() -> None:
    guarded = [queue("vision"), queue("speech", reclaimMinRuntime="30m")]
    taken = [*running("old", "gpu-1", "speech"), *running("older", "gpu-2", "speech")]
    objects = [*CLUSTER, *guarded, *taken, group("new"), *workers("new", 1)]
    found = only(objects)
    assert len(found) == 2
    text = "Workloads that could be evicted for it are within their minimal run time, lab/old until 2026-01-01T00:30:00Z"
    assert found[1] == (text, ["time passed"])
    (cycle,) = plan(objects, policy="kai", now=NOW + 1800).to_dict()["cycles"]
    assert [eviction["for"] for eviction in cycle["evictions"]] == ["lab/new"], "half an hour later one of them goes"


def test_a_queue_at_its_fair_share_may_not_take() -> None:
    taken = [*running("old", "gpu-1", "speech"), *running("mine", "gpu-2", "vision")]
    found = only([*CLUSTER, *TEAMS, *taken, group("new"), *workers("new", 1)])
    text = (
        "vision may not take from other queues: it holds 8 GPUs and the workload requested 8 GPUs, more than its fair share of 8 GPUs"
    )
    assert found[1] == (text, BOUNDS)


def test_a_plan_carries_shared_gpus_and_fair_shares() -> None:
    half = worker("new-0", "new").annotate("gpu-fraction", "0.5")
    (cycle,) = plan([*CLUSTER, *TEAMS, group("new"), half], policy="kai", now=NOW).to_dict()["cycles"]
    assert cycle["binds"] == [{"gpuGroups": ["new-1"], "node": "gpu-1", "pod": "lab/new-0"}]
    assert {queue["queue"]: queue["fairShare"].get("nvidia.com/gpu") for queue in cycle["queues"]} == {
        "org": "500m",
        "speech": "0",
        "vision": "500m",
    }


def test_a_pod_that_needs_a_config_map_which_is_not_there_waits() -> None:
    def needing(name: str, **optional: bool) -> Manifest:
        made = worker("new-0", "new", 1)
        made["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": name, **optional}}]
        return made

    def given(name: str, namespace: str) -> Manifest:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}

    def said(*objects: Manifest) -> list[tuple[str, list[str]]]:
        return only([*CLUSTER, *TEAMS, group("new"), *objects])

    text = (
        "Resources were not found for pod lab/new-0 due to: Scheduling conditions were not met for pod lab/new-0:\n"
        "ConfigMap: Missing required configmaps: [settings].\n"
    )
    assert said(needing("settings"), given("kube-root-ca.crt", "lab"))[0] == (text, ["pod changed", "job changed"])
    assert said(needing("settings"), given("settings", "lab")) == []
    assert said(needing("settings", optional=True), given("kube-root-ca.crt", "lab")) == []
    assert said(needing("settings"), given("kube-root-ca.crt", "other")) == [], "the input does not say what the namespace holds"


@pytest.mark.parametrize(
    ("gpus", "part", "told"),
    [
        (
            0,
            {"gpu-fraction": "0.5"},
            "requires GPU: 0.5, CPU: 1 (cores), memory: 1 (GB), pods: 1. No node in the default node-pool has GPU",
        ),
        (
            1,
            {"gpu-fraction": "0.6", "gpu-fraction-num-devices": "2"},
            "requires GPU: 1.2, CPU: 1 (cores), memory: 1 (GB), pods: 1. Max GPU",
        ),
    ],
)
def test_parts_of_gpus_beyond_what_any_node_has_are_refused_before_a_search(gpus: int, part: dict[str, str], told: str) -> None:
    only_node, made = node("n").cpu("64").memory("256Gi"), worker("new-0", "new")
    if gpus:
        only_node.gpu(gpus).label("nvidia.com/gpu.memory", "80000")
    for name, value in part.items():
        made.annotate(name, value)
    text, _ = only([only_node, queue("org", "", 16), *TEAMS, group("new"), made])[0]
    assert told in text


def test_all_that_stands_against_a_pod_is_told_at_once() -> None:
    made = worker("new-0", "new", 9)
    made["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    text, _ = only([*CLUSTER, *TEAMS, group("new"), made])[0]
    assert text == (
        "Resources were not found for pod lab/new-0 due to: Scheduling conditions were not met for pod lab/new-0:\n"
        'VolumeBinding: persistentvolumeclaim "data" not found.\n'
        "MaxNodePoolResources: The pod lab/new-0 requires GPU: 9, CPU: 1 (cores), memory: 1 (GB), pods: 1. Max GPU resources "
        "available in a single node in the default node-pool is topped at 8.\n"
    )
