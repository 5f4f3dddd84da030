"""What an explanation answers, question by question, on clusters small enough to see that it is right."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.explained_judge import complaints

import navarch
from navarch.explanation.names import NotFound
from navarch.offline.plan import PlanError
from navarch.testing.builders import Builder, node, pod, pod_group, priority_class, queue


def gang(name: str, size: int, cpu: int, *, on: str = "", least: int | None = None, where: str = "default") -> list[Builder]:
    found: list[Builder] = [pod_group(name, size if least is None else least).queue(where).phase("Running" if on else "Inqueue")]
    for number in range(size):
        each = pod(f"{name}-{number}").in_group(name).cpu(cpu)
        found.append(each.on(on) if on else each)
    return found


def explained(objects: list[Any], job: str, **options: Any) -> dict[str, Any]:
    return navarch.explain(objects, job, seconds=600, **options).to_dict()


def starting(answer: dict[str, Any], kind: str) -> list[str]:
    return [each["text"] for each in answer["changes"] if each["kind"] == kind and each["starts"]]


def test_a_job_that_starts_by_itself_needs_nothing() -> None:
    answer = explained([node("n").cpu(4), *gang("a", 2, 1)], "a")
    assert (answer["state"], answer["cause"]["code"], answer["cause"]["only"]) == ("pending", "Starts", True)
    assert [(each["kind"], each["starts"], each["cycles"]) for each in answer["changes"]] == [("wait", True, 1)]


def test_a_running_job_says_where() -> None:
    answer = explained([node("n").cpu(4), *gang("a", 2, 1, on="n")], "a")
    assert (answer["state"], answer["cause"]["message"]) == ("running", "its pods run on n")


def test_a_finished_job_is_gone() -> None:
    objects = [node("n").cpu(4), pod_group("a", 1), pod("a-0").in_group("a").on("n").phase("Succeeded")]
    assert explained(objects, "a")["state"] == "gone"


def test_a_job_that_ended_says_how() -> None:
    ends = [pod(f"a-{number}").in_group("a").on("n").phase(phase) for number, phase in enumerate(("Succeeded", "Failed", "Succeeded"))]
    answer = explained([node("n").cpu(4), pod_group("a", 1), *ends, pod("b").on("n").phase("Failed")], "a")
    assert answer["cause"]["message"] == "2 pods have succeeded, 1 has failed"
    answer = explained([node("n").cpu(4), pod("b").on("n").phase("Failed")], "b")
    assert (answer["state"], answer["cause"]["code"], answer["cause"]["message"]) == ("gone", "Failed", "1 pod has failed")


def growing(*others: Builder) -> list[Builder]:
    """An elastic job that runs with one of its three pods."""
    members = [pod(f"a-{number}").in_group("a").cpu(2) for number in range(3)]
    members[0].on("n")
    return [node("n").cpu(4), pod_group("a", 1).phase("Running"), *members, *others]


def test_a_job_that_runs_says_why_its_other_pods_wait_and_what_starts_one_of_them() -> None:
    objects = growing(*gang("b", 1, 2, on="n"))
    answer = explained(objects, "a")
    assert (answer["state"], answer["pods"], answer["complete"]) == ("running", {"Pending": 2, "Running": 1}, True)
    assert answer["cause"]["code"] == "ClusterFull"
    assert answer["blockers"]["jobs"] == ["default/b"]
    assert starting(answer, "end") == ["end default/b"]
    assert starting(answer, "node") == ["one more node like n"]
    assert complaints(objects, answer, "navarch") == []


def test_a_job_that_grows_by_itself_says_so() -> None:
    answer = explained(growing(), "a")
    assert (answer["state"], answer["cause"]["message"]) == ("running", "more of its pods start in the next cycle, on n")


def test_a_job_that_cannot_grow_even_alone_says_so() -> None:
    objects = growing(pod("tied").on("n"))
    objects[0] = node("n").cpu(3)
    answer = explained(objects, "a")
    assert (answer["state"], answer["complete"]) == ("running", True)
    assert "no more of its pods start without any other job either (proved)" in answer["notes"]
    assert complaints(objects, answer, "navarch") == []


def test_a_group_without_pods_has_nothing_to_start() -> None:
    answer = explained([node("n").cpu(4), pod_group("a", 2)], "a")
    assert (answer["state"], answer["cause"]["code"], answer["changes"], answer["trials"]) == ("pending", "NoPods", [], 0)


def test_a_group_without_pods_says_why_it_is_not_admitted() -> None:
    objects = [node("n").cpu("4"), queue("default"), pod_group("g", 2).min_resources(cpu="40")]
    told = navarch.explain(objects, "g", "volcano").cause
    assert (told.code, told.figures["cpu asked"]) == ("NoPods", 40000)
    assert told.message == "it has no pods yet, because it is not admitted: resource in cluster is overused: overused cpu"


def test_a_missing_pod_group_is_made() -> None:
    objects = [node("n").cpu(4), *(pod(f"a-{number}").in_group("a").cpu(1) for number in range(2))]
    answer = explained(objects, "a")
    assert answer["cause"]["code"] == "PodGroupNotFound"
    assert starting(answer, "podGroup") == ["create the PodGroup default/a with minMember 2"]
    assert complaints(objects, answer, "navarch") == []


def test_a_pod_of_another_scheduler_is_named() -> None:
    objects = [node("n").cpu(4), pod("mine").cpu(1).scheduler("navarch"), pod("theirs").cpu(1).scheduler("other")]
    for name in ("theirs", "default/theirs", "pod/theirs"):
        with pytest.raises(NotFound, match="waits for the scheduler other, which is none of ours"):
            navarch.explain(objects, name, scheduler_names="navarch")
    assert explained(objects, "theirs", scheduler_names="other")["cause"]["code"] == "Starts"


@pytest.mark.parametrize("asked", ["g", "default/g", "podgroup/g"])
@pytest.mark.parametrize("pods", [[], [pod("g-0").in_group("g").scheduler("other")]])
def test_a_group_without_pods_of_ours_is_not_an_unknown_job(pods: list[Any], asked: str) -> None:
    said = r"PodGroup default/g has no pods that name a scheduler of ours \(volcano\); it is a job from its first such pod on"
    with pytest.raises(NotFound, match=said):
        navarch.explain([pod_group("g"), *pods], asked, scheduler_names=["volcano"])


def test_changed_objects_can_be_applied() -> None:
    server = {"managedFields": [{"manager": "kubectl"}], "resourceVersion": "7"}
    wants = dict(pod("a").cpu(4))
    wants["metadata"] = {**wants["metadata"], **server}
    answer = explained([node("n").cpu(2), wants], "a")
    (change,) = (each for each in answer["changes"] if each["kind"] == "resources" and each["starts"])
    assert not server.keys() & change["objects"][0]["metadata"].keys()


def test_a_cordoned_node_is_uncordoned_and_its_taint_is_not_a_second_advice() -> None:
    cordoned = node("n").cpu(4).cordoned().taint("node.kubernetes.io/unschedulable")
    answer = explained([cordoned, *gang("a", 1, 2)], "a")
    assert starting(answer, "uncordon") == ["uncordon n"]
    assert [each["text"] for each in answer["changes"] if each["kind"] == "taint"] == []


def test_an_impossible_job_is_proved_impossible_and_gets_advice() -> None:
    answer = explained([node("n").cpu(4), *gang("big", 3, 2)], "big")
    assert answer["state"] == "impossible"
    assert starting(answer, "minMember") == ["minMember 2 instead of 3"]
    assert starting(answer, "node") == ["one more node like n"]
    assert answer["complete"]


def test_the_blocking_set_names_no_job_that_is_not_needed() -> None:
    objects = [
        node("n").cpu(4),
        node("m").cpu(1),
        *gang("one", 1, 2, on="n"),
        *gang("two", 1, 2, on="n"),
        *gang("three", 1, 1, on="m"),
    ]
    answer = explained([*objects, *gang("wants", 1, 4)], "wants")
    assert (sorted(answer["blockers"]["jobs"]), answer["blockers"]["minimal"]) == (["default/one", "default/two"], True)
    assert starting(answer, "end")


def test_a_selector_that_no_node_has() -> None:
    objects = [node("n").cpu(4).label("gpu", "h100"), pod("a").cpu(1).select("gpu", "h200")]
    answer = explained(objects, "a")
    assert answer["nodes"]["total"] == 1
    assert {"clause": "gpu=h200", "nodes": 1, "starts": True} in answer["nodes"]["clauses"]
    assert starting(answer, "selector") == ["drop the node selector gpu=h200", "node selector gpu=h100 instead of h200"]


def test_a_taint_that_is_not_tolerated() -> None:
    answer = explained([node("n").cpu(4).taint("maint", "x"), pod("a").cpu(1)], "a")
    assert starting(answer, "toleration") == ["tolerate the taint maint=x:NoSchedule"]
    assert starting(answer, "taint") == ["remove the taint maint from n"]


def test_uncordoning_a_node_is_named_where_it_starts_the_job() -> None:
    answer = explained([node("n").cpu(4).cordoned(), pod("a").cpu(1)], "a")
    assert starting(answer, "uncordon") == ["uncordon n"]


def test_a_gate_is_the_cause_and_lifting_it_helps() -> None:
    answer = explained([node("n").cpu(4), pod("a").cpu(1).gate("hold")], "a")
    assert answer["cause"]["code"] == "SchedulingGated"
    assert starting(answer, "gate") == ["lift the scheduling gate hold"]


def test_a_higher_priority_class_evicts_and_says_so() -> None:
    objects = [node("n").cpu(4), priority_class("high", 100), *gang("low", 2, 2, on="n"), *gang("a", 2, 2)]
    answer = explained(objects, "a")
    change = next(each for each in answer["changes"] if each["kind"] == "priorityClass")
    assert (change["starts"], change["cycles"], change["price"]["evicts"]) == (True, 2, ["default/low"])


def test_a_queue_bound_is_bisected_and_both_sides_are_shown() -> None:
    full = queue("full").capability(cpu=4)
    objects = [node("n").cpu(16), full, *gang("run", 2, 2, on="n", where="full"), *gang("a", 2, 2, where="full")]
    answer = explained(objects, "a")
    assert answer["cause"]["code"] == "QueueLimit" and answer["cause"]["only"]
    sides = {each["starts"] for each in answer["changes"] if each["kind"] == "quota"}
    assert sides == {True, False}


def test_a_queue_that_does_not_exist() -> None:
    answer = explained([node("n").cpu(4), queue("other"), *gang("a", 1, 1, where="nowhere")], "a", policy="volcano")
    assert answer["cause"]["code"] == "QueueNotFound"
    assert "create the queue nowhere" in starting(answer, "queue")
    assert "submit it to queue other instead of nowhere" in starting(answer, "queue")


def test_the_place_in_the_queue_and_the_jobs_ahead() -> None:
    first = [each.created("2026-01-01T00:00:00Z") for each in gang("first", 1, 3)]
    second = [each.created("2026-01-02T00:00:00Z") for each in gang("second", 1, 3)]
    third = [each.created("2026-01-03T00:00:00Z") for each in gang("third", 1, 3)]
    order = explained([node("n").cpu(4), *third, *second, *first], "third")["order"]
    assert (order["place"], order["of"], order["overall"], order["overallOf"]) == (3, 3, 3, 3)
    assert [(each["job"], each["because"]) for each in order["ahead"]] == [("default/first", "age"), ("default/second", "age")]
    assert order["startsAlone"]


def test_priority_decides_the_order() -> None:
    objects = [node("n").cpu(4), priority_class("high", 9), pod("a").cpu(3), pod("b").cpu(3).priority_class("high")]
    assert explained(objects, "a")["order"]["ahead"][0]["because"] == "priority"


def test_a_job_that_preempts_starts_by_itself_in_the_second_cycle() -> None:
    objects = [node("n").cpu(4), priority_class("high", 9), *gang("low", 1, 4, on="n"), pod("a").cpu(4).priority_class("high")]
    answer = explained(objects, "a")
    change = answer["changes"][0]
    assert (change["kind"], change["cycles"], change["price"]["evicts"]) == ("wait", 2, ["default/low"])


@pytest.mark.parametrize("where", ["", "m"])
def test_an_object_that_cannot_be_read_does_not_keep_others_from_an_explanation(where: str) -> None:
    """Another tenant's mistake: the cluster is explained without that object, and changes are tried all the same."""
    odd = pod("odd").on(where) if where else pod("odd")
    odd["metadata"]["annotations"] = {"gpu-fraction": "abc"}
    objects = [node("n").cpu(8), node("m").cpu(4), *gang("run", 1, 4, on="m"), *gang("wait", 1, 4, least=1), odd, pod("big").cpu(9)]
    answer = explained(objects, "default/big", keep_going=True)
    assert answer["state"] == "impossible" and starting(answer, "resources")
    with pytest.raises(PlanError, match="gpu-fraction"):
        explained(objects, "default/big")


