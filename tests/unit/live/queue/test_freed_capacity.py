"""One pod ends and makes room for many equal jobs: all of them start, without the help of back-off."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.volcano.podgroups import PodGroup, read_pod_group
from navarch.engine.cycle import decide
from navarch.engine.policy import preset
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.live.core import LiveCore
from navarch.live.instructions import BindPod, Instruction, StartCycle
from navarch.model.resources import requests_from
from navarch.model.spec import NodeSpec

REGISTRY = installed()
POLICY = preset("navarch", REGISTRY.catalogue())
SETTINGS = settings_for(POLICY, ("navarch",), False)
AWAY_FROM_WORK = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "work"}}}
        ]
    }
}


class World:
    """The parts of the live scheduler between what a watch shows and what is written."""

    def __init__(self) -> None:
        self.bound: list[str] = []
        self._again = False
        self.core = LiveCore(SETTINGS, self._carry_out)
        self.scheduling_queue, self.cache = self.core.queue, self.core.cache
        allocatable = requests_from({"cpu": 100, "nvidia.com/gpu": 8, "pods": 110})
        self.cache.put(NodeSpec("n", labels={"kubernetes.io/hostname": "n"}, allocatable=allocatable))

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case BindPod(bind=bind):
                self.bound.append(bind.name)
            case StartCycle():
                self._again = True

    def cycles(self) -> int:
        """Run cycles until one activates no further job; returns how many ran."""
        for number in range(1, 20):
            cycle = self.core.decide(POLICY, REGISTRY, 1e9)
            self._again = False
            self.core.commit(cycle.record, 0.0)
            if not self._again:
                return number
        raise AssertionError("cycles without end")

    def would_bind(self) -> list[str]:
        """The pods that a cycle with all jobs would bind."""
        cluster, asleep = self.cache.cluster, self.scheduling_queue.inactive()
        for key in asleep:
            cluster.jobs.hold(key, False)
        record = decide(cluster.snapshot(), POLICY, REGISTRY, 1e9)
        for key in asleep:
            cluster.jobs.hold(key, True)
        return [bind.pod for bind in record.binds]

    def put(self, name: str, requests: dict[str, str], *, node: str = "", group: str = "", app: str = "", **spec: Any) -> None:
        metadata: dict[str, Any] = {"namespace": "ns", "name": name, "uid": name, "labels": {"app": app, "pod-name": name}}
        if group:
            metadata["annotations"] = {"scheduling.k8s.io/group-name": group}
        container = {"name": "c", "resources": {"requests": requests, "limits": requests}}
        spec |= {"schedulerName": "navarch", "nodeName": node, "containers": [container]}
        status = {"phase": "Running" if node else "Pending"}
        self.cache.put_pod(from_manifest({"metadata": metadata, "spec": spec, "status": status}, Pod))

    def gang(self, name: str, *pods: dict[str, str]) -> None:
        manifest = {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": {"minMember": len(pods)}}
        self.cache.put(read_pod_group(from_manifest(manifest, PodGroup), SETTINGS))
        for number, requests in enumerate(pods):
            self.put(f"{name}-{number}", requests, group=name)


def test_jobs_kept_away_by_anti_affinity_start_when_the_pod_ends() -> None:
    world = World()
    world.put("guard", {"cpu": "10m"}, node="n", affinity=AWAY_FROM_WORK)
    names = [f"work-{number:02d}" for number in range(40)]
    for name in names:
        world.put(name, {"cpu": "1"}, app="work")
    world.cycles()
    assert world.bound == []
    assert len(world.scheduling_queue) == 40
    world.cache.remove_pod("guard")
    assert world.cycles() <= 6
    assert sorted(world.bound) == names


def test_gangs_whose_pods_ask_for_different_things_all_start_in_the_place_of_one_pod() -> None:
    world = World()
    world.put("large", {"cpu": "1", "nvidia.com/gpu": "8"}, node="n")
    for number in range(20):
        world.gang(f"g{number}", {"cpu": "1"}, {"cpu": "1", "nvidia.com/gpu": "1"})
    world.cycles()
    assert world.bound == []
    world.cache.remove_pod("large")
    assert world.cycles() == 1
    assert len(world.bound) == 16


def test_a_rule_about_other_labels_does_not_divide_a_class() -> None:
    world = World()
    world.put("large", {"cpu": "100"}, node="n", affinity=AWAY_FROM_WORK)
    for number in range(10):
        world.put(f"p{number}", {"cpu": "1"}, app="a" if number % 2 else "b")
    world.cycles()
    assert [len(each) for each in world.scheduling_queue.classes] == [5, 5]


def test_after_a_job_of_a_class_fails_the_others_stay_inactive() -> None:
    world = World()
    world.put("large", {"cpu": "99"}, node="n")
    world.put("small", {"cpu": "1"}, node="n")
    for number in range(40):
        world.put(f"work-{number:02d}", {"cpu": "1"})
    world.cycles()
    world.cache.remove_pod("small")
    assert world.cycles() == 1
    assert world.bound == ["work-00"]
    assert len(world.scheduling_queue) == 39


def test_pods_of_another_shape_are_not_taken_for_those_that_had_its_number() -> None:
    """A pod that waited and is gone leaves the number of its shape to the next, and not the equivalence class."""
    world = World()
    world.put("large", {"cpu": "100"}, node="n")
    shapes = world.cache.cluster.tasks.shape
    world.gang("before", {"cpu": "90"})
    world.cycles()
    number = shapes[world.cache.cluster.tasks.rows.of["before-0"]]
    world.cache.remove_pod("before-0")
    world.gang("after", {"cpu": "1"})
    assert shapes[world.cache.cluster.tasks.rows.of["after-0"]] == number
    world.cycles()
    assert world.scheduling_queue.inactive() == ["ns/after"]
    assert [list(each.retry_at) for each in world.scheduling_queue.classes] == [["ns/after"]]


KINDS: list[dict[str, str]] = [{"cpu": "1"}, {"cpu": "2"}, {"cpu": "1", "nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "2"}]


@given(st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_no_inactive_job_would_be_bound(seed: int) -> None:
    """Pods and gangs come, pods end. Whenever nothing is active, a cycle with all jobs binds nothing either."""
    rng, world = Random(seed), World()
    world.put("filler", {"cpu": "92", "nvidia.com/gpu": "4"}, node="n")
    kinds = [(rng.choice(KINDS), rng.choice(("", "", "work")), rng.random() < 0.2) for _ in range(3)]
    gangs = [[rng.choice(KINDS) for _ in range(rng.randint(2, 4))] for _ in range(2)]
    for step in range(15):
        for number in range(rng.choice((0, 1, 8))):
            if rng.random() < 0.3:
                world.gang(f"gang-{step}-{number}", *rng.choice(gangs))
                continue
            requests, app, lonely = rng.choice(kinds)
            more: dict[str, Any] = {"affinity": AWAY_FROM_WORK} if lonely else {}
            world.put(f"pod-{step}-{number}", requests, app=app, **more)
        there = [task for task in world.cache.cluster.tasks.specs if task is not None and task.node and task.name != "filler"]
        for task in rng.sample(there, min(len(there), rng.randint(0, 2))):
            world.cache.remove_pod(task.uid)
        world.cycles()
        assert world.would_bind() == []
