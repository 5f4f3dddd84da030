"""A live core under KAI's policy: manifests as watches show them, and the binds and evictions of its cycles."""

from __future__ import annotations

from typing import Any

from tests.worlds.kai_objects import queue

from navarch.apis.core.nodes import Node, read_node
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.kai.awaited_groups import AwaitedGroups
from navarch.apis.kai.podgroups import PodGroup, Queue, read_pod_group, read_queue
from navarch.engine.policy import preset
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.live.core import LiveCore
from navarch.live.instructions import BindPod, EvictPod, Instruction

REGISTRY = installed()
POLICY = preset("kai", REGISTRY.catalogue())
SETTINGS = settings_for(POLICY, ("kai-scheduler",), False)
BEGIN = 1_767_225_600.0
"""2026-01-01T00:00:00Z"""


class KaiCore:
    """With the queues `dep` and, below it, `a`. `kai`: whether KAI's kind Config is served."""

    def __init__(self, *nodes: dict[str, Any], kai: bool = False, surplus_settle: float = 0.0) -> None:
        self.now = BEGIN
        self.bound: list[tuple[str, str]] = []
        """(pod, job) of the last cycle."""
        self.evicted: list[str] = []
        """Pods of the last cycle."""
        self.core = LiveCore(
            SETTINGS, self.carry_out, awaited_groups=AwaitedGroups(lambda: self.now, lambda: kai), surplus_settle=surplus_settle
        )
        self.cache = self.core.cache
        self.pods: dict[str, dict[str, Any]] = {}
        for each in nodes:
            self.cache.put(read_node(from_manifest(each, Node), SETTINGS))
        self.show_queue(queue("dep"))
        self.show_queue(queue("a", "dep"))

    def carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case BindPod(bind=bind):
                self.bound.append((bind.name, bind.job))
            case EvictPod(task=task):
                self.evicted.append(task.name)

    def show(self, manifest: dict[str, Any]) -> None:
        """A pod as it is now."""
        found = from_manifest(manifest, Pod)
        name = found.metadata.name
        self.pods[name] = manifest
        old, self.cache.pods["ns", name] = self.cache.pods.get(("ns", name)), found
        self.cache.put_pod(found, old)

    def show_group(self, manifest: dict[str, Any]) -> None:
        self.cache.put(read_pod_group(from_manifest(manifest, PodGroup), SETTINGS))

    def show_queue(self, manifest: dict[str, Any]) -> None:
        self.cache.put(read_queue(from_manifest(manifest, Queue), SETTINGS))

    def decide(self) -> list[tuple[str, str]]:
        """The pods that a cycle at this moment binds, with their jobs."""
        self.cache.end_waits()
        self.bound, self.evicted = [], []
        self.core.commit(self.core.decide(POLICY, REGISTRY, self.now).record, self.now)
        return self.bound