def test_trials_that_run_out_are_told() -> None:
    objects = [node("n").cpu(4), *gang("one", 1, 2, on="n"), *gang("two", 1, 2, on="n"), *gang("a", 2, 2)]
    answer = explained(objects, "a", trials=2)
    assert not answer["complete"] and "what the user can change" in answer["notEstablished"] and answer["trials"] == 2


def test_a_name_that_nothing_has_brings_near_ones() -> None:
    with pytest.raises(NotFound, match=r"no job 'trian' among 1 jobs; did you mean default/train\?"):
        navarch.explain([node("n").cpu(4), *gang("train", 1, 1)], "trian")


def test_a_name_in_several_namespaces_is_asked_for() -> None:
    with pytest.raises(NotFound, match="several namespaces"):
        navarch.explain([pod("a", "x").cpu(1), pod("a", "y").cpu(1)], "a")


@pytest.mark.parametrize("name", ["train", "default/train", "pod/train-1", "podgroup/train", "pod/default/train-0", "train-0"])
def test_a_job_is_found_by_any_of_its_names(name: str) -> None:
    assert navarch.explain([node("n").cpu(4), *gang("train", 2, 1)], name).job == "default/train"


def test_a_workload_is_found_by_its_own_name_and_edited() -> None:
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "8"}}}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "prod"},
        "spec": {"replicas": 1, "template": template},
    }
    answer = explained([node("n").cpu(4), deployment], "prod/web")
    change = next(each for each in answer["changes"] if each["kind"] == "resources" and each["starts"])
    assert (change["text"], change["objects"][0]["kind"]) == ("cpu 4 a pod instead of 8", "Deployment")


