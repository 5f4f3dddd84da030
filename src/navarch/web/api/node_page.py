"""One node: its devices with the pods on them, its NUMA zones, its pods, and why it takes nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from aiohttp import web

from navarch.explanation.node_report import node_explained
from navarch.explanation.result import NodeExplanation
from navarch.model.gpus import GPU_MEMORY_LABEL, GPU_RESOURCES, gpu_memory
from navarch.model.snapshot import Snapshot
from navarch.model.spec import NodeNumaSpec, NodeSpec, TaskSpec
from navarch.model.status import STATUS_NAMES
from navarch.views.nodes import node_row
from navarch.web.api.context import Context
from navarch.web.api.lists import check_nodes
from navarch.web.api.names import find_node
from navarch.web.application import json_response
from navarch.web.cluster.assessment import opened
from navarch.web.security.viewer import Viewer
from navarch.web.tables.amounts import numbers_of, plain

PODS: Final = ("pod", "job", "queue", "status", "cpu", "memory", "gpus", "priority", "devices")


class NodePage:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def get(self, request: web.Request, viewer: Viewer) -> web.Response:
        context, state = self._context, self._context.state
        context.check_ready()
        check_nodes(viewer)
        name = find_node(context, request.match_info["name"])
        explanation = await self._explanation(name)
        row = node_row(state.cluster, name, len(state.watched.changes.shared.get(name, ())))
        number = state.cluster.nodes.rows.of.get(name)
        spec = state.cluster.nodes.specs[number] if number is not None else None
        if row is None or spec is None or explanation is None:
            find_node(context, name)  # it went away meanwhile
            raise AssertionError(f"node {name} has no row")
        pods = self._pods(name)
        seen = context.queues_seen(viewer)
        return json_response(
            {
                "version": state.log.version,
                "node": row.to_dict(),
                "labels": dict(spec.labels),
                "created": spec.created or None,
                "explanation": context.hide(explanation.to_dict(), viewer),
                "devices": _devices(spec, pods, viewer),
                "zones": self._zones(name, pods),
                "pods": {"columns": PODS, "rows": [self._pod(task, viewer, seen) for task in pods]},
            }
        )

    async def _explanation(self, name: str) -> NodeExplanation | None:
        state, now = self._context.state, self._context.state.clock()

        def explain(snapshot: Snapshot) -> NodeExplanation | None:
            session = opened(snapshot, state.policy, state.registry, now)
            try:
                return node_explained(session, name) if snapshot.nodes.row(name) is not None else None
            finally:
                session.dissolve()

        return await state.assessor.run(explain)

    def _pods(self, name: str) -> list[TaskSpec]:
        """Pods that hold something of the node, by name."""
        tasks = self._context.state.cluster.tasks
        row = self._context.state.cluster.nodes.rows.of[name]
        found = (tasks.specs[number] for number in np.flatnonzero(tasks.node[: tasks.rows.top] == row).tolist())
        return sorted((task for task in found if task is not None), key=lambda task: task.key)

    def _pod(self, task: TaskSpec, viewer: Viewer, seen: frozenset[str] | None) -> list[Any]:
        jobs = self._context.state.cluster.jobs
        number = jobs.rows.of.get(task.job) if task.job else None
        spec = jobs.specs[number] if number is not None else None
        queue = spec.queue if spec is not None and (seen is None or spec.queue in seen) else None
        visible = viewer.sees(task.namespace)
        asked = dict(task.shape.requests)
        return [
            task.key if visible else None,
            (task.job or None) if visible else None,
            queue,
            STATUS_NAMES[task.status],
            plain("cpu", asked.get("cpu", 0)),
            plain("memory", asked.get("memory", 0)),
            _gpus(task),
            task.pod_priority,
            list(task.gpu_groups),
        ]

    def _zones(self, name: str, pods: Sequence[TaskSpec]) -> list[dict[str, Any]] | None:
        """None: the cluster does not tell them."""
        found = self._context.state.cluster.objects.get("NodeResourceTopology", {}).get(("", name))
        if not isinstance(found, NodeNumaSpec):
            return None
        held: dict[str, dict[str, int]] = {}
        for task in pods:
            for place, amounts in task.numa_placement:
                for resource, amount in amounts:
                    of_zone = held.setdefault(place, {})
                    of_zone[resource] = of_zone.get(resource, 0) + amount
        zones = []
        for zone in found.zones:
            reported = {name: has - dict(zone.available).get(name, has) for name, has in zone.allocatable}
            used = held.get(zone.name) or reported
            zones.append(
                {"name": zone.name, "allocatable": numbers_of(zone.allocatable), "used": numbers_of(tuple(sorted(used.items())))}
            )
        return zones


def _gpus(task: TaskSpec) -> float:
    total = sum(amount for name, amount in task.shape.requests if name in GPU_RESOURCES)
    if task.shape.devices is not None:
        total += task.shape.devices.fraction * task.shape.devices.count
    return plain("gpu", total)


def _devices(spec: NodeSpec, pods: Sequence[TaskSpec], viewer: Viewer) -> list[dict[str, Any]]:
    """One entry a device. Which of several whole devices a pod has is the kubelet's choice, so these are numbered in the order of the
    pods' names, after the shared ones."""
    has = dict(spec.allocatable)
    resource = next((name for name in GPU_RESOURCES if has.get(name)), "")
    count = has.get(resource, 0) // 1000
    memory = gpu_memory(spec) if GPU_MEMORY_LABEL in spec.labels else None
    if not resource:
        return []
    shared: dict[str, list[TaskSpec]] = {}
    for task in pods:
        for group in task.gpu_groups:
            shared.setdefault(group, []).append(task)
    found = [
        {
            "resource": resource,
            "name": group,
            "use": "shared",
            "memory": memory,
            "pods": [_part(task, viewer, memory) for task in sharing],
        }
        for group, sharing in sorted(shared.items())
    ]
    whole = [task for task in pods for _ in range(dict(task.shape.requests).get(resource, 0) // 1000) if not task.gpu_groups]
    for task in whole:
        pod = {"pod": task.key if viewer.sees(task.namespace) else None, "part": 1}
        found.append({"resource": resource, "name": str(len(found)), "use": "whole", "memory": memory, "pods": [pod]})
    while len(found) < count:
        found.append({"resource": resource, "name": str(len(found)), "use": "free", "memory": memory, "pods": []})
    return found


def _part(task: TaskSpec, viewer: Viewer, memory: int | None) -> dict[str, Any]:
    asked = task.shape.devices
    part: float | None = None
    if asked is not None and asked.fraction:
        part = asked.fraction / 1000
    elif asked is not None and asked.memory and memory:
        part = round(asked.memory / memory, 3)
    return {"pod": task.key if viewer.sees(task.namespace) else None, "part": part}
