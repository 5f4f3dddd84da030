"""The systems whose metric names can be served, by the value of `--metrics-names`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry

from navarch.live.ops.metric_names.followed_metrics import FollowedMetrics
from navarch.live.ops.metric_names.kai import KaiMetrics
from navarch.live.ops.metric_names.kube_scheduler import KubeSchedulerMetrics
from navarch.live.ops.metric_names.volcano import VolcanoMetrics

SYSTEMS: Final[Mapping[str, Callable[[CollectorRegistry], FollowedMetrics]]] = {
    "volcano": VolcanoMetrics,
    "kai": KaiMetrics,
    "kube-scheduler": KubeSchedulerMetrics,
}


def followed_metrics(system: str, registry: CollectorRegistry) -> FollowedMetrics:
    """`system`: a key of SYSTEMS; empty: no further names."""
    return SYSTEMS[system](registry) if system else FollowedMetrics()
