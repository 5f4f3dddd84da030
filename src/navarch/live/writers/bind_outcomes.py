"""What is told of a bind that ended: metrics, and the event Scheduled of its pod."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from navarch.live.instructions import BindResult, EndBind
from navarch.live.ops.metric_names.followed_metrics import FollowedMetrics
from navarch.live.ops.metrics import Metrics
from navarch.live.writers.events import Events, Regarding, pod_reference
from navarch.model.cluster import Cluster


class BindOutcomes:
    """`cluster` gives the cluster of the cache. `clock` is seconds since the epoch."""

    def __init__(
        self,
        metrics: Metrics,
        followed_metrics: FollowedMetrics,
        events: Events,
        cluster: Callable[[], Cluster],
        clock: Callable[[], float],
    ) -> None:
        self._metrics = metrics
        self._followed_metrics = followed_metrics
        self._events = events
        self._cluster = cluster
        self._clock = clock
        self._bound_ok = metrics.binds.labels("ok")

    def take(self, ended: EndBind) -> None:
        bind = ended.bind
        if ended.result is not BindResult.BOUND:
            self._metrics.binds.labels(ended.result.value).inc()
            return
        self._bound_ok.inc()
        binding = asyncio.get_running_loop().time() - bind.since
        self._metrics.bind_seconds.observe(binding)
        task = self._cluster().task(bind.uid)
        if task is not None:
            waited = max(0.0, self._clock() - task.created)
            self._metrics.wait_seconds.observe(waited)
            self._followed_metrics.bound(task, waited, binding)
        if ended.announce:
            self._events.emit(
                pod_reference(bind.namespace, bind.name, bind.uid),
                "Normal",
                "Scheduled",
                "Binding",
                f"Successfully assigned {bind.namespace}/{bind.name} to {bind.node}",
                Regarding("Node", "", bind.node),
                repeats=False,
            )
