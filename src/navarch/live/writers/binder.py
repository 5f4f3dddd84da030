"""Bindings: many in flight, each with a known end.

A bind is assumed when it is decided and written as soon as there is room. Its outcome is one of three: the API server said yes;
it said no (then the pod is what the server says it is); or nobody knows, because the connection broke with the request on
the wire. What is not known is asked for (`resync`) before anything is repeated, so that no pod is ever bound twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec import Struct

from navarch.apis.kai.podgroups import GPU_GROUP_LABEL
from navarch.kube.errors import Conflict, KubeError, NotFound, OutcomeUnknown, ServerFault, Unreachable
from navarch.kube.write.pool import Done, Outcome, Priority, Write, WritePool
from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.bind_requests import BindRequests
from navarch.live.writers.events import Events, Regarding, pod_reference
from navarch.live.writers.outbox import Outbox

log = logging.getLogger(__name__)


class AskTruth(Protocol):
    """Find out what the API server says of this pod; see `resync`."""

    def ask(self, bind: AssumedBind, delay: float) -> None: ...


class BindHooks(Struct, frozen=True):
    """What others do with the end of a bind."""

    bound: Callable[[AssumedBind], None]
    failed: Callable[[AssumedBind, str], None]
    dropped: Callable[[AssumedBind], None]
    """The pod was deleted, or bound to another node by somebody else, before its binding was written."""


class Binder:
    """`before(bind, go)` may do what has to be done first (volumes) and calls `go()` when the binding may be written."""

    def __init__(self, pool: WritePool, cache: ClusterCache, assumed: AssumedPods, events: Events, hooks: BindHooks) -> None:
        self.outbox = Outbox(pool, room=128)
        self.resync: AskTruth | None = None
        self.requests: BindRequests | None = None
        self.label_gpus = False
        """Write the shared GPUs of a pod on it with its binding."""
        self.before: Callable[[AssumedBind, Callable[[], None]], None] = lambda bind, go: go()
        self._cache = cache
        self._assumed = assumed
        self._events = events
        self._hooks = hooks
        self._void_before = 0.0

    def void_before(self, now: float) -> None:
        """Binds decided before this moment that were not sent never will be."""
        self._void_before = now

    def bind(self, bind: AssumedBind) -> None:
        """The bind has been assumed: write it. Who is to carry it out is known now: its group may be gone when it is sent."""
        bind.by_request = self.requests is not None and self.requests.used_for(bind.job)
        self.before(bind, lambda: self._enqueue(bind))

    def _enqueue(self, bind: AssumedBind) -> None:
        self.outbox.put(lambda: self._make(bind))

    def _make(self, bind: AssumedBind) -> tuple[Write, Done] | None:
        if self._assumed.binds.get(bind.uid) is not bind:
            self._not_ours(bind)
            return None
        if bind.since < self._void_before:
            del self._assumed.binds[bind.uid]
            self._cache.refresh(bind.uid)
            self._hooks.dropped(bind)
            return None
        if bind.by_request:
            assert self.requests is not None
            request = self.requests.write(bind)
            if request is None:
                self.forget(bind, "the pod is not known any more")
                return None
            bind.delegated = True
            return request, lambda outcome: self._requested(bind, request, outcome)
        write = binding(bind, self.label_gpus)
        return write, lambda outcome: self._ended(bind, write, outcome)

    def _ended(self, bind: AssumedBind, write: Write, outcome: Outcome) -> None:
        if not isinstance(outcome, KubeError):
            self.succeeded(bind)
            return
        if isinstance(outcome, NotFound):
            # The pod, most likely; its namespace, perhaps. The watch will tell; until then it is what it was.
            self.forget(bind, str(outcome))
        elif isinstance(outcome, Conflict):
            log.info("bind of %s/%s to %s: %s", bind.namespace, bind.name, bind.node, outcome)
            bind.refused = not write.maybe_done
            self._ask(bind, 0.0)
        elif isinstance(outcome, OutcomeUnknown | ServerFault) or write.maybe_done:
            # An attempt before this refusal may have been carried out.
            log.warning("bind of %s/%s to %s: outcome unknown: %s", bind.namespace, bind.name, bind.node, outcome)
            self._ask(bind, 1.0)
        elif isinstance(outcome, Unreachable):
            self.forget(bind, str(outcome))
        else:
            log.error("bind of %s/%s to %s was refused: %s", bind.namespace, bind.name, bind.node, outcome)
            self.forget(bind, str(outcome))

    def _requested(self, bind: AssumedBind, write: Write, outcome: Outcome) -> None:
        """A request for another binder was written, or not. If nobody knows, the watch shows it or the resync asks; the resync
        asks as well where the watch never shows a request that was written."""
        if not isinstance(outcome, KubeError):
            self._hooks.bound(bind)
            bind.written, bind.since = True, asyncio.get_running_loop().time()
            self._tell(bind)
        elif isinstance(outcome, OutcomeUnknown | ServerFault) or write.maybe_done:
            self._ask(bind, 5.0)
        else:
            self.forget(bind, str(outcome))

    def _ask(self, bind: AssumedBind, delay: float) -> None:
        assert self.resync is not None
        if self._assumed.binds.get(bind.uid) is bind:
            self.resync.ask(bind, delay)
        else:
            self.overtaken(bind)

    def overtaken(self, bind: AssumedBind) -> None:
        """The watch was quicker than the answer: it has shown the pod on its node, or gone."""
        if bind.written:
            return  # told already
        task = self._cache.cluster.task(bind.uid)
        if task is not None and task.node == bind.node:
            self.succeeded(bind)
        else:
            self._hooks.dropped(bind)

    def _not_ours(self, bind: AssumedBind) -> None:
        """We did not bind it and it is not for us any more. Whoever put it on the same node uses what was prepared for it there."""
        bind.refused = True
        self.overtaken(bind)

    def succeeded(self, bind: AssumedBind) -> None:
        """The API server has the binding. The assumption stays until the watch shows it. If somebody else made the same one
        (who led before us, mostly) it is theirs to tell; of a request it was told when it was written."""
        bind.written = True
        self._hooks.bound(bind)
        if not bind.refused and not bind.delegated:
            self._tell(bind)

    def _tell(self, bind: AssumedBind) -> None:
        self._events.emit(
            pod_reference(bind.namespace, bind.name, bind.uid),
            "Normal",
            "Scheduled",
            "Binding",
            f"Successfully assigned {bind.namespace}/{bind.name} to {bind.node}",
            Regarding("Node", "", bind.node),
            repeats=False,
        )

    def forget(self, bind: AssumedBind, why: str) -> None:
        """The pod is not bound: give its place back and let it be decided again."""
        if self._assumed.binds.get(bind.uid) is not bind:
            self._not_ours(bind)
            return
        del self._assumed.binds[bind.uid]
        self._assumed.postpone(bind.uid, asyncio.get_running_loop().time())
        self._cache.refresh(bind.uid)
        self._hooks.failed(bind, why)


def binding(bind: AssumedBind, label_gpus: bool = False) -> Write:
    """The write, put together by hand since there are thousands: names in the API hold nothing that needs escaping.

    Not repeatable: a second one is refused, and that refusal would hide the success of the first."""
    extra = _gpu_marks(bind) if label_gpus and bind.gpu_groups else ""
    body = (
        '{"apiVersion":"v1","kind":"Binding","metadata":'
        f'{{"name":"{bind.name}","namespace":"{bind.namespace}","uid":"{bind.uid}"{extra}}},'
        f'"target":{{"apiVersion":"v1","kind":"Node","name":"{bind.node}"}}}}'
    )
    path = f"/api/v1/namespaces/{bind.namespace}/pods/{bind.name}/binding"
    return Write("POST", path, body.encode(), priority=Priority.BINDING)


def _gpu_marks(bind: AssumedBind) -> str:
    """Labels and annotations that say on which shared GPUs the pod sits; the API server copies them to the pod. Before Kubernetes
    1.35 it copies annotations alone, so the GPUs stand there as well."""
    groups = bind.gpu_groups
    labels = {GPU_GROUP_LABEL: groups[0]} if len(groups) == 1 else {f"{GPU_GROUP_LABEL}/{group}": group for group in groups}
    annotations = {GPU_GROUP_LABEL: ",".join(groups), "received-resource-type": "Fraction"}
    marks = {"labels": labels, "annotations": annotations}
    return "," + msgspec.json.encode(marks).decode()[1:-1]
