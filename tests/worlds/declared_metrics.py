"""The metrics that a registry declares, with their labels, also before any of them has a value."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric

from navarch.live.ops.metrics import ComputedMetric


def declared_metrics(registry: CollectorRegistry) -> Iterator[tuple[Metric, set[str]]]:
    """Each metric family and its labels. prometheus_client has no public way to ask for either."""
    for collector in list(registry._collector_to_names):
        labels = {collector.label} if isinstance(collector, ComputedMetric) else set(getattr(collector, "_labelnames", ()))
        for family in collector.collect():
            yield family, labels