def test_bad_input_is_told_as_plan_tells_it() -> None:
    with pytest.raises(PlanError, match=r"spec\.minMember"):
        navarch.explain([pod_group("a", -1)], "a")


def test_a_move_that_defragments() -> None:
    objects = [node("n").cpu(4), node("m").cpu(4), pod("a").cpu(1).on("n"), pod("b").cpu(2).on("m"), pod("wants").cpu(4)]
    answer = explained(objects, "wants")
    change = next(each for each in answer["changes"] if each["kind"] == "moves")
    assert (change["starts"], change["text"]) == (True, "move default/a from n to m")
    assert change["objects"][0]["spec"]["nodeName"] == "m"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"suspend": True}, "Job default/idle is suspended, so it has no pods: navarch resume idle -n default"),
        ({"parallelism": 0}, "Job default/idle has no pods: its parallelism is 0"),
    ],
)
@pytest.mark.parametrize("name", ["idle", "default/idle", "job/idle"])
def test_a_workload_without_pods_is_not_an_unknown_job(fields: dict[str, Any], told: str, name: str) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "idle"}, "spec": {"template": template, **fields}}
    with pytest.raises(NotFound) as found:
        explained([node("n").cpu(4), job, pod("idler").cpu(1)], name)
    assert str(found.value) == told


