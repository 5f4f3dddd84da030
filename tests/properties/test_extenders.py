"""Extenders on random clusters: one that agrees with everything changes nothing, and a filter decides as a label does."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.extender_server import Answers, extender

import navarch
from navarch.testing.builders import node, pod, pod_group, queue

SEEDS = st.integers(0, 2**32 - 1)
AGREES: Answers = {
    "prioritize": [{"body": {"nodeScore": {}}}],
    "jobReady": [{"body": {"status": True}}],
    "jobEnqueueable": [{"body": {"status": 1}}],
}
VERBS = ("predicate", "prioritize", "jobReady", "jobEnqueueable", "queueOverused", "onSessionOpen", "onSessionClose", "allocateFunc")


def cluster(seed: int, refused: frozenset[str] = frozenset()) -> list[Any]:
    """Nodes, gangs and running pods. Nodes in `refused` are cordoned."""
    draw = Random(seed)
    objects: list[Any] = [queue("default").state("Open")]
    nodes = [f"n{number}" for number in range(draw.randint(2, 5))]
    for name in nodes:
        made = node(name).cpu(draw.choice((2, 4, 8)))
        objects.append(made.cordoned() if name in refused else made)
    for number in range(draw.randint(1, 4)):
        size = draw.randint(1, 4)
        objects.append(pod_group(f"g{number}", draw.randint(1, size)).queue("default").phase("Pending").min_resources(cpu=1))
        for member in range(size):
            made_pod = pod(f"g{number}-w-{member}").cpu(draw.choice((1, 2))).in_group(f"g{number}")
            objects.append(made_pod.on(draw.choice(nodes)) if draw.random() < 0.2 else made_pod)
    return objects


def decided(objects: list[Any], compat: str, plugins: list[dict[str, Any]]) -> Any:
    tiers = [{"plugins": [{"name": "gang"}, {"name": "predicates"}, {"name": "nodeorder"}, *plugins]}]
    policy = {"actions": "enqueue, allocate, backfill", "tiers": tiers, "compat": compat}
    cycle = navarch.plan(objects, policy=policy).to_dict()["cycles"][0]
    return cycle["binds"], cycle["nominations"], [(job["job"], job["phase"]) for job in cycle["jobs"]]


def asking(url: str, *verbs: str) -> list[dict[str, Any]]:
    arguments = {"extender.urlPrefix": url, "extender.httpTimeout": "60s", **{f"extender.{verb}Verb": verb for verb in verbs}}
    return [{"name": "extender", "arguments": arguments}]


@pytest.mark.parametrize("compat", ["strict", "volcano"])
@given(SEEDS)
@settings(max_examples=8, deadline=None)
def test_an_extender_that_agrees_changes_nothing(compat: str, seed: int) -> None:
    objects = cluster(seed)
    with extender(AGREES) as seen:
        assert decided(objects, compat, asking(seen.url, *VERBS)) == decided(objects, compat, [])


@pytest.mark.parametrize("compat", ["strict", "volcano"])
@given(SEEDS)
@settings(max_examples=8, deadline=None)
def test_a_node_that_an_extender_refuses_is_as_good_as_cordoned(compat: str, seed: int) -> None:
    answers: Answers = {"predicate": [{"match": {"node.Name": "n1"}, "body": {"status": "no", "code": 3}}]}
    with extender(answers) as seen:
        found = decided(cluster(seed), compat, asking(seen.url, "predicate"))
    assert found[0] == decided(cluster(seed, frozenset({"n1"})), compat, [])[0]
