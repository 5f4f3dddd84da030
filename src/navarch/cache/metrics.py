"""What is measured, under names that docs/running.md lists.

Labels are bounded: actions, kinds, results and queues, never pods or jobs. Queues beyond `MOST_QUEUES` are added up under
one name, so that a cluster with a queue per user does not drown its Prometheus.
"""

from __future__ import annotations

from collections.abc import Callable

from navarch.cache.exposition import Histogram, Registry
from navarch.engine.record import CycleRecord, QueueFigures
from navarch.model.resources import UNLIMITED

MOST_QUEUES = 500
OTHERS = "(others)"
_CYCLE = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_LATENCY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    def __init__(self) -> None:
        registry = self.registry = Registry()
        self.cycles = registry.counter("navarch_cycles", "Cycles run.")
        self.failed_cycles = registry.counter("navarch_failed_cycles", "Cycles that ended in an error.")
        self.cycle_seconds = registry.histogram("navarch_cycle_duration_seconds", "From snapshot to decisions.", _CYCLE)
        self.part_seconds = registry.histograms(
            "navarch_cycle_part_duration_seconds", "Parts of a cycle: snapshot, open, each action, close, commit.", _CYCLE, "part"
        )
        self.binds = registry.counters("navarch_binds", "Bindings by how they ended.", "result")
        self.bind_seconds = registry.histogram(
            "navarch_bind_duration_seconds", "From decision to the API server's yes.", _LATENCY
        )
        self.evictions = registry.counters("navarch_evictions", "Evictions by how they ended.", "action", "result")
        self.gangs_released = registry.counter(
            "navarch_gangs_released", "Gangs given up after being bound in part for too long."
        )
        self.bad_objects = registry.counters("navarch_bad_objects", "Objects set aside because they cannot be read.", "kind")
        self.status_writes = registry.counters("navarch_status_writes", "Status patches by kind and result.", "kind", "result")
        self.events = registry.counters("navarch_events", "Events written, by type and reason.", "type", "reason")
        self.policy_loads = registry.counters("navarch_policy_loads", "Readings of the policy file.", "result")
        self.leading = registry.gauge("navarch_leading", "1 while this process decides.")
        self.pending_pods = registry.gauge("navarch_pending_pods", "Pods that wait for a node.")
        self.pending_jobs = registry.gauges("navarch_pending_jobs", "Jobs with pods that wait.", "state")
        self.assumed = registry.gauges("navarch_assumed", "Decisions not yet seen in the API.", "kind")
        self.nodes = registry.gauge("navarch_nodes", "Nodes known.")
        self.pods = registry.gauge("navarch_pods", "Pods known.")
        self.queue_share = registry.gauges("navarch_queue_share", "What a queue holds over what it is owed.", "queue")
        self.queue_amount = registry.gauges(
            "navarch_queue_resource",
            "Figures of a queue by resource, in the model's units (millicores, bytes, thousandths of devices).",
            "queue",
            "figure",
            "resource",
        )
        self._parts: dict[str, Histogram] = {}
        self._queues: dict[str, str] = {}

    def cycle(self, record: CycleRecord, snapshot: float, total: float, commit: float) -> None:
        self.cycles.inc()
        self.cycle_seconds.observe(total)
        for name, seconds in (("snapshot", snapshot), *record.timings.items(), ("commit", commit)):
            part = self._parts.get(name)
            if part is None:
                part = self._parts[name] = self.part_seconds.labels(name)
            part.observe(seconds)

    def queues(self, figures: list[QueueFigures]) -> None:
        """Cost: about a microsecond a figure, so the caller does it at most once a period."""
        self.queue_share.clear()
        self.queue_amount.clear()
        for number, each in enumerate(figures):
            queue = each.queue if number < MOST_QUEUES else OTHERS
            self.queue_share.labels(queue).inc(each.share)
            for figure, amounts in (("allocated", each.allocated), ("requested", each.request), ("deserved", each.deserved)):
                for resource, amount in amounts.items():
                    if amount < UNLIMITED:
                        self.queue_amount.labels(queue, figure, resource).inc(amount)

    def watch(self, name: str, text: str, label: str, read: Callable[[], dict[str, float]]) -> None:
        """A gauge whose values are read when somebody asks for them."""
        self.registry.watch(name, text, label, read)
