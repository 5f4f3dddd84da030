"""DynamicResources: the devices that a pod claims exist and are free where it goes.

A claim that was allocated holds the pod to the nodes that reach its devices. Any other is tried on each node (claims.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from navarch.engine.figures import Figures
from navarch.engine.node_functions import NodeFilter, NodeScorer, Refusal, Rejection, Scope, TaskClass
from navarch.engine.reasons import Event
from navarch.engine.session import Session
from navarch.model.objects.devices import ResourceClaimSpec
from navarch.model.resources import BoolArray, FloatArray
from navarch.plugins.nodeorder.normalise import default_normalise
from navarch.plugins.predicates.devices.claims import Claims, Outcome
from navarch.plugins.predicates.devices.extended_claims import ExtendedClaims
from navarch.plugins.predicates.pods.placed_pods import watch_pods

NOT_HERE = "resourceclaim not available on the node"
IN_USE = "resourceclaim in use"
UNUSABLE = "ClaimUnusable"
"""The code of a claim that gives the pod no devices on any node, also on new ones."""
MOST_USERS = 256
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"

_OBJECTS = (Event.CLAIM_CHANGED, Event.POD_CHANGED)
"""What helps where a claim is not there: no node and no other pod can."""


class DynamicResources(NodeFilter):
    name = "DynamicResources"
    scope = Scope.GLOBAL
    undone_by = (Event.CLAIM_CHANGED, Event.POD_REMOVED, Event.NODE_ADDED, Event.NODE_CHANGED)

    def __init__(self, session: Session) -> None:
        self.session = session
        extended = session.shared(ExtendedClaims)
        watch_pods(session, lambda shape: shape.claims or extended.concerns(shape))

    def applies(self, task: TaskClass) -> bool:
        return bool(task.shape.claims) or bool(self.session.shared(ExtendedClaims).of(task))

    def post_filter(self, task: TaskClass) -> str:
        if not self.applies(task) or self.reject(task) is not None:
            return "no new claims to deallocate"
        if self.session.shared(Claims).release(task, self.session.task(task.task).uid, self._open_but_for_claims(task)):
            return "deallocation of ResourceClaim completed"
        return "still not schedulable"

    def _open_but_for_claims(self, task: TaskClass) -> BoolArray:
        """Nodes that pass the filters before this one and can give the waiting claims their devices. Only for such a node does a claim
        lose its devices: elsewhere the pod would not start either."""
        out: BoolArray = np.ones(len(self.session.nodes), dtype=bool)
        for rule in self.session.filters_for(task):
            if rule is self:
                break
            out &= rule.mask(task, self.session.nodes)
        for part in self.session.shared(Claims).parts(task):
            out &= part.possible()
        return out

    def reject(self, task: TaskClass) -> Rejection | None:
        claims, pod = self.session.shared(Claims), self.session.task(task.task)
        for _, name in task.shape.claims:
            if not name:
                return Rejection(
                    f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet', undone_by=_OBJECTS, reason=UNUSABLE
                )
            claim = claims.claims.get((task.namespace, name))
            if claim is None:
                return Rejection(f'resourceclaim.resource.k8s.io "{name}" not found', undone_by=_OBJECTS, reason=UNUSABLE)
            if claim.deleting:
                return Rejection(f'resourceclaim "{name}" is being deleted', undone_by=_OBJECTS, reason=UNUSABLE)
            if claim.owner is not None and claim.owner[0] == "Pod" and claim.owner[2] != pod.uid:
                made_for = f"was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
                return Rejection(f"ResourceClaim {claim.namespace}/{name} {made_for}", reason=UNUSABLE)
            if len(claim.reserved_for) >= MOST_USERS and pod.uid not in claim.reserved_for:
                return Rejection(IN_USE, reason=UNUSABLE)
            problem = _problem(claim, claims)
            if problem and claim.allocation is None:
                return Rejection(problem, reason=UNUSABLE)
        return None

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        claims = self.session.shared(Claims)
        out = claims.reachable(task)
        for part in claims.parts(task):
            out &= part.possible()
        found: BoolArray = out[at.rows]
        return found

    def explain(self, task: TaskClass, at: Figures) -> Iterable[Refusal]:
        """A node that cannot give a claim its devices says so, whether or not it reaches the devices of the others."""
        claims = self.session.shared(Claims)
        away: BoolArray = ~claims.reachable(task)[at.rows]
        told: dict[str, BoolArray] = {}
        for part in claims.parts(task):
            if part.by_node is None:
                continue
            here = part.by_node.outcome[at.rows]
            among: BoolArray = np.ones_like(away) if part.where is None else part.where[at.rows]
            for number in np.unique(here[among]).tolist():
                outcome = part.by_node.outcomes[number]
                if outcome.solution is None:
                    text = _told(outcome, part.waiting)
                    failed: BoolArray = (here == number) & among
                    told[text] = told[text] | failed if text in told else failed
                    away = away & ~failed
        told[NOT_HERE] = away
        return [Refusal(text, where, unresolvable=True, code="DynamicResources") for text, where in told.items()]


def _told(outcome: Outcome, waiting: Sequence[ResourceClaimSpec]) -> str:
    """Claims with the same content share an answer; each is told of itself."""
    failure = outcome.failure
    if failure is None:
        return outcome.text
    if failure.claim is None:
        return str(failure)
    claim = waiting[failure.claim]
    return f"claim {claim.namespace}/{claim.name}{failure}"


def _problem(claim: ResourceClaimSpec, claims: Claims) -> str:
    """What makes a claim impossible to allocate anywhere."""
    for request in claim.requests:
        for demand in request.alternatives or (request,):
            name = f"{request.name}/{demand.name}" if request.alternatives else request.name
            if demand.unsupported:
                return f"request {name}: Navarch does not support {', '.join(demand.unsupported)}"
            if ("", demand.device_class) not in claims.classes:
                return f"request {name}: device class {demand.device_class} does not exist"
            if demand.admin_access and not _may_administer(claim.namespace, claims):
                return f"request {name}: {claim.namespace} lacks the label {ADMIN_ACCESS}=true that adminAccess needs"
    return ""


def _may_administer(namespace: str, claims: Claims) -> bool:
    """The API server refuses the claim, or its devices, in a namespace without the label."""
    known = claims.session.snapshot.namespaces.get(namespace)
    return known is None or known.labels.get(ADMIN_ACCESS) == "true"


class DevicePreferences(NodeScorer):
    """Nodes on which earlier alternatives of a request can be had."""

    name = "DynamicResources"
    scope = Scope.GLOBAL
    normalises = True

    def __init__(self, session: Session, weight: float) -> None:
        self.session = session
        self.weight = weight

    def applies(self, task: TaskClass) -> bool:
        if not task.shape.claims:
            return False  # extended resources have no alternatives
        return any(request.alternatives for claim in self.session.shared(Claims).waiting(task) for request in claim.requests)

    def raw(self, task: TaskClass, at: Figures) -> FloatArray:
        found: FloatArray = self.session.shared(Claims).preference(task)[at.rows].astype(float)
        return found

    def normalise(self, task: TaskClass, raw: FloatArray, low: float, high: float) -> FloatArray:
        return default_normalise(raw, high)
