"""Deployment: one ReplicaSet for each template it ever had, replicas moved from the old ones to the new.

Rolling update keeps between `replicas - maxUnavailable` available pods and `replicas + maxSurge` pods in all; Recreate waits
until the old pods are gone. Revisions are numbered on the ReplicaSets, so `kubectl rollout status|history|undo` work.
"""

from __future__ import annotations

from typing import ClassVar

from navarch.embedded.controllers.workloads.controller import Controller, condition, portion
from navarch.embedded.controllers.workloads.ownership import Child, owner_reference
from navarch.embedded.controllers.workloads.template_hash import template_hash
from navarch.embedded.storage.record import Record
from navarch.embedded.timers import seconds_of
from navarch.object_types import Manifest

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED, MOST = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"
NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration", REVISION, DESIRED, MOST})


class Deployments(Controller):
    resource: ClassVar[str] = "deployments.apps"
    kind: ClassVar[str] = "Deployment"
    owns: ClassVar[str] = "replicasets.apps"

    def sync(self, owner: Record) -> None:
        sets = self.children(owner)
        if owner.obj["metadata"].get("deletionTimestamp"):
            self._report(owner, self._current(owner, sets), sets)
            return
        spec = owner.obj["spec"]
        current = self._current(owner, sets)
        if spec.get("paused"):
            if current is not None:
                self._scale(owner, current, max(0, spec["replicas"] - _total(sets, current)))
            self._report(owner, current, sets)
            return
        strategy = spec.get("strategy") or {}
        if strategy.get("type") == "Recreate":
            current = self._recreate(owner, current, sets)
        else:
            current = self._roll(owner, current, sets, strategy.get("rollingUpdate") or {})
        sets = self.owner_index.of(owner)
        self._forget_old(owner, current, sets)
        self._report(owner, current, sets)

    def _current(self, owner: Record, sets: list[Child]) -> Child | None:
        """The ReplicaSet of the present template."""
        wanted = _plain(owner.obj["spec"]["template"])
        matching = [each for each in sets if _plain(each.obj["spec"]["template"]) == wanted]
        return min(matching, key=lambda each: (each.obj["metadata"]["creationTimestamp"], each.name), default=None)

    def _make(self, owner: Record, sets: list[Child], replicas: int) -> Child:
        spec = owner.obj["spec"]
        digest = template_hash(spec["template"], (owner.obj.get("status") or {}).get("collisionCount", 0))
        given = spec["template"].get("metadata") or {}
        labels = {**(given.get("labels") or {}), HASH: digest}
        selector = spec["selector"]
        body: Manifest = {
            "metadata": {
                "name": f"{owner.name}-{digest}",
                "labels": labels,
                "annotations": self._annotations(owner, sets),
                "ownerReferences": [owner_reference(owner, self.kind, self.api_version)],
            },
            "spec": {
                "replicas": replicas,
                "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: digest}},
                "template": {**spec["template"], "metadata": {**given, "labels": labels}},
            },
        }
        if spec.get("minReadySeconds"):
            body["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        return self.owner_index.enter(self.make(owner, self.owns, body))

    def _annotations(self, owner: Record, sets: list[Child]) -> dict[str, str]:
        given = owner.obj["metadata"].get("annotations") or {}
        kept = {key: value for key, value in given.items() if key not in NOT_COPIED}
        return {**kept, REVISION: str(max((_revision(each) for each in sets), default=0) + 1)}

    def _newest(self, owner: Record, current: Child | None, sets: list[Child], replicas: int) -> Child:
        """The present ReplicaSet, made if need be, with the highest revision."""
        if current is None:
            current = self._make(owner, sets, replicas)
        elif any(_revision(each) >= _revision(current) for each in sets if each.uid != current.uid):
            annotations = self._annotations(owner, sets)  # an older template again: a roll-back is a new revision
            changed = self.store.modify(self.owns, owner.namespace, current.name, lambda obj: _annotated(obj, annotations))
            current = self.owner_index.enter(changed)
        revision = str(_revision(current))
        if (owner.obj["metadata"].get("annotations") or {}).get(REVISION) != revision:
            self.store.modify(self.resource, owner.namespace, owner.name, lambda obj: _annotated(obj, {REVISION: revision}))
        return current

    def _roll(self, owner: Record, current: Child | None, sets: list[Child], rolling: Manifest) -> Child:
        wanted = owner.obj["spec"]["replicas"]
        surge = portion(rolling.get("maxSurge", "25%"), wanted, round_up=True)
        missing = portion(rolling.get("maxUnavailable", "25%"), wanted, round_up=False)
        if surge == 0 and missing == 0:
            missing = 1
        old = [each for each in sets if current is None or each.uid != current.uid]
        others = sum(_wanted(each) for each in old)
        first = max(0, min(wanted, wanted + surge - others))
        current = self._newest(owner, current, sets, first)
        have = _wanted(current)
        if have > wanted:
            current = self._scale(owner, current, wanted)
        elif have < wanted:
            current = self._scale(owner, current, max(have, min(wanted, wanted + surge - others)))
        self._shrink(owner, current, old, wanted - missing)
        return current

    def _shrink(self, owner: Record, current: Child, old: list[Child], least: int) -> None:
        """Take from the old sets what may go: first what is not available anyway, then what can be spared."""
        old = sorted((each for each in old if _wanted(each)), key=lambda each: (_revision(each), each.name))
        unavailable_new = _wanted(current) - _available(current)
        spare = sum(_wanted(each) for each in old) + _wanted(current) - least - unavailable_new
        for index, each in enumerate(old):
            broken = min(_wanted(each) - _available(each), max(0, spare))
            if broken > 0:
                old[index] = self._scale(owner, each, _wanted(each) - broken)
                spare -= broken
        spare = sum(_available(each) for each in [*old, current]) - least
        for each in old:
            step = min(_wanted(each), max(0, spare))
            if step > 0:
                self._scale(owner, each, _wanted(each) - step)
                spare -= step

    def _recreate(self, owner: Record, current: Child | None, sets: list[Child]) -> Child | None:
        old = [each for each in sets if current is None or each.uid != current.uid]
        for each in old:
            self._scale(owner, each, 0)
        pods = self.owner_indexes["pods"]
        if any(pods.of(each.record) for each in old):
            return current
        current = self._newest(owner, current, sets, owner.obj["spec"]["replicas"])
        return self._scale(owner, current, owner.obj["spec"]["replicas"])

    def _scale(self, owner: Record, replica_set: Child, replicas: int) -> Child:
        if _wanted(replica_set) == replicas:
            return replica_set
        how = "up" if replicas > _wanted(replica_set) else "down"
        said = f"Scaled {how} replica set {replica_set.name} from {_wanted(replica_set)} to {replicas}"
        self.recorder.normal(owner, "ScalingReplicaSet", said)
        kind = self.operations.kind(self.owns)

        def change(obj: Manifest) -> Manifest:
            obj["spec"]["replicas"] = replicas
            return obj

        return self.owner_index.enter(self.operations.modify(kind, owner.namespace, replica_set.name, change))

    def _forget_old(self, owner: Record, current: Child | None, sets: list[Child]) -> None:
        limit = owner.obj["spec"].get("revisionHistoryLimit", 10)
        old = [each for each in sets if current is not None and each.uid != current.uid]
        idle = [each for each in old if not _wanted(each) and not (each.obj.get("status") or {}).get("replicas")]
        for each in sorted(idle, key=lambda each: (_revision(each), each.name))[: max(0, len(idle) - limit)]:
            self.remove(each)

    # ------------------------------------------------------------------ status

    def _report(self, owner: Record, current: Child | None, sets: list[Child]) -> None:
        owner = self.store.get(self.resource, owner.namespace, owner.name)
        spec, before = owner.obj["spec"], owner.obj.get("status") or {}
        wanted, total = spec["replicas"], sum(_made(each) for each in sets)
        available = sum(_available(each) for each in sets)
        figures = {
            "replicas": total,
            "updatedReplicas": _made(current) if current is not None else 0,
            "readyReplicas": sum((each.obj.get("status") or {}).get("readyReplicas", 0) for each in sets),
            "availableReplicas": available,
            "unavailableReplicas": max(0, sum(_wanted(each) for each in sets) - available),
        }
        status: Manifest = {
            **{name: count for name, count in figures.items() if count},
            "observedGeneration": owner.obj["metadata"].get("generation", 1),
        }
        for name in ("collisionCount", "conditions"):
            if before.get(name):
                status[name] = before[name]
        rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
        missing = portion(rolling.get("maxUnavailable", 0), wanted, round_up=False)
        enough = available >= wanted - missing
        status["conditions"] = condition(
            status,
            "Available",
            "True" if enough else "False",
            "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            f"Deployment {'has' if enough else 'does not have'} minimum availability.",
            self.now,
            update_time=True,
        )
        self._progress(owner, current, status, before, figures)
        self.write_status(owner, status)

    def _progress(self, owner: Record, current: Child | None, status: Manifest, before: Manifest, figures: dict[str, int]) -> None:
        spec = owner.obj["spec"]
        wanted = spec["replicas"]
        old: Manifest = next((each for each in before.get("conditions") or () if each["type"] == "Progressing"), {})
        name = f'ReplicaSet "{current.name if current is not None else ""}"'
        done = figures["updatedReplicas"] == figures["replicas"] == figures["availableReplicas"] == wanted
        state = "True"
        if spec.get("paused"):
            state, reason, message = "Unknown", "DeploymentPaused", "Deployment is paused"
        elif done:
            reason, message = "NewReplicaSetAvailable", f"{name} has successfully progressed."
        else:
            reason, message = "ReplicaSetUpdated", f"{name} is progressing."
            moved = any(before.get(key, 0) != figures[key] for key in ("updatedReplicas", "availableReplicas", "replicas"))
            deadline = spec.get("progressDeadlineSeconds", 600)
            if old and not moved and old.get("reason") != "NewReplicaSetAvailable":
                left = deadline - (self.store.clock() - seconds_of(old.get("lastUpdateTime") or self.now)) * self.timers.speed
                if left <= 0:
                    state, reason, message = "False", "ProgressDeadlineExceeded", f"{name} has timed out progressing."
                else:
                    self.again_after(owner, left + 1)
                    return
            else:
                self.again_after(owner, deadline + 1)
        conditions = condition(status, "Progressing", state, reason, message, self.now, update_time=True)
        if reason == "ReplicaSetUpdated":  # still moving: the deadline counts from now
            conditions = [{**each, "lastUpdateTime": self.now} if each["type"] == "Progressing" else each for each in conditions]
        status["conditions"] = conditions


def _plain(template: Manifest) -> Manifest:
    """A template without the hash that the controller put into it."""
    metadata = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _annotated(obj: Manifest, annotations: dict[str, str]) -> Manifest:
    obj["metadata"].setdefault("annotations", {}).update(annotations)
    return obj


def _revision(replica_set: Child) -> int:
    text = (replica_set.obj["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _wanted(replica_set: Child) -> int:
    count: int = replica_set.obj["spec"].get("replicas", 1)
    return count


def _made(replica_set: Child) -> int:
    count: int = (replica_set.obj.get("status") or {}).get("replicas", 0)
    return count


def _available(replica_set: Child) -> int:
    count: int = (replica_set.obj.get("status") or {}).get("availableReplicas", 0)
    return count


def _total(sets: list[Child], without: Child) -> int:
    return sum(_wanted(each) for each in sets if each.uid != without.uid)
