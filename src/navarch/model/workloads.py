"""Objects that own or select pods, as far as scheduling reads them: whose like a pod is when spread is inferred."""

from __future__ import annotations

from dataclasses import dataclass

from navarch.model.spec import LabelSelector

SERVICE = "Service"
CONTROLLERS = ("ReplicationController", "ReplicaSet", "StatefulSet")


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """No pair: the Service selects nothing."""

    namespace: str
    name: str
    selector: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ControllerSpec:
    kind: str
    namespace: str
    name: str
    selector: LabelSelector | None = None
