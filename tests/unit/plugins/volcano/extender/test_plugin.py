"""The extender plugin against a real HTTP server, in strict mode and beside Volcano's quirks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.extender_server import Answers, Seen, extender

import navarch
from navarch.engine.policy import PolicyError
from navarch.installed import installed
from navarch.offline.policies import read_policy
from navarch.plugins.volcano.extender.plugin import Extender
from navarch.simulator.jobs import PodSet, TraceJob
from navarch.testing.builders import node, pod

GPU = "example.com/fpga"


def policy(url: str, actions: str = "allocate", **arguments: Any) -> dict[str, Any]:
    given = {
        "extender.urlPrefix": url,
        "extender.httpTimeout": "60s",
        **{f"extender.{name}": value for name, value in arguments.items()},
    }
    plugins = [{"name": "gang"}, {"name": "predicates"}, {"name": "extender", "arguments": given}]
    return {"actions": actions, "tiers": [{"plugins": plugins}]}


def planned(answers: Answers, objects: list[Any], actions: str = "allocate", **arguments: Any) -> tuple[Any, Seen]:
    with extender(answers) as seen:
        plan = navarch.plan(objects, policy=policy(seen.url, actions, **arguments))
    return plan.to_dict()["cycles"][0], seen


def binds(cycle: Any) -> dict[str, str]:
    return {each["pod"].removeprefix("default/"): each["node"] for each in cycle["binds"]}


def reasons(cycle: Any) -> list[str]:
    return [reason["message"] for job in cycle["jobs"] for reason in job["reasons"]]


def codes(cycle: Any) -> set[str]:
    return {reason["code"] for job in cycle["jobs"] for reason in job["reasons"]}


NODES = [node("n1").cpu("8"), node("n2").cpu("8")]


def test_pods_that_are_alike_share_a_question() -> None:
    pods = [pod(f"p{number}").cpu("1") for number in range(4)]
    cycle, seen = planned({}, [*NODES, *pods], predicateVerb="predicate")
    assert len(binds(cycle)) == 4
    assert seen.count("predicate") < 8


def test_a_node_that_is_refused_is_not_used_and_the_reason_is_told() -> None:
    answers: Answers = {"predicate": [{"match": {"node.Name": "n1"}, "body": {"status": "maintenance", "code": 3}}, {"body": {}}]}
    cycle, _ = planned(answers, [*NODES, pod("p").cpu("1")], predicateVerb="predicate")
    assert binds(cycle) == {"p": "n2"}
    cycle, _ = planned(answers, [NODES[0], pod("p").cpu("1")], predicateVerb="predicate")
    assert binds(cycle) == {} and any("1 maintenance" in text for text in reasons(cycle))


def test_scores_choose_the_node_and_a_run_is_scored_once() -> None:
    answers = {"prioritize": [{"body": {"nodeScore": {"n2": 10}}}]}
    job = [pod(f"p-w-{number}").cpu("1").in_group("g") for number in range(3)]
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"},
             "spec": {"minMember": 3}, "status": {"phase": "Inqueue"}}  # fmt: skip
    cycle, seen = planned(answers, [*NODES, group, *job], prioritizeVerb="prioritize")
    assert set(binds(cycle).values()) == {"n2"} and len(binds(cycle)) == 3
    assert seen.count("prioritize") == 1


def test_only_pods_with_a_managed_resource_are_asked_about() -> None:
    objects = [node("n1").cpu("8").has(GPU, 2), pod("plain").cpu("1"), pod("special").cpu("1").request(GPU, 1)]
    cycle, seen = planned({}, objects, predicateVerb="predicate", managedResources=[GPU])
    assert len(binds(cycle)) == 2
    assert {body["task"]["Name"] for _, body in seen.requests} == {"special"}


@pytest.mark.parametrize("answer", [{"status": 500}, {"raw": "no json"}, {"raw": ""}, {"status": 204, "raw": ""}, {"raw": "[1,2]"}])
@pytest.mark.parametrize("ignorable", [True, False])
def test_a_server_that_answers_wrongly(answer: dict[str, Any], ignorable: bool) -> None:
    cycle, _ = planned({"predicate": [answer]}, [NODES[0], pod("p").cpu("1")], predicateVerb="predicate", ignorable=ignorable)
    assert bool(binds(cycle)) is ignorable
    if not ignorable:
        assert any("0/1 nodes are available" in text for text in reasons(cycle))


@pytest.mark.parametrize(
    ("raw", "placed"),
    [
        ("null", True),
        ('{"status": null, "code": null}', True),
        ('{"Status": "not here", "CODE": 2}', False),
        ('{"status": "not here"} and more', False),
        ('{"status": "", "unknown": [1]}{"status": "not here"}', True),
    ],
)
def test_answers_are_read_as_volcano_reads_them(raw: str, placed: bool) -> None:
    cycle, _ = planned({"predicate": [{"raw": raw}]}, [NODES[0], pod("p").cpu("1")], predicateVerb="predicate")
    assert bool(binds(cycle)) is placed
    assert placed or any("not here" in text for text in reasons(cycle))


@pytest.mark.parametrize(("raw", "name"), [('{"NodeScore": {"n2": 5, "n1": null}}', "n2"), ('{"nodescore": {"n1": 1}}', "n1")])
def test_scores_are_read_as_volcano_reads_them(raw: str, name: str) -> None:
    cycle, _ = planned({"prioritize": [{"raw": raw}]}, [*NODES, pod("p").cpu("1")], prioritizeVerb="prioritize")
    assert binds(cycle) == {"p": name}


@pytest.mark.parametrize("ignorable", [True, False])
def test_a_server_that_hangs(ignorable: bool) -> None:
    answers = {"predicate": [{"delayMs": 60_000}]}
    objects = [NODES[0], pod("p").cpu("1")]
    with extender(answers) as seen:
        given = policy(seen.url, predicateVerb="predicate", ignorable=ignorable)
        given["tiers"][0]["plugins"][2]["arguments"]["extender.httpTimeout"] = "100ms"
        cycle = navarch.plan(objects, policy=given).to_dict()["cycles"][0]
    assert bool(binds(cycle)) is ignorable
    assert ignorable or any("no answer within 0.1 s" in text for text in reasons(cycle))


def test_a_huge_answer_is_not_read() -> None:
    answers = {"predicate": [{"raw": "[" * (11 << 20)}]}
    cycle, _ = planned(answers, [NODES[0], pod("p").cpu("1")], predicateVerb="predicate")
    assert not binds(cycle) and any("larger than" in text for text in reasons(cycle))


def test_a_deeply_nested_answer_is_a_failure() -> None:
    answers = {"predicate": [{"raw": '{"x":' + "[" * 100_000 + "]" * 100_000 + "}"}]}
    cycle, _ = planned(answers, [NODES[0], pod("p").cpu("1")], predicateVerb="predicate")
    assert not binds(cycle)


def test_a_server_that_is_not_there_is_asked_a_few_times_only() -> None:
    objects = [*(node(f"n{number:02}").cpu("8") for number in range(30)), pod("p").cpu("1")]
    with extender({"predicate": [{"status": 500}]}) as seen:
        cycle = navarch.plan(objects, policy=policy(seen.url, predicateVerb="predicate")).to_dict()["cycles"][0]
    assert not binds(cycle)
    assert seen.count("predicate") < 30
    assert any("failed 5 times in a row" in text for text in reasons(cycle))


@pytest.mark.parametrize("ignorable", [True, False])
def test_a_job_starts_without_the_answer_only_where_failures_are_ignored(ignorable: bool) -> None:
    answers = {"jobReady": [{"status": 500}]}
    cycle, _ = planned(answers, [*NODES, pod("p").cpu("1"), QUEUE], jobReadyVerb="jobReady", ignorable=ignorable)
    assert bool(binds(cycle)) is ignorable


QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1},
         "status": {"state": "Open"}}  # fmt: skip


def test_a_failed_opening_refuses() -> None:
    answers = {"open": [{"status": 503}]}
    arguments = {"onSessionOpenVerb": "open", "predicateVerb": "predicate", "onSessionCloseVerb": "close"}
    cycle, seen = planned(answers, [*NODES, pod("p").cpu("1"), QUEUE], **arguments)
    assert not binds(cycle)
    assert seen.verbs() == ["open", "close"]
    assert "ExtenderFailed" in codes(cycle)


def test_a_code_without_a_message_refuses() -> None:
    answers = {"predicate": [{"body": {"code": 3}}]}
    cycle, _ = planned(answers, [*NODES, pod("p").cpu("1"), QUEUE], predicateVerb="predicate")
    assert not binds(cycle)


def test_scores_that_are_missing_may_be_ignored() -> None:
    cycle, _ = planned({}, [*NODES, pod("p").cpu("1"), QUEUE], prioritizeVerb="prioritize", ignorable=True)
    assert binds(cycle)


def test_scores_that_are_missing_refuse_with_a_reason() -> None:
    cycle, _ = planned(
        {"prioritize": [{"body": {"errorMessage": "cannot"}}]}, [*NODES, pod("p").cpu("1")], prioritizeVerb="prioritize"
    )
    assert not binds(cycle) and any("gave no scores: cannot" in text for text in reasons(cycle))


def test_a_placement_that_is_refused_is_taken_back_and_the_next_pod_goes_on() -> None:
    answers: Answers = {"allocate": [{"match": {"task.Name": "a"}, "body": {"errorMessage": "no licence"}}, {"body": {}}]}
    pods = [pod("a").cpu("1"), pod("b").cpu("2")]
    cycle, seen = planned(answers, [*NODES, *pods], allocateFuncVerb="allocate", deallocateFuncVerb="deallocate")
    assert list(binds(cycle)) == ["b"]
    assert any("refuses the placement: no licence" in text for text in reasons(cycle))
    told = [(verb, body["task"]["Name"]) for verb, body in seen.requests]
    assert told[:2] == [("allocate", "a"), ("deallocate", "a")] and ("allocate", "b") in told


def test_a_queue_that_has_its_share_waits() -> None:
    cycle, seen = planned({"over": [{"body": {"overused": True}}]}, [*NODES, pod("p").cpu("1")], queueOverusedVerb="over")
    assert not binds(cycle) and "QueueOverused" in codes(cycle)
    assert seen.count("over") == 1


def test_every_argument_of_volcano_is_declared_and_every_verb_is_read() -> None:
    declared = {argument.name for argument in Extender.arguments}
    verbs = ("onSessionOpen", "onSessionClose", "predicate", "prioritize", "preemptable", "reclaimable", "queueOverused",
             "jobEnqueueable", "jobEnqueued", "jobReady", "allocateFunc", "deallocateFunc")  # fmt: skip
    others = {f"extender.{name}" for name in ("urlPrefix", "httpTimeout", "ignorable", "managedResources")}
    assert declared == others | {f"extender.{verb}Verb" for verb in verbs}


def test_managed_resources_must_be_a_list() -> None:
    with pytest.raises(PolicyError, match="expected a list"):
        read_policy(policy("http://x", managedResources="nvidia.com/gpu"), installed())


def test_explain_names_an_extender_that_it_does_not_ask() -> None:
    with extender({}) as seen:
        asked = policy(seen.url, predicateVerb="predicate", jobReadyVerb="ready", onSessionOpenVerb="open")
        found = navarch.explain([*NODES, pod("p").cpu("1")], "pod/p", asked, seconds=600)
    assert found.notes == [f"extender {seen.url} is not asked here: cycles are decided as if it had no objection"]
    assert found.cause.code == "Starts" and not seen.requests


def test_explain_asks_on_request() -> None:
    answers: Answers = {"predicate": [{"match": {"node.Name": "n1"}, "body": {"status": "not here", "code": 3}}, {"body": {}}]}
    with extender(answers) as seen:
        asked = policy(seen.url, predicateVerb="predicate")
        found = navarch.explain([*NODES, pod("p").cpu("1")], "pod/p", asked, seconds=600, ask_extenders=True)
    assert found.cause.code == "Starts" and not found.notes
    assert seen.count("predicate") >= 2


def test_a_simulation_names_an_extender_that_it_does_not_ask() -> None:
    jobs = [TraceJob(name="j", submit=0, duration=60, pods=(PodSet(gpus=1),))]
    given = policy("http://x", predicateVerb="predicate")
    (run,) = navarch.simulate(jobs, "a=1x8gpu", [given]).runs
    assert [each for each in run.warnings if "extender" in each] == [
        "extender http://x is not asked here: cycles are decided as if it had no objection"
    ]


def test_bodies_have_what_annotations_say() -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "g",
            "namespace": "default",
            "annotations": {
                "volcano.sh/sla-waiting-time": "soon",
                "sla-waiting-time": "1m30s",
                "volcano.sh/preemptable": "true",
                "volcano.sh/jdb-min-available": "2",
                "volcano.sh/jdb-max-unavailable": "1",
            },
        },
        "spec": {"minMember": 1, "queue": "default"},
    }
    one = pod("p").cpu("1").annotate("scheduling.k8s.io/group-name", "g").annotate("volcano.sh/revocable-zone", "zone-a")
    one = one.annotate("volcano.sh/topology-decision", '{"numa": {"0": {"cpu": "1"}}}')
    _, seen = planned({}, [*NODES, group, one], predicateVerb="predicate", jobReadyVerb="ready")
    job = next(body["job"] for verb, body in seen.requests if verb == "ready")
    assert (job["WaitingTime"], job["RevocableZone"]) == (90_000_000_000, "*")
    assert job["Budget"] == {"MinAvailable": "2", "MaxUnavailable": ""}
    task = next(body["task"] for verb, body in seen.requests if verb == "predicate")
    assert (task["RevocableZone"], task["NumaInfo"]["ResMap"]) == ("", {"0": {"cpu": "1"}})
