"""Which namespaces may use a queue, and what the others are told."""

from __future__ import annotations

from typing import Any

import pytest

import navarch
from navarch.engine.policy import PolicyError
from navarch.testing.builders import namespace, node, pod, pod_group, queue


def outcome(*objects: Any, policy: Any = "navarch") -> tuple[list[str], dict[str, tuple[str, str]]]:
    found = navarch.plan([node("n").cpu("8"), *objects], policy=policy).records[0]
    told = {job.job: (job.reasons[0].code, job.reasons[0].message) for job in found.jobs if job.reasons}
    return sorted(bind.job for bind in found.binds), told


def gang(space: str, name: str = "vision") -> list[Any]:
    return [pod_group("g", namespace=space).queue(name), pod("g-0", space).cpu(1).in_group("g")]


def vision(**annotations: str) -> Any:
    made = queue("vision").state("Open")
    for key, value in annotations.items():
        made.annotate(f"navarch.io/{key.replace('_', '-')}", value)
    return made


def test_a_queue_that_says_nothing_is_open() -> None:
    assert outcome(vision(), *gang("a"), *gang("b"))[0] == ["a/g", "b/g"]


def test_others_than_the_named_are_refused() -> None:
    bound, told = outcome(vision(namespaces="a, c"), *gang("a"), *gang("b"))
    assert bound == ["a/g"]
    assert told == {"b/g": ("QueueNotPermitted", "namespace b may not use queue vision: it takes jobs of namespaces a, c")}


def test_labels_of_the_namespace_are_enough() -> None:
    spaces = [namespace("a").label("team", "vision").label("env", "prod"), namespace("b").label("team", "vision")]
    chosen = vision(namespace_selector="team=vision, env=prod", namespaces="d")
    bound, told = outcome(chosen, *spaces, *gang("a"), *gang("b"), *gang("d"))
    assert bound == ["a/g", "d/g"]
    assert told["b/g"][1].endswith("it takes jobs of namespaces d and of namespaces with labels env=prod, team=vision")


def test_a_queue_asks_its_parent() -> None:
    objects = [vision(namespaces="a"), queue("below").parent("vision").state("Open")]
    bound, told = outcome(*objects, *gang("a", "below"), *gang("b", "below"))
    assert bound == ["a/g"]
    assert "may not use queue below" in told["b/g"][1]


@pytest.mark.parametrize("text", ["team", "", "=x", "team in (a)", "team=a b"])
def test_an_annotation_that_cannot_be_read_closes_the_queue(text: str) -> None:
    bound, told = outcome(vision(namespace_selector=text, namespaces="a"), *gang("a"))
    assert bound == []
    assert "its annotation navarch.io/namespace-selector has" in told["a/g"][1]


@pytest.mark.parametrize("actions", ["allocate", "enqueue, allocate, backfill, preempt, reclaim"])
def test_closed_unless_named(actions: str) -> None:
    plugins = [{"name": "gang"}, {"name": "predicates"}, {"name": "queueaccess", "arguments": {"unnamedQueues": "closed"}}]
    policy = {"actions": actions, "tiers": [{"plugins": plugins}]}
    mine = queue("mine").annotate("navarch.io/namespaces", "a")
    bound, told = outcome(vision(), mine, *gang("a", "mine"), *gang("b"), policy=policy)
    assert bound == ["a/g"]
    assert told["b/g"] == ("QueueNotPermitted", "namespace b may not use queue vision: it takes jobs of no namespace")


def test_an_unknown_choice_is_a_mistake() -> None:
    plugins = [{"name": "queueaccess", "arguments": {"unnamedQueues": "ajar"}}]
    with pytest.raises(PolicyError, match="unnamedQueues"):
        outcome(policy={"actions": "allocate", "tiers": [{"plugins": plugins}]})


def test_pods_that_run_are_left_alone() -> None:
    runs = [pod_group("g", namespace="b").queue("vision"), pod("g-0", "b").cpu(1).in_group("g").on("n")]
    found = navarch.plan([node("n").cpu("8"), vision(namespaces="a"), *runs], policy="navarch").records[0]
    assert not found.evictions