def test_a_job_that_a_change_ends_is_not_called_delayed() -> None:
    objects = [node("n").cpu(4), pod_group("holds", 1).phase("Running"), pod("holds-0").in_group("holds").cpu(4).on("n")]
    answer = navarch.explain([*objects, pod("wants").cpu(4)], "wants").to_dict()
    ends = [change for change in answer["changes"] if change["kind"] == "end"]
    assert ends and all(change["price"]["delays"] == [] for change in ends)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"job": None}, "job: found None, expected the name of a job, such as namespace/name"),
        ({"trials": 0}, "trials: found 0, expected a whole number, at least 1"),
        ({"seconds": -1}, "seconds: found -1, expected a number, 0 or more"),
        ({"seed": "x"}, "seed: found 'x', expected a whole number, at least 0"),
    ],
    ids=["job", "trials", "seconds", "seed"],
)
def test_a_wrong_argument_is_named_with_what_is_expected(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as refused:
        navarch.explain(**{"objects": [node("n").cpu(1), pod("a").cpu(2)], "job": "a", **given})
    assert str(refused.value) == said


def test_without_time_the_cause_is_told_and_the_rest_is_listed() -> None:
    found = navarch.explain([node("n").cpu(1), pod("a").cpu(2)], "a", seconds=0)
    assert found.cause.code == "NeverStarts" and not found.complete
    assert "what the user can change" in found.not_established


def test_devices_that_a_running_job_holds_are_free_when_it_is_gone() -> None:
    def claim(name: str, **status: Any) -> dict[str, Any]:
        request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
        metadata = {"name": name, "namespace": "default"}
        spec = {"devices": {"requests": [request]}}
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec, "status": status}

    def asking(each: Builder, name: str) -> Builder:
        each["spec"]["resourceClaims"] = [{"name": "x", "resourceClaimName": name}]
        return each

    devices = {"results": [{"request": "r", "driver": "d.io", "pool": "n", "device": "d0"}]}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
    allocation = {"devices": devices, "nodeSelector": {"nodeSelectorTerms": terms}}
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    objects: list[Any] = [
        node("n").cpu(4),
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {"nodeName": "n", "driver": "d.io", "pool": pool, "devices": [{"name": "d0"}]},
        },
        claim("held", allocation=allocation, reservedFor=[{"resource": "pods", "name": "run", "uid": "run"}]),
        claim("wanted"),
        asking(pod("run").uid("run").cpu(1).on("n"), "held"),
        asking(pod("a").cpu(1), "wanted"),
    ]
    answer = explained(objects, "a")
    assert (answer["state"], answer["blockers"]["jobs"]) == ("pending", ["default/run"])
    assert starting(answer, "end") == ["end default/run"]
    assert complaints(objects, answer, "navarch") == []


def test_a_topology_is_told_before_what_a_queue_may_not_reclaim() -> None:
    policy = {
        "actions": "enqueue, allocate, gangreclaim",
        "tiers": [{"plugins": [{"name": each} for each in ("gang", "predicates", "capacity", "network-topology-aware")]}],
    }
    member = {"type": "Node", "selector": {"exactMatch": {"name": "n"}}}
    hyper = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "h"}}
    group = pod_group("a", 2).phase("Inqueue")
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    members = [pod(f"a-{number}").in_group("a").cpu(3) for number in range(2)]
    hypers = [{**hyper, "spec": {"tier": 1, "members": [member]}}]
    answer = explained([node("n").cpu(4), node("m").cpu(4), *hypers, group, *members], "a", policy=policy)
    assert answer["cause"]["code"] != "QueueOverDeserved" and "reclaim" not in answer["cause"]["message"]
