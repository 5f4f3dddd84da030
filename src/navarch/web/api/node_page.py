"""One node: its devices with the pods on them, its NUMA zones, its pods, and why it takes nothing more."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from aiohttp import web

from navarch.explanation.node_report import node_explained
from navarch.explanation.result import NodeExplanation
from navarch.model.gpus import GPU_RESOURCES
from navarch.model.snapshot import Snapshot
from navarch.model.spec import TaskSpec
from navarch.model.status import STATUS_NAMES
from navarch.views.nodes import node_row
from navarch.views.quantities import plain
from navarch.web.api.context import Context
from navarch.web.api.lists import check_nodes
from navarch.web.api.names import find_node
from navarch.web.api.node_devices import counted_devices, driver_devices, numa_zones
from navarch.web.application import json_response
from navarch.web.cluster.assessment import opened
from navarch.web.security.viewer import Viewer

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
                "devices": counted_devices(spec, pods, viewer) + driver_devices(state.cluster, spec, pods, viewer),
                "zones": numa_zones(state.cluster, name, pods),
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


def _gpus(task: TaskSpec) -> float:
    total = sum(amount for name, amount in task.shape.requests if name in GPU_RESOURCES)
    if task.shape.devices is not None:
        total += task.shape.devices.fraction * task.shape.devices.count
    return plain("gpu", total)
