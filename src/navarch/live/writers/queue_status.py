"""Volcano's Queue status: what the jobs of the queue and of its descendants hold, and the state Open if none is set.

Volcano's own controller sets the state when it runs; where it does not, a queue without a state would admit nothing under
Volcano's rules. A state that a user set is never written, not even unchanged: we may not have seen yet that it was set to
another. Other dialects' queues carry no figures that a scheduler writes.
"""

from __future__ import annotations

import logging
from functools import partial

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from navarch.engine.record import QueueFigures
from navarch.kube.errors import KubeError
from navarch.kube.resources import Resource
from navarch.kube.write.pool import Done, Outcome, Priority, Write, WritePool
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.group_status import MERGE
from navarch.live.writers.outbox import Count, Outbox, uncounted
from navarch.model.resources import format_amount

log = logging.getLogger(__name__)

QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
WRITE_INTERVAL = 1.0
LONGEST = 30.0
"""Seconds until a write that failed again and again is tried once more."""


class _Status(Struct):
    allocated: dict[str, str]
    state: str = ""
    """Empty: it is not written."""


class _Queue(Struct):
    uid: str
    """uid of the queue: another queue may have the same name later."""
    wanted: _Status
    sent: _Status | None = None
    in_flight: bool = False
    failures: int = 0
    again: float = 0.0
    """Not before this, after a failure."""

    @property
    def differs(self) -> bool:
        sent, wanted = self.sent, self.wanted
        return sent is None or sent.allocated != wanted.allocated or wanted.state not in ("", sent.state)


class QueueStatuses:
    def __init__(self, pool: WritePool, cache: ClusterCache, *, enabled: bool = True, count: Count = uncounted) -> None:
        self.outbox = Outbox(pool, room=4)
        self._count = count
        self._cache = cache
        self._enabled = enabled
        self._queues: dict[str, _Queue] = {}
        self._newest: list[QueueFigures] | None = None
        self._flushed = -WRITE_INTERVAL

    def take(self, figures: list[QueueFigures]) -> None:
        """What a cycle found the queues to hold; looked at when the next writes are due, not in every cycle."""
        self._newest = figures

    def _sum_up(self, figures: list[QueueFigures]) -> None:
        specs = self._cache.cluster.queues
        total: dict[str, dict[str, int]] = {each.queue: {} for each in figures}
        for each in figures:
            name, above = each.queue, set[str]()
            while name in total and name not in above:
                above.add(name)
                for resource, amount in each.allocated.items():
                    total[name][resource] = total[name].get(resource, 0) + amount
                name = specs[name].parent if name in specs and not each.with_below else ""
        for name in self._queues.keys() - total.keys():
            del self._queues[name]
        for name, allocated in total.items():
            spec = specs.get(name)
            if spec is None or spec.dialect != "volcano":
                continue
            held = {r: format_amount(r, amount) for r, amount in sorted(allocated.items()) if amount}
            wanted = _Status(held, "" if spec.state else "Open")
            queue = self._queues.get(name)
            if queue is None or queue.uid != spec.uid:
                self._queues[name] = _Queue(spec.uid, wanted)
            else:
                queue.wanted = wanted
                if spec.state and queue.sent is not None:
                    queue.sent.state = ""

    def forget_all(self) -> None:
        """Forget what was written: only what queues show counts."""
        self._queues.clear()

    def flush(self, now: float) -> None:
        if not self._enabled or now - self._flushed < WRITE_INTERVAL:
            return
        self._flushed = now
        if self._newest is not None:
            self._sum_up(self._newest)
            self._newest = None
        for name, queue in self._queues.items():
            if queue.differs and not queue.in_flight and now >= queue.again:
                queue.in_flight = True
                self.outbox.put(partial(self._make, name, queue))

    def _make(self, name: str, queue: _Queue) -> tuple[Write, Done] | None:
        if self._queues.get(name) is not queue:
            return None
        # A resource that is no longer held has to be removed by name. We only know the resources that we wrote last. Without that
        # (another writer, or a write with an unknown outcome) any resource may be there.
        before = self._cache.cluster.space.names if queue.sent is None else queue.sent.allocated
        queue.sent = replace(queue.wanted)
        held, state = queue.wanted.allocated, queue.wanted.state
        status: dict[str, object] = {"allocated": {**held, **dict.fromkeys(sorted(set(before) - held.keys()))}}
        if state:
            status["state"] = state
        body = msgspec.json.encode({"status": status})
        path = QUEUES.path(name=name, subresource="status")
        write = Write("PATCH", path, body, content_type=MERGE, priority=Priority.STATUS, repeatable=True)
        return write, lambda outcome: self._ended(name, queue, outcome)

    def _ended(self, name: str, queue: _Queue, outcome: Outcome) -> None:
        queue.in_flight = False
        if isinstance(outcome, KubeError):
            wait = min(LONGEST, WRITE_INTERVAL * 2 ** min(queue.failures, 10))
            log.warning("status of Queue %s was not written: %s; again in %.1f s", name, outcome, wait)
            queue.sent, queue.failures, queue.again = None, queue.failures + 1, self._flushed + wait
        else:
            queue.failures, queue.again = 0, 0.0
        self._count("Queue", "error" if isinstance(outcome, KubeError) else "ok")
