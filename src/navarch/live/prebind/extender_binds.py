"""Binds through an extender: one that has a `bindVerb` binds the pods that it is interested in, as a step of preparation.

The extender writes the binding itself. When it says that it has, the pod is bound or about to be: the binder's own write is then not
sent, or refused by the API server because the pod has its node, and the outcome is looked up.
"""

from __future__ import annotations

from navarch.engine.points.conversation import Question, Request
from navarch.engine.policy import Policy
from navarch.extenders import ExtenderClient
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cycle import Cycle
from navarch.live.prebind.preparation import PreparationFailed
from navarch.plugins.kube_scheduler.extenders import ExtenderConfig, decoded, read_extenders


class ExtenderBinds:
    """A `Step` of `Preparations`."""

    def __init__(self, cache: ClusterCache, extenders: ExtenderClient) -> None:
        self._cache = cache
        self._extenders = extenders
        self._wanted: dict[str, ExtenderConfig] = {}

    def plan(self, cycle: Cycle) -> None:
        binder = binding_extender(cycle.policy)
        if binder is None:
            return
        for bind in cycle.record.binds:
            task = self._cache.cluster.task(bind.uid)
            if task is not None and binder.manages({name for name, _ in task.shape.requests}):
                self._wanted[bind.uid] = binder

    def wants(self, uid: str) -> bool:
        return uid in self._wanted

    async def prepare(self, bind: AssumedBind) -> None:
        extender = self._wanted.get(bind.uid)
        if extender is None:
            return
        body = {"PodName": bind.name, "PodNamespace": bind.namespace, "PodUID": bind.uid, "Node": bind.node}
        exchange = await self._extenders.answer(Question(extender.server, (Request(extender.bind_verb, body),)))
        found = decoded(exchange.answers[0])
        error = found if isinstance(found, str) else found.get("error") if isinstance(found, dict) else "found a list"
        if error:
            raise PreparationFailed(f"the extender {extender.url_prefix} did not bind the pod: {error}")

    async def undo(self, bind: AssumedBind) -> None:
        self._wanted.pop(bind.uid, None)

    def done(self, bind: AssumedBind) -> None:
        self._wanted.pop(bind.uid, None)


def binding_extender(policy: Policy) -> ExtenderConfig | None:
    option = policy.plugin("extenders")
    found = read_extenders(option.arguments.get("extenders")) if option is not None else []
    return next((each for each in found if each.bind_verb), None)
