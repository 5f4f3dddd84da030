"""Default spread constraints for pods without their own: the scheduler's defaults, over the pod's peers.

The peers are pods that the same Services select and that the same controller owns. A pod without Service and controller gets no
constraint.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from navarch.engine.node_functions import TaskClass
from navarch.engine.session import Session
from navarch.model.objects.workloads import CONTROLLERS, ServiceSpec, controllers, services
from navarch.model.selectors import equalities
from navarch.model.spec import LabelSelector, SpreadConstraint, TaskSpec
from navarch.plugins.predicates.pods.identity_index import Pair, identity_index
from navarch.plugins.predicates.pods.placed_pods import placed_pods

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SYSTEM = (SpreadConstraint(3, HOSTNAME, hard=False), SpreadConstraint(5, ZONE, hard=False))


class SpreadDefaults(Struct, frozen=True):
    """`listed` constraints come from the policy file; otherwise they are the system's, which forgive missing labels."""

    constraints: tuple[SpreadConstraint, ...] = SYSTEM
    listed: bool = False


class ServiceFile:
    """Services by namespace and one label that they demand, the rarest: a pod is held against those with its own labels."""

    def __init__(self, session: Session) -> None:
        index = identity_index(session.snapshot)
        self._filed: dict[tuple[str, Pair], list[ServiceSpec]] = {}
        for (namespace, _), service in services(session.snapshot).items():
            rarest = index.anchor(LabelSelector(equalities(dict(service.selector))), frozenset({namespace}))
            if rarest is not None:
                self._filed.setdefault((namespace, (rarest.key, rarest.values[0])), []).append(service)

    def near(self, spec: TaskSpec) -> list[ServiceSpec]:
        return [service for pair in spec.labels.items() for service in self._filed.get((spec.namespace, pair), ())]


def inferred_selector(session: Session, spec: TaskSpec) -> LabelSelector:
    """What Services and the controller of a pod select, all together; no requirement: nothing is known."""
    labels: dict[str, str] = {}
    for service in session.shared(ServiceFile).near(spec):
        if all(spec.labels.get(key) == value for key, value in service.selector):
            labels.update(service.selector)
    requirements = equalities(labels)
    if spec.owner is not None and spec.owner[0] in CONTROLLERS:
        found = controllers(session.snapshot, spec.owner[0]).get((spec.namespace, spec.owner[1]))
        if found is not None and found.selector is not None:
            requirements += found.selector.requirements
    return LabelSelector(requirements)


class DefaultSpread:
    """One object a set of defaults: which constraints a class of tasks has."""

    def __init__(self, session: Session, defaults: SpreadDefaults) -> None:
        self.session = session
        self.defaults = defaults
        self._known: dict[int, tuple[SpreadConstraint, ...]] = {}
        keys = {key for service in services(session.snapshot).values() for key, _ in service.selector}
        for kind in CONTROLLERS:
            for controller in controllers(session.snapshot, kind).values():
                keys.update(r.key for r in (controller.selector.requirements if controller.selector else ()))
        self.possible = bool(defaults.constraints) and bool(keys)
        if self.possible:
            session.distinguish_labels(keys)
            placed_pods(session)

    def constraints(self, task: TaskClass, *, hard: bool) -> tuple[SpreadConstraint, ...]:
        """The class's own constraints of one strength, or the defaults if it has none of either."""
        own = task.shape.spread
        if not own and self.possible:
            own = self._known.get(task.number, _UNKNOWN)
            if own is _UNKNOWN:
                own = self._known[task.number] = self._inferred(task)
        return tuple(each for each in own if each.hard == hard)

    def _inferred(self, task: TaskClass) -> tuple[SpreadConstraint, ...]:
        selector = inferred_selector(self.session, self.session.task(task.task))
        if not selector.requirements:
            return ()
        return tuple(replace(each, selector=selector) for each in self.defaults.constraints)


_UNKNOWN: tuple[SpreadConstraint, ...] = (SpreadConstraint(0, "", hard=False),)
