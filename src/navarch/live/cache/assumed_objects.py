"""Objects that only some plugins read, with what was decided about them and cannot yet be seen in the API.

A volume that was chosen for a claim, a device that was given to one: cycles see it from the moment it is decided, as they see a pod
on its node (see `assumed`), until the API shows it or the decision is given up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from navarch.model.cluster import Cluster
from navarch.model.spec import ObjectSpec


class AssumedObjects:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self._overlaid: dict[tuple[str, str, str], tuple[Any, Callable[[Any], bool]]] = {}
        """(kind, namespace, name) -> what the API shows, and what ends the assumption that hides it."""

    def begin_anew(self) -> None:
        """With a cluster that holds nothing but what is assumed: a device or a volume that was promised is not free because policies
        changed."""
        before, self.cluster = self.cluster, Cluster()
        for kind, namespace, name in self._overlaid:
            self.cluster.put_object(kind, namespace, name, before.objects[kind][namespace, name])

    def api_object(self, kind: str, namespace: str, name: str) -> Any:
        """As the API shows it; None if it does not."""
        key = (kind, namespace, name)
        if key in self._overlaid:
            return self._overlaid[key][0]
        return self._visible(kind, namespace, name)

    def is_assumed(self, kind: str, namespace: str, name: str) -> bool:
        return (kind, namespace, name) in self._overlaid

    def assumption(self, kind: str, namespace: str, name: str) -> Callable[[Any], bool] | None:
        """What ends the assumption about this object, as given to `assume_object`; None: nothing is assumed of it."""
        held = self._overlaid.get((kind, namespace, name))
        return held[1] if held is not None else None

    def assume_object(self, kind: str, namespace: str, name: str, value: Any, shown: Callable[[Any], bool]) -> None:
        """Let cycles see `value` until `shown` says that the API shows it, or it is forgotten."""
        truth = self.api_object(kind, namespace, name)
        self._overlaid[kind, namespace, name] = truth, shown
        self.cluster.put_object(kind, namespace, name, value)

    def forget_object(self, kind: str, namespace: str, name: str) -> None:
        """Back to what the API shows."""
        held = self._overlaid.pop((kind, namespace, name), None)
        if held is not None:
            self.cluster.put_object(kind, namespace, name, held[0])

    def shown(self, spec: ObjectSpec) -> Any:
        """The API shows this object; returns what cycles see."""
        key = (spec.kind, spec.namespace, spec.name)
        held = self._overlaid.get(key)
        if held is not None and not held[1](spec.value):
            self._overlaid[key] = spec.value, held[1]
            return self._visible(*key)
        self._overlaid.pop(key, None)
        return spec.value

    def gone(self, spec: ObjectSpec) -> None:
        """The API shows the object no more."""
        self._overlaid.pop((spec.kind, spec.namespace, spec.name), None)

    def _visible(self, kind: str, namespace: str, name: str) -> Any:
        """As cycles see it."""
        return self.cluster.objects.get(kind, {}).get((namespace, name))
