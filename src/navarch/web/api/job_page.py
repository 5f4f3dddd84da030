"""One job: why it waits, its pods on nodes, its timeline, conditions and events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web

from navarch.apis.core.pod_objects import Pod
from navarch.explanation.result import Explanation
from navarch.kube.client import Client
from navarch.model.snapshot import Snapshot
from navarch.model.spec import JobSpec, TaskSpec
from navarch.model.status import IS_TERMINAL, STATUS_NAMES
from navarch.views.pods import count_by_status
from navarch.views.quantities import numbers
from navarch.web.api.context import Context
from navarch.web.api.events_of import events_of
from navarch.web.api.names import find_job
from navarch.web.api.quick_explanation import quick_explanation
from navarch.web.api.timeline import timeline
from navarch.web.application import json_response
from navarch.web.cluster.assessment import opened
from navarch.web.security.viewer import Viewer
from navarch.web.tables.jobs import CAUSE, COLUMNS, ID, NAMESPACE, NUMBER, STATE, Row

MOST_MEMBERS: Final = 2000
MEMBERS: Final = ("pod", "role", "status", "node", "created", "scheduled", "started", "devices", "message")


class JobPage:
    def __init__(self, context: Context, client: Client) -> None:
        self._context, self._client = context, client

    async def get(self, request: web.Request, viewer: Viewer) -> web.Response:
        context = self._context
        context.check_ready()
        row = find_job(context, viewer, request.match_info["namespace"], request.match_info["name"])
        key, state = row[ID], context.state
        tasks = state.jobs.tasks(key)
        number = state.cluster.jobs.rows.of[key]
        spec = state.cluster.jobs.specs[number]
        labels = {name: value for each in reversed(state.jobs.labels(key)) for name, value in each.items()}
        explanation = await self.explanation(row, tasks) if spec is not None else None
        events = await events_of(self._client, row[NAMESPACE], _objects(key, row, tasks))
        return json_response(
            {
                "version": state.log.version,
                "job": dict(zip(COLUMNS, row, strict=True)),
                "labels": labels,
                "requests": _requests(tasks),
                "conditions": _conditions(spec),
                "explanation": None if explanation is None else context.hide(explanation.to_dict(), viewer),
                "members": self._members(tasks),
                "timeline": context.hide(timeline(spec, tasks, events or ()), viewer),
                "events": context.hide(events, viewer),
            }
        )

    async def explanation(self, row: Row, tasks: Sequence[TaskSpec]) -> Explanation:
        state, key = self._context.state, row[ID]
        record = await self._context.dry_run.record()
        nodes = sorted({task.node for task in tasks if task.node and not IS_TERMINAL[task.status]})
        pods = count_by_status(tasks)
        now = state.clock()

        def explain(snapshot: Snapshot) -> Explanation:
            session = opened(snapshot, state.policy, state.registry, now)
            try:
                return quick_explanation(session, record, key, nodes, row[CAUSE], row[STATE], pods)
            finally:
                session.dissolve()

        return await state.assessor.run(explain)

    def _members(self, tasks: Sequence[TaskSpec]) -> dict[str, Any]:
        find = self._context.state.watched.find_pod
        rows = [
            [
                task.name,
                task.role or task.sub_group,
                STATUS_NAMES[task.status],
                task.node or None,
                task.created or None,
                _scheduled(task),
                task.started,
                list(task.gpu_groups),
                _message(find(task.namespace, task.name)),
            ]
            for task in tasks[:MOST_MEMBERS]
        ]
        return {"total": len(tasks), "columns": MEMBERS, "rows": rows}


def _objects(key: str, row: Row, tasks: Sequence[TaskSpec]) -> set[str]:
    """Names of the objects whose events concern the job."""
    return {key.rpartition("/")[2], row[NUMBER["name"]], *(task.name for task in tasks)}


def _scheduled(task: TaskSpec) -> float | None:
    return next((since for kind, status, _, since in task.conditions if (kind, status) == ("PodScheduled", "True")), None)


def _message(pod: Pod | None) -> str:
    for each in (pod.status.conditions or ()) if pod is not None else ():
        if each.type == "PodScheduled" and each.status == "False":
            return each.message or ""
    return ""


def _requests(tasks: Sequence[TaskSpec]) -> dict[str, float]:
    total: dict[str, float] = {}
    for task in tasks:
        for name, amount in task.shape.requests if not IS_TERMINAL[task.status] else ():
            total[name] = total.get(name, 0) + amount
    total.pop("pods", None)
    return numbers(total)


def _conditions(spec: JobSpec | None) -> list[dict[str, Any]]:
    return [
        {
            "type": each.type,
            "status": each.status,
            "reason": each.reason,
            "message": each.message,
            "time": each.last_transition or None,
        }
        for each in (spec.conditions if spec is not None else ())
    ]
