"""Hollow pods that follow Stages: where one matches a pod as it is, it decides what comes next, and when."""

from __future__ import annotations

import logging
import random
from importlib import resources
from typing import Any

import yaml

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.errors import cause, invalid
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.operations import Operations
from navarch.embedded.api.writing import WriteOptions
from navarch.embedded.controllers.event_recorder import Recorder
from navarch.embedded.create_objects import create_all
from navarch.embedded.kubelets.stages import Stage, StageError, read_stage
from navarch.embedded.storage.feeds import Watch
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import timestamp
from navarch.embedded.timers import Timers
from navarch.object_types import Manifest

log = logging.getLogger(__name__)
RESOURCE = "stages.kwok.x-k8s.io"


class PodStages:
    """The Stages of a cluster, in order of their names."""

    def __init__(self, operations: Operations, timers: Timers, recorder: Recorder, seed: int) -> None:
        self._operations = operations
        self._store = operations.store
        self._timers = timers
        self._recorder = recorder
        self._seed = seed
        self._stages: dict[str, Stage] = {}
        self._waiting: dict[str, str] = {}
        """Pod uid -> the stage whose delay runs."""
        self._watch: Watch | None = None

    def start(self) -> None:
        text = (resources.files("navarch.embedded.kubelets") / "stage_crd.yaml").read_bytes()
        create_all(self._operations, [yaml.load(text, Loader=yaml.CSafeLoader)])
        self._operations.hooks[RESOURCE] = _check
        self._watch = self._store.subscribe(RESOURCE, self._on_stage)

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.close()

    def __bool__(self) -> bool:
        return bool(self._stages)

    def _on_stage(self, event: Event) -> None:
        name = event.record.name
        self._stages.pop(name, None)
        if event.type != "DELETED":
            try:
                self._stages[name] = read_stage(event.record.obj)
            except StageError as error:
                log.warning("Stage %s is not followed: %s", name, error)

    def forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._timers.cancel(("stage", uid))

    def follow(self, pod: Record, node_ip: str, pod_ip: str) -> bool:
        """Schedule the next step of a pod if a Stage matches it. True if a Stage drives the pod."""
        if not self._stages:
            return False
        obj = pod.obj
        matching = [stage for _, stage in sorted(self._stages.items()) if stage.matches(obj)]
        if not matching:
            self.forget(pod.uid)
            return False
        if self._waiting.get(pod.uid) in {stage.name for stage in matching} and self._timers.has(("stage", pod.uid)):
            return True
        chance = random.Random(f"{self._seed}/{pod.namespace}/{pod.name}/{pod.revision}")
        weights = [stage.weight for stage in matching]
        stage = chance.choices(matching, weights if any(weights) else None)[0]
        self._waiting[pod.uid] = stage.name
        wait = stage.delay(obj, self._store.clock(), chance)
        facts = {"NodeIP": node_ip, "PodIP": (obj.get("status") or {}).get("podIP") or pod_ip}
        self._timers.after(("stage", pod.uid), wait, lambda: self._apply(stage, pod.namespace, pod.name, pod.uid, facts))
        return True

    def _apply(self, stage: Stage, namespace: str, name: str, uid: str, facts: dict[str, str]) -> None:
        self._waiting.pop(uid, None)
        pod = self._store.find("pods", namespace, name)
        if pod is None or pod.uid != uid or not stage.matches(pod.obj):
            return
        if stage.event is not None:
            write = self._recorder.warning if stage.event.get("type") == "Warning" else self._recorder.normal
            write(pod, str(stage.event.get("reason") or stage.name), str(stage.event.get("message") or ""))
        facts["Now"] = timestamp(self._store.clock())
        facts["NodeName"] = pod.obj["spec"].get("nodeName") or ""
        try:
            patch = stage.patch(pod.obj, facts)
        except (yaml.YAMLError, TypeError, ValueError) as error:
            self._recorder.warning(pod, "StageFailed", f"Stage {stage.name}: {error}")
            return
        if patch or stage.finalizers:
            kind = self._operations.kind("pods")
            self._operations.modify(kind, namespace, name, lambda obj: _changed(obj, {}, stage.finalizers))
            pod = self._store.find("pods", namespace, name)
            if pod is None:
                return
            self._store.modify("pods", namespace, name, lambda obj: _changed(obj, patch, {}))
        if stage.delete:
            self._operations.delete(self._operations.kind("pods"), namespace, name, DeleteOptions(grace=0, uid=uid))


def _check(kind: Kind, obj: Manifest, old: Manifest | None, options: WriteOptions) -> None:
    """A Stage that cannot be followed is refused when it is written."""
    try:
        read_stage(obj)
    except StageError as error:
        why = [cause("FieldValueInvalid", f"Invalid value: {error.message}", error.field)]
        raise invalid("Stage", "kwok.x-k8s.io", obj["metadata"]["name"], why) from None


def _changed(pod: Manifest, patch: Manifest, finalizers: Manifest) -> Manifest:
    held = [] if finalizers.get("empty") else list(pod["metadata"].get("finalizers") or ())
    gone = {each.get("value") for each in finalizers.get("remove") or ()}
    added = [each.get("value") for each in finalizers.get("add") or () if each.get("value") not in held]
    kept = [each for each in held if each not in gone] + added
    if kept:
        pod["metadata"]["finalizers"] = kept
    else:
        pod["metadata"].pop("finalizers", None)
    merged: Manifest = _merged(pod, patch)
    return merged


def _merged(value: Any, patch: Any, field: str = "") -> Any:
    """A merge patch; conditions are merged by their type."""
    if field == "conditions" and isinstance(value, list) and isinstance(patch, list):
        types = {each.get("type"): each for each in patch}
        return [each for each in value if each.get("type") not in types] + patch
    if not isinstance(value, dict) or not isinstance(patch, dict):
        return patch
    found = dict(value)
    for key, part in patch.items():
        if part is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), part, key)
    return found
