"""Objects that only some plugins read, with decisions about them that the API does not show yet.

A cycle chooses a volume for a claim, or devices for one. Later cycles see this from the moment it is decided, as they see a pod on its
node (see `assumed_pods`), until the API shows it or the decision is undone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from navarch.model.cluster import Cluster
from navarch.model.spec import ObjectSpec

IsShown = Callable[[Any], bool]
"""Whether this version of the object shows what was assumed."""


class AssumedObjects:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self._assumed: dict[tuple[str, str, str], tuple[Any, IsShown]] = {}
        """(kind, namespace, name) -> the object as the API shows it, and what ends the assumption that hides it."""

    def clear(self) -> None:
        """Start with a cluster that holds only what is assumed: chosen devices and volumes stay taken when the policy changes."""
        before, self.cluster = self.cluster, Cluster()
        for kind, namespace, name in self._assumed:
            self.cluster.put_object(kind, namespace, name, before.objects[kind][namespace, name])

    def api_object(self, kind: str, namespace: str, name: str) -> Any:
        """The object as the API shows it; None if it does not."""
        key = (kind, namespace, name)
        if key in self._assumed:
            return self._assumed[key][0]
        return self._visible(kind, namespace, name)

    def is_assumed(self, kind: str, namespace: str, name: str) -> bool:
        return (kind, namespace, name) in self._assumed

    def assumption(self, kind: str, namespace: str, name: str) -> IsShown | None:
        """What ends the assumption about this object, as given to `assume_object`; None: nothing is assumed of it."""
        entry = self._assumed.get((kind, namespace, name))
        return entry[1] if entry is not None else None

    def assume_object(self, kind: str, namespace: str, name: str, value: Any, shown: IsShown) -> None:
        """Let cycles see `value` until `shown` accepts a version from the API, or the assumption is forgotten."""
        self._assumed[kind, namespace, name] = self.api_object(kind, namespace, name), shown
        self.cluster.put_object(kind, namespace, name, value)

    def forget_object(self, kind: str, namespace: str, name: str) -> None:
        """Let cycles see what the API shows."""
        entry = self._assumed.pop((kind, namespace, name), None)
        if entry is None:
            return
        if entry[0] is None:  # the API never showed it
            self.cluster.remove_object(kind, namespace, name)
        else:
            self.cluster.put_object(kind, namespace, name, entry[0])

    def shown(self, spec: ObjectSpec) -> Any:
        """The API shows this object. Returns what cycles see."""
        key = (spec.kind, spec.namespace, spec.name)
        entry = self._assumed.get(key)
        if entry is not None and not entry[1](spec.value):
            self._assumed[key] = spec.value, entry[1]
            return self._visible(*key)
        self._assumed.pop(key, None)
        return spec.value

    def gone(self, spec: ObjectSpec) -> None:
        """The API shows the object no more."""
        self._assumed.pop((spec.kind, spec.namespace, spec.name), None)

    def _visible(self, kind: str, namespace: str, name: str) -> Any:
        """The object as cycles see it."""
        return self.cluster.objects.get(kind, {}).get((namespace, name))
