"""Decisions over the objects that the API shows: ingest asks here what cycles see (see `ingest.changes.Overlay`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from navarch.live.cache.assumed_objects import AssumedObjects
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.model.spec import ObjectSpec


class DecisionOverlay:
    """`uid_of`: (namespace, name) of a pod -> its uid, empty if the pod is not known."""

    def __init__(self, pods: AssumedPods, objects: AssumedObjects, uid_of: Callable[[str, str], str]) -> None:
        self._pods = pods
        self._objects = objects
        self.uid_of = uid_of
        self.task_shown = pods.observe
        self.has_no_decision = pods.has_no_decision
        self.task_gone = pods.gone
        self.task = pods.as_decided
        self.job = pods.observe_group
        self.object_gone = objects.gone

    def bind_requested(self, uid: str) -> None:
        bind = self._pods.binds.get(uid)
        if bind is not None and bind.delegated:
            del self._pods.binds[uid]

    def job_gone(self, key: str) -> None:
        self._pods.statuses.pop(key, None)
        self._pods.starts.pop(key, None)

    def object(self, spec: ObjectSpec) -> Any:
        return self._objects.shown(spec)
