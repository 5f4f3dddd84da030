"""Placements by load and victims of rescheduling on random clusters equal those of a slow reference."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.node_load import Machine, Rule, Worker, moved, placed

import navarch

NOW = 10_000.0
QUALITIES = ("BestEffort", "Burstable", "Guaranteed")
MIB = 1 << 20


def machines_of(draw: Random, count: int) -> list[Machine]:
    return [
        Machine(
            f"n{number}",
            draw.choice((4000, 8000, 10000)),
            draw.choice((8192, 16384)) * MIB,
            (draw.choice((5, 20, 37.5, 50, 61.25, 70, 90)), draw.choice((5, 20, 33, 50, 70, 85))),
            fresh=draw.random() < 0.9,
            cordoned=False,
        )
        for number in range(count)
    ]


def manifests(machines: list[Machine], workers: list[Worker], minimums: dict[str, int]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for machine in machines:
        has = {"cpu": f"{machine.cpu}m", "memory": str(machine.memory), "pods": "110"}
        spec = {"unschedulable": True} if machine.cordoned else {}
        out.append(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": machine.name}, "spec": spec,
             "status": {"allocatable": has, "capacity": has}}
        )  # fmt: skip
    for gang, least in minimums.items():
        out.append(
            {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": gang, "namespace": "default"},
             "spec": {"minMember": least, "queue": "default"}, "status": {"phase": "Inqueue"}}
        )  # fmt: skip
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
    out.append({**queue, "status": {"state": "Open"}})
    out += [_pod(worker) for worker in workers]
    return out


def _pod(worker: Worker) -> dict[str, Any]:
    asked = {"cpu": f"{worker.cpu}m", "memory": str(worker.memory)} if worker.cpu or worker.memory else {}
    resources: dict[str, Any] = {"requests": asked}
    if worker.quality == 2:
        resources["limits"] = asked
    elif any(worker.limits):
        resources["limits"] = {"cpu": f"{worker.limits[0]}m", "memory": str(worker.limits[1])}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i", "resources": resources}], "schedulerName": "volcano"}
    status: dict[str, Any] = {"phase": "Pending"}
    if worker.node:
        spec["nodeName"] = worker.node
        started = "1970-01-01T02:46:35Z" if worker.young else "1970-01-01T00:01:00Z"
        status = {"phase": "Running", "startTime": started}
    if worker.priority is not None:
        spec["priority"] = worker.priority
    metadata = {"name": worker.name, "namespace": "default", "annotations": {"scheduling.k8s.io/group-name": worker.gang}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def metrics(machines: list[Machine]) -> dict[str, Any]:
    return {m.name: {"cpu": {"10m": m.load[0]}, "memory": {"10m": m.load[1]}, "ageSeconds": 3 if m.fresh else 1000} for m in machines}


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_placements_by_load(seed: int) -> None:
    draw = Random(seed)
    machines = machines_of(draw, draw.randint(2, 6))
    rule = Rule(
        weight=draw.choice((1, 5)),
        weights=draw.choice(((1, 1), (2, 1), (0, 1), (1, 0))),
        thresholds=(draw.choice((60, 80, 95)), draw.choice((60, 80))),
        request_ratio=draw.choice((0.0, 0.7, 1.0)),
        burst_ratio=draw.choice((0.0, 0.5)),
        risk_threshold=draw.choice((0.2, 0.6)),
        risk_factor=draw.choice((1.0, 1.5, 3.0)),
    )
    kinds = [(draw.choice((300, 500, 1100)), draw.choice((256, 1024)) * MIB) for _ in range(2)]
    workers: list[Worker] = []
    for number in range(draw.randint(0, 4)):
        cpu, memory = draw.choice((*kinds, (0, 0)))
        at, young = draw.choice(machines).name, draw.random() < 0.6
        workers.append(Worker(f"r-{number}", cpu, memory, node=at, young=young, gang="running"))
    for number in range(draw.randint(1, 9)):
        cpu, memory = kinds[0] if draw.random() < 0.8 else kinds[1]
        limits = (2 * cpu, 3 * memory) if draw.random() < 0.5 else (0, 0)
        workers.append(Worker(f"w-{number}", cpu, memory, limits=limits, gang="new"))
    policy = {
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "gang"}, {"name": "predicates"}, {"name": "usage", "arguments": {
            "usage.weight": rule.weight, "cpu.weight": rule.weights[0], "memory.weight": rule.weights[1],
            "thresholds": {"cpu": rule.thresholds[0], "mem": rule.thresholds[1]},
            "estimator": {"request_ratio": rule.request_ratio, "burst_ratio": rule.burst_ratio,
                          "risk_threshold": rule.risk_threshold, "risk_factor": rule.risk_factor}}}]}],
    }  # fmt: skip
    objects = manifests(machines, workers, {"running": 1, "new": 1})
    cycle = navarch.plan(objects, policy=policy, now=NOW, metrics=metrics(machines)).to_dict()["cycles"][0]
    found = {each["pod"].removeprefix("default/"): each["node"] for each in cycle["binds"]}
    assert found == placed(machines, workers, rule)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_victims_of_rescheduling(seed: int) -> None:
    draw = Random(seed)
    machines = machines_of(draw, draw.randint(2, 6))
    for machine in machines:
        machine.cordoned = draw.random() < 0.15
    loads = {machine.name: sum(machine.load) for machine in machines}
    if len(set(loads.values())) < len(loads):
        return  # Volcano takes equally loaded nodes in any order.
    low, target = (draw.choice((30, 40)), draw.choice((30, 40))), (draw.choice((50, 60)), draw.choice((45, 60)))
    minimums = {"a": draw.choice((1, 2)), "b": draw.choice((1, 3))}
    workers = []
    for number in range(draw.randint(2, 14)):
        quality = draw.choice((0, 1, 2))
        cpu, memory = (draw.choice((200, 500, 1000)), draw.choice((256, 512, 1024)) * MIB) if quality else (0, 0)
        gang, priority = draw.choice(("a", "b")), draw.choice((None, -5, 0, 10))
        at = draw.choice(machines).name
        workers.append(Worker(f"w-{number:02}", cpu, memory, node=at, priority=priority, quality=quality, gang=gang))
    params = {"thresholds": dict(zip(("cpu", "memory"), low)), "targetThresholds": dict(zip(("cpu", "memory"), target))}
    arguments = {"metricsPeriod": "10m", "strategies": [{"name": "lowNodeUtilization", "params": params}]}
    tiers = [{"plugins": [{"name": "gang"}, {"name": "rescheduling", "arguments": arguments}]}]
    policy = {"actions": "shuffle", "tiers": tiers}
    objects = manifests(machines, workers, minimums)
    cycle = navarch.plan(objects, policy=policy, now=NOW, metrics=metrics(machines)).to_dict()["cycles"][0]
    found = {each["pod"].removeprefix("default/") for each in cycle["evictions"]}
    assert found == moved(machines, workers, low, target, minimums)
