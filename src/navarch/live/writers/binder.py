"""Bindings: many in flight, each with a known outcome.

A bind is assumed when it is decided, and written when a slot is free. It ended if the API server accepted it, or said that this very
pod is not there (`kube.answers`). After every other answer, and without one, it is asked whether the pod is bound (`resync`), and its
place stays taken until that is known. So no place is given away while a binding stands, and no pod is bound twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

import msgspec

from navarch.apis.kai.objects import NUMA_PREDICTED, zone_amounts
from navarch.apis.kai.podgroups import GPU_GROUP_LABEL
from navarch.kube.errors import Conflict, KubeError, NotFound, ServerFault, TransportError
from navarch.kube.write.pool import Done, Outcome, Priority, Write, WritePool
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.core import LiveCore
from navarch.live.writers.bind_requests import BindRequests
from navarch.live.writers.outbox import Outbox

log = logging.getLogger(__name__)


class OutcomeLookup(Protocol):
    """Asks the API server about a pod whose bind has an unknown outcome; see `resync`."""

    def ask(self, bind: AssumedBind, delay: float) -> None: ...


Prepare = Callable[[AssumedBind, Callable[[], None]], None]
"""`prepare(bind, go)` calls `go()` when volumes and devices of the pod are ready."""


class Binder:
    """`requests`: the binder for pods of KAI's groups; None: we bind them. `label_gpus`: write the shared GPUs of a pod with its
    binding. `clock`: the event loop's unless given."""

    def __init__(
        self,
        pool: WritePool,
        core: LiveCore,
        resync: OutcomeLookup,
        *,
        prepare: Prepare = lambda bind, go: go(),
        requests: BindRequests | None = None,
        label_gpus: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.outbox = Outbox(pool, room=128)
        self._core = core
        self._resync = resync
        self._prepare = prepare
        self._requests = requests
        self._label_gpus = label_gpus
        self._clock = clock or _now

    def bind(self, bind: AssumedBind) -> None:
        """Write a bind that was assumed. Which binder carries it out is decided now: the group may be gone when it is sent."""
        bind.by_request = self._requests is not None and self._requests.used_for(bind.job)
        self._prepare(bind, lambda: self._enqueue(bind))

    def _enqueue(self, bind: AssumedBind) -> None:
        if bind.by_request:
            assert self._requests is not None
            self._requests.turns.ask(bind, lambda: self.outbox.put(lambda: self._make(bind)))
        else:
            self.outbox.put(lambda: self._make(bind))

    def flush(self) -> None:
        """Write the requests whose turn has come."""
        if self._requests is not None:
            self._requests.turns.look()

    def _make(self, bind: AssumedBind) -> tuple[Write, Done] | None:
        try:
            return self._write(bind)
        except Exception as error:
            # Nothing was sent. The pod must not stay assumed while nothing works on it.
            log.exception("bind of %s/%s to %s could not be written", bind.namespace, bind.name, bind.node)
            self._core.bind_failed(bind, f"{type(error).__name__}: {error}", self._clock())
            return None

    def _write(self, bind: AssumedBind) -> tuple[Write, Done] | None:
        if not self._core.may_send(bind):
            return None
        if bind.by_request:
            assert self._requests is not None
            request = self._requests.write(bind)
            if request is None:
                self._core.bind_failed(bind, "the pod is not known any more", self._clock())
                return None
            bind.delegated = True
            return request, lambda outcome: self._requested(bind, request, outcome)
        write = binding_write(bind, self._label_gpus)
        return write, lambda outcome: self._ended(bind, write, outcome)

    def _ended(self, bind: AssumedBind, write: Write, outcome: Outcome) -> None:
        if not isinstance(outcome, KubeError):
            self._core.bind_succeeded(bind)
            return
        if isinstance(outcome, NotFound):
            self._core.bind_failed(bind, str(outcome), self._clock())
            return
        bind.answer = str(outcome)
        where = f"{bind.namespace}/{bind.name} to {bind.node}"
        if isinstance(outcome, Conflict):
            log.info("bind of %s: %s", where, outcome)
            bind.refused = not write.maybe_done
            self._ask(bind, 0.0)
        elif isinstance(outcome, TransportError | ServerFault) or write.maybe_done:
            log.warning("bind of %s: outcome unknown: %s", where, outcome)
            self._ask(bind, 1.0)
        else:
            fields = {"pod": f"{bind.namespace}/{bind.name}", "node": bind.node, "job": bind.job, "reason": "BindingRefused"}
            log.error("bind of %s was refused: %s", where, outcome, extra=fields)
            self._ask(bind, 0.0)

    def _requested(self, bind: AssumedBind, write: Write, outcome: Outcome) -> None:
        """The outcome of a request to another binder. If it is unknown, the watch shows the request or the resync asks. The resync
        also asks for a request that was written and that the watch never shows."""
        if not isinstance(outcome, KubeError):
            self._core.request_succeeded(bind, self._clock())
            return
        bind.answer = str(outcome)
        self._ask(bind, 5.0 if isinstance(outcome, TransportError | ServerFault) or write.maybe_done else 0.0)

    def _ask(self, bind: AssumedBind, delay: float) -> None:
        if self._core.is_assumed(bind):
            self._resync.ask(bind, delay)
        else:
            self._core.bind_overtaken(bind)


def _now() -> float:
    return asyncio.get_running_loop().time()


def binding_write(bind: AssumedBind, label_gpus: bool = False) -> Write:
    """The write. Its JSON is formatted by hand because there are thousands of them; names in the API need no escaping.

    Not repeatable: a second attempt is refused, and that refusal would hide the success of the first."""
    marked = bind.annotations or bind.numa_placement or (label_gpus and bind.gpu_groups)
    extra = _marks(bind, label_gpus) if marked else ""
    body = (
        '{"apiVersion":"v1","kind":"Binding","metadata":'
        f'{{"name":"{bind.name}","namespace":"{bind.namespace}","uid":"{bind.uid}"{extra}}},'
        f'"target":{{"apiVersion":"v1","kind":"Node","name":"{bind.node}"}}}}'
    )
    path = f"/api/v1/namespaces/{bind.namespace}/pods/{bind.name}/binding"
    return Write("POST", path, body.encode(), priority=Priority.BINDING)


def _marks(bind: AssumedBind, label_gpus: bool) -> str:
    """Labels and annotations that name the devices and NUMA zones of the pod. The API server copies them to the pod in the same write
    that sets its node: a binding that fails leaves none of them. Before Kubernetes 1.35 it copies only annotations, so shared GPUs are
    written there as well."""
    annotations = dict(bind.annotations)
    if bind.numa_placement:
        annotations[NUMA_PREDICTED] = msgspec.json.encode(zone_amounts(bind.numa_placement)).decode()
    labels = {}
    if label_gpus and bind.gpu_groups:
        groups = bind.gpu_groups
        labels = {GPU_GROUP_LABEL: groups[0]} if len(groups) == 1 else {f"{GPU_GROUP_LABEL}/{group}": group for group in groups}
        annotations |= {GPU_GROUP_LABEL: ",".join(groups), "received-resource-type": "Fraction"}
    marks = {"labels": labels, "annotations": annotations} if labels else {"annotations": annotations}
    return "," + msgspec.json.encode(marks).decode()[1:-1]
