"""Resource-strategy-fit: packing, spreading, scarce resources and proportions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.worlds.plugin_session import GPU, World, job_of, place

from navarch.engine.session import Session
from navarch.plugins.volcano.resource_strategy_fit import (
    OWN_TYPE,
    OWN_WEIGHTS,
    ResourceStrategyFit,
    own_strategies,
    strategies,
    strategy_for,
)

GPU_PACKED = {GPU: {"type": "MostAllocated", "weight": 2}, "cpu": {"type": "LeastAllocated", "weight": 1}}


def scores(session: Session) -> dict[str, float]:
    view = session.view(session.class_of(job_of(session, "j").tasks[0]))
    totals = view.totals(np.ones(len(session.nodes), dtype=bool))
    return dict(zip(session.nodes.names, totals.tolist()))


def run(world: World, **arguments: Any) -> Session:
    return world.queue("q").session(ResourceStrategyFit, arguments=arguments)


def pods(world: World, hints: tuple[tuple[str, str], ...] = (), **given: Any) -> World:
    return world.job("j").pods("j", 2, hints=hints, **given)


def test_each_resource_by_its_own_strategy() -> None:
    world = World().node("a", cpu=4, memory="8Gi", gpu=4).node("b", cpu=4, memory="8Gi", gpu=8).node("c", cpu=8, memory="8Gi")
    session = run(pods(world, cpu=1, gpu=2), resources=GPU_PACKED)
    assert scores(session) == {
        "a": pytest.approx(1000 * (2 * 2 / 4 + 3 / 4) / 3),
        "b": pytest.approx(1000 * (2 * 2 / 8 + 3 / 4) / 3),
        "c": pytest.approx(1000 * (7 / 8) / 3),
    }


def test_without_arguments_cpu_and_memory_are_spread() -> None:
    world = World().node("a", cpu=4, memory="8Gi").node("b", cpu=8, memory="8Gi")
    assert scores(run(pods(world, cpu=2, memory="4Gi"))) == {"a": 500.0, "b": 625.0}


def test_weight_zero_switches_the_score_off() -> None:
    assert run(pods(World().node("a", cpu=4), cpu=1), resourceStrategyFitWeight=0).scorers == []


def test_overflow_scores_nothing() -> None:
    world = World().node("a", cpu=4, memory="8Gi").job("old").pods("old", cpu=4, node="a")
    assert scores(run(pods(world, cpu=1))) == {"a": 0.0}


def test_exact_names_come_before_the_longest_beginning() -> None:
    known = strategies({"nvidia.com/*": {"weight": 2}, "nvidia.com/mig*": {"weight": 3}, GPU: {"weight": 4}})
    assert [strategy_for(name, known) for name in (GPU, "nvidia.com/mig-1g", "nvidia.com/x", "amd.com/x")] == [
        (False, 4),
        (False, 3),
        (False, 2),
        None,
    ]


def test_nonsense_in_the_strategies_falls_back_as_the_peer_does() -> None:
    assert strategies({"cpu": {"type": "Sideways", "weight": 0}, "a*b": {"weight": 9}}) == {"cpu": (False, 1)}


def test_a_pod_may_bring_its_own_strategy() -> None:
    hints = ((OWN_TYPE, "MostAllocated"), (OWN_WEIGHTS, json.dumps({"cpu": 5})))
    world = World().node("a", cpu=4, memory="8Gi").node("b", cpu=8, memory="8Gi")
    assert scores(run(pods(world, hints, cpu=2), resources=GPU_PACKED)) == {"a": 500.0, "b": 250.0}


@pytest.mark.parametrize(
    "hints",
    [
        {OWN_TYPE: "MostAllocated"},
        {OWN_WEIGHTS: '{"cpu": 1}'},
        {OWN_TYPE: "Most", OWN_WEIGHTS: '{"cpu": 1}'},
        {OWN_TYPE: "MostAllocated", OWN_WEIGHTS: "{"},
        {OWN_TYPE: "MostAllocated", OWN_WEIGHTS: "[1]"},
    ],
)
def test_half_a_strategy_is_none(hints: dict[str, str]) -> None:
    assert own_strategies(hints, {"cpu": (True, 1)}) == {}


def test_plain_pods_are_kept_off_scarce_resources() -> None:
    sra = {"enable": True, "resources": f"{GPU}, x.com/a", "weight": 5, "resourceWeight": {GPU: 3, "x.com/a": 2}}
    both: dict[str, Any] = {"cpu": 8, "gpu": 1, "x.com/a": 1}
    world = World().node("plain", cpu=8).node("gpu", cpu=8, gpu=1).node("both", **both)
    assert scores(run(pods(world, cpu=1), resourceStrategyFitWeight=0, sra=sra)) == {"plain": 500, "gpu": 200, "both": 0}
    world = World().node("plain", cpu=8).node("gpu", cpu=8, gpu=1)
    assert scores(run(pods(world, gpu=1), resourceStrategyFitWeight=0, sra={**sra, "resources": GPU})) == {"plain": 0, "gpu": 0}


def test_enough_cpu_and_memory_stay_beside_idle_devices() -> None:
    kept = {"enable": True, "resources": GPU, "resourceProportion": {f"{GPU}.cpu": 2, f"{GPU}.memory": 1}}
    world = World().node("gpu", cpu=8, memory="100G", gpu=3).node("plain", cpu=4, memory="8G")
    session = run(pods(world, cpu=1), proportional=kept)
    view = session.view(session.class_of(job_of(session, "j").tasks[0]))
    assert view.feasible().tolist() == [True, True]
    place(session, "j", "gpu", 2)
    assert view.feasible().tolist() == [False, True], "6 cpu are left for 3 idle devices: none to spare"
    assert view.explain().nodes == {f"proportional of resource {GPU} check failed": 1}


def test_memory_is_kept_too_and_pods_with_the_device_are_free() -> None:
    kept = {"enable": True, "resources": GPU, "resourceProportion": {f"{GPU}.cpu": 0, f"{GPU}.memory": 10}}
    for given, passes in (({"memory": "11G"}, False), ({"memory": "10G"}, True), ({"memory": "20G", "gpu": 1}, True)):
        session = run(pods(World().node("n", cpu=8, memory="40G", gpu=3), **given), proportional=kept)
        assert session.view(session.class_of(job_of(session, "j").tasks[0])).feasible().tolist() == [passes]
