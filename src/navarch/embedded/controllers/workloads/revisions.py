"""Templates that a StatefulSet or DaemonSet had, kept as ControllerRevisions: what `kubectl rollout history|undo` read."""

from __future__ import annotations

from navarch.embedded.controllers.workloads.controller import Controller
from navarch.embedded.controllers.workloads.ownership import Child, owner_reference
from navarch.embedded.controllers.workloads.template_hash import template_hash
from navarch.embedded.storage.record import Record
from navarch.object_types import Manifest

REVISIONS = "controllerrevisions.apps"
HASH = "controller-revision-hash"


class RevisionsOf:
    """The history of the objects of one controller."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._owner_index = controller.owner_indexes[REVISIONS]
        self._store = controller.store

    def current(self, owner: Record) -> Child:
        """The revision of the present template, made if it is new; one that comes back is numbered anew."""
        template = owner.obj["spec"]["template"]
        data = {"spec": {"template": {**template, "$patch": "replace"}}}
        history = sorted(self._owner_index.of(owner), key=lambda each: each.obj["revision"])
        highest = history[-1].obj["revision"] if history else 0
        for each in history:
            if each.obj.get("data") == data:
                if each.obj["revision"] == highest:
                    return each
                return self._owner_index.enter(
                    self._store.modify(REVISIONS, owner.namespace, each.name, lambda obj: {**obj, "revision": highest + 1})
                )
        digest = template_hash(template)
        controller = self._controller
        labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: digest}
        body: Manifest = {
            "metadata": {
                "name": f"{owner.name}-{digest}",
                "labels": labels,
                "ownerReferences": [owner_reference(owner, controller.kind, controller.api_version)],
            },
            "data": data,
            "revision": highest + 1,
        }
        return self._owner_index.enter(controller.make(owner, REVISIONS, body))

    def forget(self, owner: Record, in_use: set[str]) -> None:
        """Keep no more of the unused ones than the owner's limit."""
        limit = owner.obj["spec"].get("revisionHistoryLimit", 10)
        idle = [each for each in self._owner_index.of(owner) if each.name not in in_use]
        idle.sort(key=lambda each: each.obj["revision"])
        for each in idle[: max(0, len(idle) - limit)]:
            self._controller.remove(each)

    def template(self, owner: Record, name: str) -> Manifest:
        """The template of a revision; the present one if it is not known."""
        found = self._store.find(REVISIONS, owner.namespace, name)
        template: Manifest = owner.obj["spec"]["template"]
        if found is not None:
            template = {key: value for key, value in found.obj["data"]["spec"]["template"].items() if key != "$patch"}
        return template
