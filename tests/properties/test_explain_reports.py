"""What is said of placed pods, nodes and queues holds when it is tried through `navarch.plan`, on random clusters."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
from tests.worlds import explained_mixed_clusters as mixed
from tests.worlds import explained_shaped_clusters as shaped
from tests.worlds.explained_clusters import POLICIES, World
from tests.worlds.explained_reports_judge import node_complaints, placement_complaints, queue_complaints

import navarch
from navarch.explanation.explain import reading
from navarch.explanation.node_report import explain_node
from navarch.explanation.queues import explain_queue

SEEDS = int(os.environ.get("NAVARCH_EXPLAIN_SEEDS", "1"))
"""Clusters for each policy; `NAVARCH_EXPLAIN_SEEDS=200` looks further."""
FIRST = int(os.environ.get("NAVARCH_EXPLAIN_FIRST", "0"))
NOW = 1767258000.0
WORLDS = [(World, policy, rules) for policy, rules in POLICIES.items()]
WORLDS += [(mixed.World, policy, rules) for policy, rules in mixed.POLICIES.items()]  # type: ignore[misc]
WORLDS += [(shaped.World, policy, policy) for policy in shaped.PRESETS]  # type: ignore[misc]
NAMES = [f"{world.__module__.rpartition('.')[2]}-{policy}" for world, policy, _ in WORLDS]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize(("world", "policy", "rules"), WORLDS, ids=NAMES)
def test_what_is_said_of_placed_pods_holds(world: Any, policy: str, rules: Any, seed: int) -> None:
    objects = world(seed + len(policy), policy).objects
    jobs = sorted({str(each["metadata"]["name"]).partition("-")[0] for each in objects if each["kind"] == "Pod"})
    for job in [each for each in jobs if each.startswith("r")][: 2 if SEEDS < 3 else 9]:
        try:
            answer = navarch.explain(copy.deepcopy(objects), job, rules, NOW, trials=3, seconds=600).to_dict()
        except LookupError:
            continue  # its name is that of jobs in two namespaces, or of none
        for placement in answer["placements"][:2]:
            assert placement_complaints(objects, placement, rules, NOW) == []


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
@pytest.mark.parametrize(("world", "policy", "rules"), WORLDS, ids=NAMES)
def test_what_is_said_of_nodes_holds(world: Any, policy: str, rules: Any, seed: int) -> None:
    objects = world(seed + len(policy), policy).objects
    names = sorted(str(each["metadata"]["name"]) for each in objects if each["kind"] == "Node")
    run = reading(copy.deepcopy(objects), rules, NOW).run
    for name in names[: 2 if SEEDS < 3 else 9]:
        assert node_complaints(objects, explain_node(run, name).to_dict(), rules, NOW) == []


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 2 * SEEDS))
@pytest.mark.parametrize(("world", "policy", "rules"), WORLDS, ids=NAMES)
def test_what_is_said_of_queues_holds(world: Any, policy: str, rules: Any, seed: int) -> None:
    objects = world(seed + len(policy), policy).objects
    decided = navarch.plan(copy.deepcopy(objects), rules, 1, now=NOW).to_dict()
    cluster = reading(copy.deepcopy(objects), rules, NOW).run.cluster
    answers = {name: explain_queue(reading(copy.deepcopy(objects), rules, NOW).run, name).to_dict() for name in sorted(cluster.queues)}
    parents = {name: queue.parent for name, queue in cluster.queues.items()}
    assert queue_complaints(answers, decided, parents) == []
