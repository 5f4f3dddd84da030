"""Queues, nodes, placements, evictions, recorded cycles, and the difference between policies."""

from __future__ import annotations

import pytest

import navarch
from navarch.engine.cycle import decide
from navarch.explanation.explain import Reading, reading
from navarch.explanation.names import NotFound
from navarch.explanation.node_report import explain_node
from navarch.explanation.policy_difference import policy_difference
from navarch.explanation.queues import explain_queue
from navarch.explanation.recorded import explain_recorded
from navarch.offline.replay import Recording, read, record
from navarch.testing.builders import Builder, node, pod, pod_group, priority_class, queue


def recorded(heap: Reading) -> Recording:
    rules, run = heap.rules, heap.run
    decided = decide(run.cluster.snapshot(rules.policy.semantics.node_order), rules.policy, rules.registry, run.now, uid="1")
    snapshot = run.cluster.snapshot(rules.policy.semantics.node_order)
    return read(record(snapshot, rules.policy, run.now, "1", {}, decided))


def test_a_queue_tells_how_its_share_came_about() -> None:
    objects = [node("n").cpu(12), queue("a", 2), queue("b", 1).capability(cpu=6)]
    objects += [
        pod_group("x", 1).queue("a"),
        pod("x-0").in_group("x").cpu(10),
        pod_group("y", 1).queue("b"),
        pod("y-0").in_group("y").cpu(2),
    ]
    found = explain_queue(reading(objects).run, "b").to_dict()
    assert [(step["text"], step["amounts"].get("cpu", "nothing")) for step in found["steps"]] == [
        ("the cluster has", "12"),
        ("it asks for", "2"),
        ("its weight is 1 of 3 among the 2 queues that ask for something, which gives it", "4"),
        ("less what it does not ask for or may not hold:", "2"),
        ("it may hold at most", "6"),
        ("so it is owed", "2"),
        ("it holds nothing", "nothing"),
    ]
    other = explain_queue(reading(objects).run, "a").to_dict()
    assert ("and what other queues leave over:", "2") in [(step["text"], step["amounts"].get("cpu")) for step in other["steps"]]


def test_queues_that_starve_and_queues_that_borrow_are_paired() -> None:
    objects: list[Builder] = [node("n").cpu(8), queue("rich"), queue("poor")]
    objects += [pod_group("x", 1).queue("rich").phase("Running")]
    objects += [pod(f"x-{i}").in_group("x").cpu(1).on("n") for i in range(8)]
    objects += [pod_group("y", 2).queue("poor"), *(pod(f"y-{i}").in_group("y").cpu(2) for i in range(2))]
    heap = reading(objects, "volcano")
    poor, rich = (explain_queue(heap.run, name) for name in ("poor", "rich"))
    assert [(loan.queue, loan.amounts["cpu"]) for loan in poor.lends] == [("rich", "4")]
    assert [(loan.queue, loan.amounts["cpu"]) for loan in rich.borrows] == [("poor", "4")]
    assert [job.job for job in poor.waiting] == ["default/y"]


def test_a_node_tells_what_is_free_but_of_no_use() -> None:
    objects = [node("n").cpu(4).gpu(0), pod("a").cpu(1).on("n"), pod("wants").cpu(4), pod("gpu").gpu(1).cpu(1)]
    found = explain_node(reading(objects).run, "n").to_dict()
    assert found["free"]["cpu"] == "3" and found["useless"] == {"cpu": "3"}
    refused = {each["jobs"][0]: each["refused"] for each in found["waiting"]}
    assert refused == {"default/gpu": ["Insufficient nvidia.com/gpu"], "default/wants": ["Insufficient cpu"]}


def test_resources_that_no_waiting_pod_requests_are_not_called_useless() -> None:
    objects = [node("n").cpu(4).gpu(2), pod("a").gpu(1).on("n"), pod("wants").gpu(2)]
    found = explain_node(reading(objects).run, "n").to_dict()
    assert found["free"]["cpu"] == "4" and found["useless"] == {"nvidia.com/gpu": "1"}


