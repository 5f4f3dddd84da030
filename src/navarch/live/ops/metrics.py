"""What is measured, under names that docs/running.md lists.

Labels are bounded: actions, kinds, results, resources and queues, never pods or jobs. Queues beyond `MOST_QUEUES` are added up under
one name, so that a cluster with a queue per user does not drown its Prometheus. What an alert asks for (`increase(...) > 0`) is
there with 0 from the start: of a series that appears as 1 Prometheus does not know that it rose. The time at which each counter was
made, which the library adds as a series of its own, is left out: the process's start says the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from navarch.engine.record import CycleRecord, QueueFigures
from navarch.model.resources import UNLIMITED
from navarch.version import version

disable_created_metrics()  # type: ignore[no-untyped-call]

MOST_QUEUES = 500
MOST_RESOURCES = 50
"""Resource names in the series of queues: those that nodes have first. Pods can name any number of others."""
OTHERS = "(others)"
_CYCLE = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_WAIT = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 12 * 3600.0, 24 * 3600.0, 72 * 3600.0)
_LATENCY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        Gauge("navarch_build_info", "1, with the version that runs.", ["version"], registry=registry).labels(version()).set(1)
        self.cycles = Counter("navarch_cycles", "Cycles run.", registry=registry)
        self.failed_cycles = Counter("navarch_failed_cycles", "Cycles that ended in an error.", registry=registry)
        self.job_failures = Counter(
            "navarch_job_failures",
            "Jobs that a cycle set aside because a rule failed on them, by the rule.",
            ["where"],
            registry=registry,
        )
        self.node_failures = Counter(
            "navarch_node_failures",
            "Nodes that a cycle left out because a rule failed on them, by the rule.",
            ["where"],
            registry=registry,
        )
        self.plugin_failures = Counter(
            "navarch_plugin_failures",
            "Cycles in which a plugin failed and refused what needs its consent, by the plugin.",
            ["where"],
            registry=registry,
        )
        self.task_failures = Counter(
            "navarch_task_failures",
            "Failures of the scheduler's own tasks, by task. A task that failed is started again.",
            ["task"],
            registry=registry,
        )
        self.cycle_seconds = Histogram(
            "navarch_cycle_duration_seconds", "From snapshot to decisions.", buckets=_CYCLE, registry=registry
        )
        self.part_seconds = Histogram(
            "navarch_cycle_part_duration_seconds",
            "Parts of a cycle: snapshot, open, each action, each plugin's opening and closing, close, commit.",
            ["part"],
            buckets=_CYCLE,
            registry=registry,
        )
        self.binds = Counter("navarch_binds", "Bindings by how they ended.", ["result"], registry=registry)
        self.bind_seconds = Histogram(
            "navarch_bind_duration_seconds", "From decision to the API server's yes.", buckets=_LATENCY, registry=registry
        )
        self.wait_seconds = Histogram(
            "navarch_pod_wait_seconds", "From a pod's creation to its binding.", buckets=_WAIT, registry=registry
        )
        self.evictions = Counter("navarch_evictions", "Evictions by how they ended.", ["action", "result"], registry=registry)
        self.repeated_evictions = Counter(
            "navarch_evictions_repeated", "Jobs that were evicted again before they had their run time.", registry=registry
        )
        self.gangs_released = Counter(
            "navarch_gangs_released", "Gangs given up after being bound in part for too long.", registry=registry
        )
        self.bad_objects = Counter("navarch_bad_objects", "Objects that cannot be read.", ["kind"], registry=registry)
        self.cache_drift = Counter(
            "navarch_cache_drift", "Objects of the cache that differed from the API server.", ["kind"], registry=registry
        )
        self.status_writes = Counter(
            "navarch_status_writes", "Status patches by kind and result.", ["kind", "result"], registry=registry
        )
        self.events = Counter("navarch_events", "Events written, by type and reason.", ["type", "reason"], registry=registry)
        self.policy_loads = Counter("navarch_policy_loads", "Readings of the policy file.", ["result"], registry=registry)
        self.policy_in_force = Gauge(
            "navarch_policy_in_force", "1 while the policy in force is the file's content, 0 while that is refused.", registry=registry
        )
        self.leading = Gauge("navarch_leading", "1 while this process decides.", registry=registry)
        self.pending_pods = Gauge("navarch_pending_pods", "Pods that wait for a node.", registry=registry)
        self.pending_jobs = Gauge(
            "navarch_pending_jobs",
            "Jobs with pending pods: active, or held (unschedulable or backing off).",
            ["state"],
            registry=registry,
        )
        self.assumed = Gauge("navarch_assumed", "Decisions not yet seen in the API.", ["kind"], registry=registry)
        self.nodes = Gauge("navarch_nodes", "Nodes in the cache.", registry=registry)
        self.closed_nodes = Gauge(
            "navarch_closed_nodes", "Nodes that take no more pods because one on them cannot be read.", registry=registry
        )
        self.pods = Gauge("navarch_pods", "Pods in the cache: our pending pods, and all pods that hold a node.", registry=registry)
        self.queue_share = Gauge("navarch_queue_share", "What a queue holds over what it is owed.", ["queue"], registry=registry)
        self.queue_amount = Gauge(
            "navarch_queue_resource",
            "Figures of a queue by resource, in the model's units (millicores, bytes, thousandths of devices).",
            ["queue", "figure", "resource"],
            registry=registry,
        )
        self._parts: dict[str, Histogram] = {}
        self.policy_in_force.set(1)
        for counter, results in ((self.binds, ("ok", "failed", "dropped")), (self.policy_loads, ("ok", "refused"))):
            for result in results:
                counter.labels(result)

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
        on_nodes = {
            name for each in figures for amounts in (each.allocated, each.deserved) for name, amount in amounts.items() if amount
        }
        others = {name for each in figures for name in each.request} - on_nodes
        told = frozenset([*sorted(on_nodes), *sorted(others)][:MOST_RESOURCES])
        for number, each in enumerate(figures):
            queue = each.queue if number < MOST_QUEUES else OTHERS
            self.queue_share.labels(queue).inc(each.share)
            for figure, amounts in (("allocated", each.allocated), ("requested", each.request), ("deserved", each.deserved)):
                for resource, amount in amounts.items():
                    if amount < UNLIMITED and resource in told:
                        self.queue_amount.labels(queue, figure, resource).inc(amount)

    def watch(self, name: str, text: str, label: str, read: Callable[[], dict[str, float]], *, counts: bool = False) -> None:
        """Values that are computed when they are read. `counts`: they never decrease."""
        self.registry.register(ComputedMetric(CounterMetricFamily if counts else GaugeMetricFamily, name, text, label, read))


class ComputedMetric(Collector):
    """A metric with one label whose values are computed when they are read."""

    def __init__(
        self,
        family: type[CounterMetricFamily] | type[GaugeMetricFamily],
        name: str,
        text: str,
        label: str,
        read: Callable[[], dict[str, float]],
    ) -> None:
        self.label = label
        self._family, self._name, self._text, self._read = family, name, text, read

    def collect(self) -> list[CounterMetricFamily | GaugeMetricFamily]:
        family = self._family(self._name, self._text, labels=[self.label])
        for label, value in sorted(self._read().items()):
            family.add_metric([label], value)
        return [family]


def counting(counter: Counter) -> Callable[[str, str], None]:
    """Counts by two labels. The child of each pair is looked up once: a lookup costs ten times as much as counting."""

    @cache
    def child(first: str, second: str) -> Counter:
        return counter.labels(first, second)

    return lambda first, second: child(first, second).inc()
