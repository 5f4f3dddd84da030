"""Groups of `scheduling.k8s.io` on random clusters, under kube-scheduler's rules and others: whole or not at all, in one domain, and
preempted as their disruption mode says."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import navarch
from navarch.testing.builders import node, pod

CYCLES = 3


class World:
    """A few nodes in racks, groups with and without constraints, some of them running, and single pods."""

    def __init__(self, rng: random.Random, *, composites: bool) -> None:
        self.objects: list[Any] = []
        self.rack = {f"n{i}": rng.choice("ab") for i in range(rng.randint(1, 5))}
        self.free = {name: rng.randint(1, 4) for name in self.rack}
        self.room = dict(self.free)
        for name, rack in self.rack.items():
            self.objects.append(node(name).cpu(str(self.free[name])).label("rack", rack))
        self.groups: dict[str, dict[str, Any]] = {}
        self.composites: dict[str, int] = {}
        self.cpu: dict[str, int] = {}
        self.priority: dict[str, int] = {}
        self.held: dict[str, str] = {}
        if composites and rng.random() < 0.6:
            self.composites["both"] = rng.randint(1, 2)
            spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minGroupCount": self.composites["both"]}}, "priority": 5}
            meta = {"name": "both", "namespace": "default"}
            kind = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup"}
            self.objects.append({**kind, "metadata": meta, "spec": spec})
        for number in range(rng.randint(1, 5)):
            self._group(f"g{number}", rng)
        for number in range(rng.randint(0, 3)):
            self._pod(f"single-{number}", "", rng.randint(0, 9), rng.randint(1, 2), rng, runs=rng.random() < 0.5)

    def _group(self, name: str, rng: random.Random) -> None:
        count = rng.randint(1, 4)
        priority = rng.randint(0, 9)
        spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": rng.randint(1, count)}}, "priority": priority}
        if rng.random() < 0.4:
            spec["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
        if rng.random() < 0.3:
            spec["disruptionMode"] = {"all": {}}
        runs = rng.random() < 0.4
        if self.composites and not runs and rng.random() < 0.6:
            spec["parentCompositePodGroupName"] = "both"
        meta = {"name": name, "namespace": "default", "uid": name}
        self.objects.append({"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "PodGroup", "metadata": meta, "spec": spec})
        self.groups[name] = spec
        cpu, rack = rng.randint(1, 2), rng.choice("ab") if "schedulingConstraints" in spec else ""
        for i in range(count):
            self._pod(f"{name}-{i}", name, priority, cpu, rng, runs=runs, rack=rack)

    def _pod(self, name: str, group: str, priority: int, cpu: int, rng: random.Random, *, runs: bool, rack: str = "") -> None:
        made = pod(name).cpu(str(cpu)).priority(priority)
        if group:
            made["spec"]["schedulingGroup"] = {"podGroupName": group}
        places = [each for each in sorted(self.free) if self.free[each] >= cpu and (not rack or self.rack[each] == rack)]
        if runs and places:
            where = rng.choice(places)
            self.free[where] -= cpu
            made = made.on(where)
            if rng.random() < 0.15:
                made = made.deleting()  # it counts for nothing any more, but for the room that it takes
                self.objects.append(made)
                return
            self.held[name] = where
        self.cpu[name], self.priority[name] = cpu, priority
        self.objects.append(made)

    def members(self, group: str) -> list[str]:
        return [name for name in self.cpu if name.rpartition("-")[0] == group]


def check(world: World, plan: navarch.Plan) -> None:
    held = dict(world.held)
    for record in plan.records:
        gone = {each.pod.removeprefix("default/") for each in record.evictions}
        placed = {each.pod.removeprefix("default/"): each.node for each in record.binds}
        victims_as_a_whole(world, held, gone)
        for group, spec in world.groups.items():
            mine = [name for name in world.members(group) if name in placed]
            if not mine:
                continue
            there = [name for name in world.members(group) if name in placed or (name in held and name not in gone)]
            assert len(there) >= spec["schedulingPolicy"]["gang"]["minCount"], (group, there)
            if "schedulingConstraints" in spec:
                assert len({world.rack[placed.get(name) or held[name]] for name in there}) == 1, (group, there)
        held = {name: where for name, where in held.items() if name not in gone} | placed
        used = Counter(dict.fromkeys(world.room, 0))
        for name, where in held.items():
            used[where] += world.cpu[name]
        assert all(used[name] <= room for name, room in world.room.items())
        composites_start_together(world, held, placed, gone)


def victims_as_a_whole(world: World, held: dict[str, str], gone: set[str]) -> None:
    for group, spec in world.groups.items():
        running = {name for name in world.members(group) if name in held}
        if "disruptionMode" in spec and running & gone:
            assert running <= gone, (group, running, gone)


def composites_start_together(world: World, held: dict[str, str], placed: dict[str, str], gone: set[str]) -> None:
    for name, least in world.composites.items():
        children = [group for group, spec in world.groups.items() if spec.get("parentCompositePodGroupName") == name]
        started = [group for group in children if any(each in held for each in world.members(group))]
        pods = [each for group in children for each in world.members(group)]
        if any(each in placed for each in pods) and not any(each in gone for each in pods):
            assert len(started) >= least, (children, started, placed, held)


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_groups_under_kube_schedulers_rules(rng: random.Random) -> None:
    world = World(rng, composites=True)
    check(world, navarch.plan(world.objects, policy="kube-scheduler", cycles=CYCLES, now=1000.0))


@pytest.mark.parametrize("policy", ["navarch", "volcano"])
@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_groups_under_other_policies_keep_to_their_domain(policy: str, rng: random.Random) -> None:
    world = World(rng, composites=False)
    plan = navarch.plan(world.objects, policy=policy, cycles=CYCLES, now=1000.0)
    held = dict(world.held)
    for record in plan.records:
        held = {name: where for name, where in held.items() if f"default/{name}" not in {each.pod for each in record.evictions}}
        placed = {each.pod.removeprefix("default/"): each.node for each in record.binds}
        for group, spec in world.groups.items():
            if "schedulingConstraints" in spec and any(name in placed for name in world.members(group)):
                where = {world.rack[placed.get(name) or held[name]] for name in world.members(group) if name in placed or name in held}
                assert len(where) == 1, (group, where)
        held |= placed