def test_a_node_that_a_waiting_pod_could_use_has_nothing_useless() -> None:
    found = explain_node(reading([node("n").cpu(4), pod("a").cpu(1)]).run, "n").to_dict()
    assert found["useless"] == {} and found["waiting"][0]["refused"] == []


def test_a_placed_pod_shows_its_scores_beside_the_runner_up() -> None:
    objects = [node("n").cpu(4), node("m").cpu(8), pod("a").cpu(1).on("n")]
    placed = navarch.explain(objects, "a").to_dict()["placements"][0]
    assert (placed["node"], placed["feasible"], placed["runnerUp"]["node"]) == ("n", 2, "m")
    for each in (placed["scores"], placed["runnerUp"]):
        assert each["total"] == pytest.approx(sum(each["scores"].values()))


def test_an_evicted_pod_names_the_winner_and_why_no_other_went() -> None:
    objects = [
        node("n").cpu(4),
        priority_class("high", 9),
        pod("victim").cpu(2).on("n"),
        pod("important").cpu(2).priority_class("high").on("n"),
        pod("wants").cpu(2).priority_class("high"),
    ]
    evicted = navarch.explain(objects, "victim").to_dict()["evictions"]
    assert [(each["pod"], each["gains"]) for each in evicted] == [("default/victim", "default/wants")]
    assert [(each["job"], each["allowed"]) for each in evicted[0]["instead"]] == [("default/important", False)]


@pytest.mark.parametrize("policy", ["navarch", "volcano", "kube-batch", "kube-scheduler"])
def test_blockers_say_whether_the_policy_may_take_them(policy: str) -> None:
    objects = [node("n").cpu(4), pod("holds").cpu(4).on("n"), pod("wants").cpu(4)]
    found = navarch.explain(objects, "wants", policy).to_dict()["blockers"]
    assert found["jobs"] == ["default/holds"]
    assert [(each["job"], each["allowed"]) for each in found["mayTake"]] == [("default/holds", False)] and found["mayTake"][0][
        "reason"
    ]


def test_a_blocker_of_lower_priority_may_be_taken() -> None:
    objects = [node("n").cpu(4), priority_class("high", 9), pod("holds").cpu(4).on("n"), pod("wants").cpu(4).priority_class("high")]
    assert navarch.explain(objects, "wants", "kube-scheduler").to_dict()["blockers"]["mayTake"][0]["allowed"]


def test_a_blocker_within_its_minimal_run_time_is_protected_until_then() -> None:
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    shares = {"resources": dict.fromkeys(("gpu", "cpu", "memory"), unlimited), "preemptMinRuntime": "1h"}
    line = Builder("scheduling.run.ai/v2", "Queue", "q")
    line["spec"] = shares

    def member(name: str, priority: str) -> list[Builder]:
        group = Builder("scheduling.run.ai/v2alpha2", "PodGroup", name, "default")
        group["spec"] = {"minMember": 1, "queue": "q", "priorityClassName": priority}
        return [group, pod(f"{name}-0").annotate("pod-group-name", name).cpu(4)]

    holds = member("holds", "low")
    holds[0].annotate("kai.scheduler/last-start-timestamp", "2026-01-01T00:00:00Z")
    holds[1]["spec"]["nodeName"], holds[1]["status"] = "n", {"phase": "Running"}
    objects = [node("n").cpu(4), priority_class("low", 10), priority_class("mid", 60), line, *holds, *member("wants", "mid")]
    found = navarch.explain(objects, "wants", "kai", now=1767225600 + 60).to_dict()["blockers"]
    assert found["jobs"] == ["default/holds"]
    expected = {
        "job": "default/holds",
        "allowed": False,
        "reason": "it is within its minimal run time",
        "until": "2026-01-01T01:00:00Z",
    }
    assert found["mayTake"] == [expected]


