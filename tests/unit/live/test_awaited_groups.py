"""Pods of KAI's scheduler wait for the PodGroup that KAI's pod grouper makes, where there is one, and for a bounded time."""

from __future__ import annotations

from typing import Any, cast

from tests.worlds.kai_objects import group, node, pod, queue

from navarch.apis.core.nodes import Node, read_node
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.kai.awaited_groups import BOUND, AwaitedGroups
from navarch.apis.kai.podgroups import PodGroup, Queue, read_pod_group, read_queue
from navarch.engine.policy import preset
from navarch.explanation.awaited_group import waits_for_group
from navarch.explanation.explain import reading
from navarch.ingest.absent_jobs import absent
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.kube.client import Client
from navarch.live.core import LiveCore
from navarch.live.instructions import BindPod, Instruction
from navarch.live.writers.bind_requests import BindRequests
from navarch.model.timestamps import rfc3339

REGISTRY = installed()
POLICY = preset("kai", REGISTRY.catalogue())
SETTINGS = settings_for(POLICY, ("kai-scheduler",), False)
BEGIN = 1_767_225_600.0
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u1", "controller": True}


def ungrouped(name: str, created: float = BEGIN, **spec: Any) -> dict[str, Any]:
    made = pod(name, "")
    made["metadata"] |= {"annotations": {}, "creationTimestamp": rfc3339(created), "ownerReferences": [OWNER]}
    made["metadata"]["labels"] = {"kai.scheduler/queue": "a"}
    made["spec"] |= spec
    return made


def grouped(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {"pod-group-name": name}}}


def made_group(name: str = "pg-train-u1", created: float = BEGIN) -> dict[str, Any]:
    """As KAI's pod grouper writes it."""
    made = group(name, "a")
    made["metadata"] |= {"creationTimestamp": rfc3339(created), "ownerReferences": [OWNER]}
    made["metadata"]["annotations"] = {"kai.scheduler/top-owner-metadata": "name: train"}
    return made


class World:
    def __init__(self, kai: bool = True) -> None:
        self.now = BEGIN
        self.awaited = AwaitedGroups(lambda: self.now, lambda: kai)
        self.bound: list[tuple[str, str]] = []
        self.core = LiveCore(SETTINGS, self._carry_out, awaited_groups=self.awaited)
        self.cache = self.core.cache
        self.cache.put(read_node(from_manifest(node("n", 8), Node), SETTINGS))
        for name, parent in (("dep", ""), ("a", "dep")):
            self.cache.put(read_queue(from_manifest(queue(name, parent), Queue), SETTINGS))

    def _carry_out(self, instruction: Instruction) -> None:
        if isinstance(instruction, BindPod):
            self.bound.append((instruction.bind.name, instruction.bind.job))

    def show(self, manifest: dict[str, Any]) -> None:
        found = from_manifest(manifest, Pod)
        key = ("ns", found.metadata.name)
        old, self.cache.pods[key] = self.cache.pods.get(key), found
        self.cache.put_pod(found, old)

    def show_group(self, manifest: dict[str, Any]) -> None:
        self.cache.put(read_pod_group(from_manifest(manifest, PodGroup), SETTINGS))

    def decide(self) -> list[tuple[str, str]]:
        """The pods that a cycle at this moment binds, with their jobs."""
        self.cache.end_waits()
        self.bound = []
        self.core.commit(self.core.decide(POLICY, REGISTRY, self.now).record, self.now)
        return self.bound


def test_a_pod_is_bound_in_the_group_that_the_grouper_makes() -> None:
    world = World()
    world.show(ungrouped("train-x"))
    assert world.decide() == []
    world.show_group(made_group())
    assert world.decide() == [], "the group is not named on the pod yet"
    world.show(grouped(ungrouped("train-x"), "pg-train-u1"))
    assert world.decide() == [("train-x", "ns/pg-train-u1")]


def test_without_signs_of_kai_no_pod_waits() -> None:
    world = World(kai=False)
    world.show(ungrouped("train-x"))
    assert world.decide() == [("train-x", "ns/job/train")]


def test_groups_that_it_made_are_a_sign_of_the_grouper() -> None:
    world = World(kai=False)
    world.show_group(group("by-hand", "a"))
    world.show(ungrouped("train-x"))
    assert len(world.decide()) == 1, "users write groups as well"

    world = World(kai=False)
    world.show_group(made_group("pg-other-u2"))
    world.show(ungrouped("train-x"))
    assert world.decide() == []


def test_a_wait_ends_and_the_pods_that_come_then_do_not_wait_for_a_grouper_that_is_gone() -> None:
    world = World()
    world.show(ungrouped("train-x"))
    world.now += BOUND - 1
    assert world.decide() == []
    world.now += 1
    assert world.decide() == [("train-x", "ns/job/train")]

    later = {"metadata": {"ownerReferences": [{**OWNER, "name": "next", "uid": "u2"}]}}
    second = ungrouped("next-x", world.now)
    second["metadata"] |= later["metadata"]
    world.show(second)
    assert world.decide() == [("next-x", "ns/job/next")]

    world.now += 1
    world.show_group(made_group("pg-back-u3", world.now))
    third = ungrouped("third-x", world.now)
    third["metadata"]["ownerReferences"] = [{**OWNER, "name": "third", "uid": "u4"}]
    world.show(third)
    assert world.decide() == [], "the grouper is there again"


def test_pods_on_nodes_count_at_once() -> None:
    world = World()
    world.show({**ungrouped("train-x", nodeName="n"), "status": {"phase": "Running"}})
    jobs = world.cache.cluster.jobs
    assert jobs.specs[jobs.rows.of["ns/job/train"]] is not None


def test_pods_of_other_schedulers_and_pods_without_the_grouper_are_not_its_business() -> None:
    world = World()
    skipped = ungrouped("skipped")
    skipped["metadata"]["annotations"] = {"kai.scheduler/skip-podgrouper": "true"}
    for manifest in (skipped, ungrouped("other", schedulerName="default-scheduler")):
        world.show(manifest)
    assert world.cache.shadows.awaiting == {}


def test_what_a_waiting_pod_is_told_names_the_end_of_the_wait() -> None:
    world = World()
    world.show(ungrouped("train-x"))
    (key,) = world.cache.shadows.awaiting
    told = absent(key, None, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], awaited_since=world.cache.shadows.awaiting[key]).reasons[0]
    assert told.message == (
        "it waits for the PodGroup that KAI's pod grouper makes, until 2026-01-01T00:00:30Z at most; then it is grouped without one"
    )


def test_explain_names_the_end_of_the_wait_while_it_lasts() -> None:
    objects = [node("n"), queue("dep"), queue("a", "dep"), ungrouped("train-x"), made_group("pg-other-u2")]

    def notes(now: float, *more: dict[str, Any], installed: bool = False) -> list[str]:
        read = reading([*objects[:4], *more], "kai", now, "kai-scheduler")
        return waits_for_group(read, "ns/train", installed=installed)

    assert notes(BEGIN) == []
    for found in (notes(BEGIN + 5, installed=True), notes(BEGIN + 5, objects[4])):
        assert len(found) == 1 and "until 2026-01-01T00:00:30Z at most" in found[0]
    assert notes(BEGIN + BOUND, installed=True) == []


def test_where_kai_is_installed_all_pods_of_its_scheduler_go_by_its_binder() -> None:
    for kai in (True, False):
        world = World(kai)
        requests = BindRequests(cast(Client, None), world.cache, lambda: True, enabled=True)
        world.show(ungrouped("train-x", BEGIN - BOUND))
        world.decide()
        assert requests.used_for("ns/job/train") is kai