def test_a_recorded_cycle_is_explained_without_its_objects() -> None:
    objects = [node("n").cpu(4), pod("one").cpu(2).on("n"), pod("two").cpu(2).on("n"), pod("wants").cpu(4), pod("also").cpu(4)]
    answer = explain_recorded(recorded(reading(objects)), "wants", seconds=600).to_dict()
    assert (answer["state"], answer["cause"]["code"]) == ("pending", "ClusterFull")
    assert sorted(answer["blockers"]["jobs"]) == ["default/also", "default/one", "default/two"]
    assert [each["kind"] for each in answer["changes"]] == ["end"]
    assert answer["order"]["place"] == 2
    with pytest.raises(NotFound):
        explain_recorded(recorded(reading(objects)), "nobody")


def test_a_recorded_eviction_is_explained() -> None:
    objects = [node("n").cpu(2), priority_class("high", 9), pod("victim").cpu(2).on("n"), pod("wants").cpu(2).priority_class("high")]
    answer = explain_recorded(recorded(reading(objects)), "victim", seconds=600).to_dict()
    assert answer["evictions"][0]["gains"] == "default/wants"


def test_two_policies_are_compared() -> None:
    objects = [
        node("a").cpu(4),
        node("b").cpu(8),
        pod("p").cpu(1),
        pod_group("g", 3),
        *(pod(f"g-{i}").in_group("g").cpu(8) for i in range(3)),
    ]
    found = policy_difference(navarch.plan(objects, "navarch"), navarch.plan(objects, "kube-scheduler")).to_dict()
    assert found["starts"] == [] and found["startsNoLonger"] == []
    assert policy_difference(navarch.plan(objects), navarch.plan(objects)).to_dict()["moves"] == []


def test_the_forms_of_a_queue_and_a_node_are_those_of_the_page() -> None:
    run = reading([node("n").cpu(4), queue("a"), pod_group("x", 1).queue("a"), pod("x-0").in_group("x").cpu(8)]).run
    found = explain_queue(run, "a").to_dict()
    names = "queue state parent share deserved allocated request steps holds borrows lends waiting notes names"
    assert sorted(found) == sorted(names.split())
    assert sorted(found["steps"][0]) == ["amounts", "text"] and sorted(found["waiting"][0]) == ["code", "job", "pods"]
    there = explain_node(run, "n").to_dict()
    assert sorted(there) == sorted(
        ["node", "ready", "unschedulable", "taints", "pods", "free", "useless", "waiting", "notes", "names"]
    )
    assert sorted(there["waiting"][0]) == ["jobs", "pods", "refused", "requests"]


def test_a_queue_says_what_it_holds_within_its_share_and_what_it_has_borrowed() -> None:
    held = [
        pod(f"{name}-{n}").in_group(name).cpu(1).on("n")
        for name, count in (("first", 2), ("second", 3), ("third", 3))
        for n in range(count)
    ]
    groups = [pod_group(name, least).queue("a").phase("Running") for name, least in (("first", 2), ("second", 3), ("third", 3))]
    waiting = [pod_group("mine", 4).queue("b"), *(pod(f"mine-{n}").in_group("mine").cpu(1) for n in range(4))]
    run = reading([node("n").cpu(8), queue("a"), queue("b"), *groups, *held, *waiting]).run
    parts = [(part["standing"], part["pods"], part["jobs"]) for part in explain_queue(run, "a").to_dict()["holds"]]
    assert parts == [
        ("within its share", 2, ["default/first"]),
        ("in a lump", 3, ["default/second"]),
        ("borrowed", 3, ["default/third"]),
    ]


def test_a_queue_above_others_says_what_they_hold_where_the_policy_knows_no_tree() -> None:
    tree = [queue("above").capability(cpu=2), queue("leaf").parent("above")]
    running = pod_group("x", 1).queue("leaf").phase("Running"), pod("x-0").in_group("x").cpu(4).on("n")
    objects = [node("n").cpu(8), *tree, *running]
    told = [(step["text"], step["amounts"]) for step in explain_queue(reading(objects).run, "above").to_dict()["steps"]]
    assert told[-3:] == [
        ("it holds nothing", {}),
        ("with the queues below it, it holds", {"cpu": "4"}),
        ("the policy divides no tree of queues: its share and its bounds count for its own jobs alone", {}),
    ]
    flat = [step["text"] for step in explain_queue(reading(objects).run, "leaf").to_dict()["steps"]]
    assert flat[-1] == "it holds"
