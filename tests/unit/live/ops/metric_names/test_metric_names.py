"""Metrics under the names of followed systems: what each shows, and that docs/metrics.md lists exactly these."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.worlds.declared_metrics import declared_metrics
from tests.worlds.live_parts.cluster_cache import group, node, pod, put

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.cli.cluster.metrics_names_option import SYSTEMS as OFFERED
from navarch.engine.record import CycleRecord, Eviction
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.live.core import LiveCore
from navarch.live.cycle import Cycle
from navarch.live.instructions import BindPod, Instruction
from navarch.live.ops.metric_names.followed_metrics import exponential_range
from navarch.live.ops.metric_names.systems import SYSTEMS, followed_metrics
from navarch.live.ops.policy_file import PolicyFile
from navarch.model.objects.queue_usage import QUEUE_USAGE
from navarch.model.spec import QueueShare, QueueSpec

PAGE = (Path(__file__).resolve().parents[5] / "docs" / "metrics.md").read_text(encoding="utf-8")
HEADINGS = {"volcano": "## Volcano", "kai": "## KAI", "kube-scheduler": "## kube-scheduler"}
NOW = 1_000_000.0


class World:
    """A live core with one node of four CPUs under a preset, and the metrics of a system."""

    def __init__(self, system: str, policy: str | dict[str, Any] = "") -> None:
        if isinstance(policy, dict):
            file = PolicyFile("policy.yaml", installed(), text=json.dumps(policy))
        else:
            file = PolicyFile(policy or system, installed())
        self.policy, self.plugins = file.policy, file.registry
        self.emitted: list[Instruction] = []
        self.core = LiveCore(settings_for(self.policy, ("navarch",)), self.emitted.append)
        self.core.cache.put(node("n1"))
        self.core.start_leading(0.0)
        self.registry = CollectorRegistry()
        self.metrics = followed_metrics(system, self.registry)

    def cycle(self) -> Cycle:
        cycle = self.core.decide(self.policy, self.plugins, NOW)
        self.core.commit(cycle.record, 1.0)
        self.metrics.cycle(cycle, 0.001, self.core)
        for bind in [each.bind for each in self.emitted if isinstance(each, BindPod)]:
            task = self.core.cache.cluster.task(bind.uid)
            assert task is not None
            self.metrics.bound(task, 30.0, 0.02)
            self.core.bind_succeeded(bind)
        self.emitted.clear()
        self.metrics.refresh(self.core)
        return cycle

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


def important(name: str, cpu: str) -> Pod:
    """A pod that may preempt others."""
    made = from_manifest(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "schedulerName": "navarch",
                "priority": 1000,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
            },
            "status": {"phase": "Pending"},
        },
        Pod,
    )
    return made


def documented(system: str, part: str) -> dict[str, set[str]]:
    """Names of a table -> labels. `part`: `served` or `absent`."""
    section = PAGE.partition(HEADINGS[system])[2].partition("\n## ")[0]
    served, _, absent = section.partition("No equivalent:")
    found: dict[str, set[str]] = {}
    for line in (served if part == "served" else absent).splitlines():
        if line.startswith("| `"):
            names, labels = line.split("|")[1:3]
            keys = re.findall(r"`(\w+)`", labels) if part == "served" else ()
            found |= {name: set(keys) for name in re.findall(r"`(\w+)`", names)}
    return found


def test_the_option_offers_every_system() -> None:
    assert OFFERED == tuple(SYSTEMS) == tuple(HEADINGS)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_table_of_a_system_is_what_is_served(system: str) -> None:
    world = World(system)
    served: dict[str, set[str]] = {}
    for family, labels in declared_metrics(world.registry):
        name = family.name + ("_total" if family.type == "counter" else "")
        served[name] = labels
        assert family.documentation.endswith("."), name
    assert served == documented(system, "served")
    absent = documented(system, "absent")
    assert len(absent) >= 10 and not set(absent) & set(served)


def test_bounds_are_computed_as_go_computes_them() -> None:
    bounds = exponential_range(1, 5000, 20)
    assert len(bounds) == 20 and bounds[0] == 1 and bounds[-1] == pytest.approx(5000) and bounds[1] == pytest.approx(1.56561, abs=1e-5)


def test_volcano_shows_queues_jobs_and_times() -> None:
    world = World("volcano")
    capability = (("cpu", 8000), ("nvidia.com/gpu", 2000))
    world.core.cache.put(QueueSpec("q", weight=3, capability=capability, dialect="volcano", state="Open"))
    world.core.cache.put(group("whole", 2, queue="q"))
    for name in ("a", "b"):
        put(world.core.cache, pod(name, group="whole"))
    world.core.cache.put(group("large", 9, queue="q"))
    for number in range(9):
        put(world.core.cache, pod(f"large-{number}", group="large"))
    bound: set[str] = set()
    for _ in range(4):  # `enqueue` admits in one cycle what a later one binds
        bound |= {bind.pod for bind in world.cycle().record.binds}
    assert bound == {"default/a", "default/b"}
    assert world.value("volcano_queue_allocated_milli_cpu", queue_name="q") == 2000
    assert world.value("volcano_queue_weight", queue_name="q") == 3
    assert world.value("volcano_queue_capacity_scalar_resources", queue_name="q", resource="nvidia.com/gpu") == 2000
    assert world.value("volcano_task_scheduling_latency_milliseconds_sum", stage="Bound") == 60_000
    assert world.value("volcano_e2e_job_scheduling_latency_milliseconds_count") == 1
    names = {"job_name": "whole", "queue": "q", "job_namespace": "default"}
    assert world.value("volcano_e2e_job_scheduling_last_time", **names) == NOW
    assert world.value("volcano_unschedule_job_count") == 1 and world.value("volcano_unschedule_task_count", job_id="large") == 9
    assert (world.value("volcano_action_scheduling_latency_milliseconds_count", action="allocate") or 0) >= 4
    opened = {"plugin": "gang", "OnSession": "OnSessionOpen"}
    assert (world.value("volcano_plugin_scheduling_latency_milliseconds_count", **opened) or 0) >= 4
    assert world.value("volcano_queue_overused", queue_name="q") in (0, 1)


FLAT = {"a": 3000, "b": 2000, "below": 2000}
TREE = {"a": 3500, "b": 2200, "below": 3000}


@pytest.mark.parametrize("hierarchy", [False, True])
def test_volcano_shows_what_guarantees_leave_to_a_queue(hierarchy: bool) -> None:
    """Four CPUs, of which one is guaranteed to a, half a one to other, and half a one to beside, which is below a in a tree."""
    expected = TREE if hierarchy else FLAT
    plugins = [{"name": "capacity", "enableHierarchy": hierarchy}, {"name": "predicates"}]
    world = World("volcano", {"compat": "volcano", "actions": "allocate", "tiers": [{"plugins": plugins}]})
    for name, parent, guarantee, capability in (
        ("root", "", None, None),
        ("a", "root", 1000, None),
        ("b", "root", None, 2200),
        ("other", "root", 500, None),
        ("below", "a", None, None),
        ("beside", "a", 500, None),
    ):
        bound = None if capability is None else (("cpu", capability),)
        own = None if guarantee is None else (("cpu", guarantee),)
        world.core.cache.put(
            QueueSpec(name, parent=parent if hierarchy else "", capability=bound, guarantee=own, dialect="volcano", state="Open")
        )
    world.cycle()
    shown = {name: world.value("volcano_queue_real_capacity_milli_cpu", queue_name=name) for name in expected}
    assert shown == expected


def test_queues_that_are_each_others_parents_cost_no_metrics_page() -> None:
    plugins = [{"name": "capacity", "enableHierarchy": True}, {"name": "predicates"}]
    world = World("volcano", {"compat": "volcano", "actions": "allocate", "tiers": [{"plugins": plugins}]})
    for number in range(1200):
        world.core.cache.put(QueueSpec(f"q{number}", dialect="volcano", state="Open"))
    for name, parent in (("ring", "other"), ("other", "ring")):
        world.core.cache.put(QueueSpec(name, parent=parent, dialect="volcano", state="Open"))
    world.cycle()
    assert world.value("volcano_queue_real_capacity_milli_cpu", queue_name="q0") == 4000


def test_kai_shows_the_budgets_of_searches() -> None:
    world = World("kai", {"compat": "kai", "scenarioSearchBudgets": {"maxActionSearchDuration": {"reclaim": "1m"}}})
    world.cycle()
    name = "kai_scenario_search_action_budget_configured_seconds"
    assert (world.value(name, action="reclaim"), world.value(name, action="preempt")) == (60, 300)
    assert world.value("kai_scenario_search_job_budget_configured_seconds") == 240
    assert world.value("kai_scenario_search_generator_budget_configured_seconds", generator="NodeLocalGreedy") == 30


def test_series_of_single_jobs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("navarch.live.ops.metric_names.volcano.MOST_JOBS", 2)
    world = World("volcano", "navarch")
    for name in ("a", "b", "c"):
        put(world.core.cache, pod(name))
        world.cycle()
    (family,) = [each for each in world.registry.collect() if each.name == "volcano_e2e_job_scheduling_duration"]
    assert len(family.samples) == 2


def test_kai_shows_what_actions_did_and_fair_shares() -> None:
    world = World("kai")
    shares = {"cpu": QueueShare(-1), "memory": QueueShare(-1), "gpu": QueueShare(2)}
    world.core.cache.put(QueueSpec("all", dialect="kai", state="Open", shares=shares))
    world.core.cache.put(QueueSpec("default", dialect="kai", state="Open", parent="all", shares=shares))
    put(world.core.cache, pod("a"))
    world.core.cache.cluster.put_object(QUEUE_USAGE, "", "default", {"cpu": 0.25, "gpu": 0.5})
    world.cycle()
    assert world.value("kai_podgroups_scheduled_by_action", action="allocate") == 1
    assert (world.value("kai_action_scheduling_latency_milliseconds", action="allocate") or 0) > 0
    assert world.value("kai_task_bind_latency_milliseconds_sum") == 20
    labels = {"queue_name": "default", "queue_metadata_name": "default", "queue_display_name": ""}
    assert world.value("kai_queue_gpu_usage", **labels) == 0.5
    assert world.value("kai_queue_fair_share_cpu_cores", **labels) == 1


@pytest.mark.parametrize(("display", "name"), [("", "q"), ("Research", "Research")])
def test_kai_names_a_queue_as_people_see_it(display: str, name: str) -> None:
    world = World("kai")
    world.core.cache.put(QueueSpec("q", display_name=display))
    world.core.cache.cluster.put_object(QUEUE_USAGE, "", "q", {"cpu": 0.25})
    world.metrics.refresh(world.core)
    assert world.value("kai_queue_cpu_usage", queue_name=name, queue_metadata_name="q", queue_display_name=display) == 0.25


def test_kube_scheduler_shows_attempts_and_pending_pods() -> None:
    world = World("kube-scheduler")
    put(world.core.cache, pod("a", cpu="3"))
    put(world.core.cache, pod("large", cpu="9"))
    gated = pod("gated")
    put(world.core.cache, from_manifest(_with_gate(gated.metadata.name), Pod))
    world.cycle()
    ours = {"profile": "navarch"}
    assert world.value("scheduler_schedule_attempts_total", result="scheduled", **ours) == 1
    assert world.value("scheduler_schedule_attempts_total", result="unschedulable", **ours) == 1
    assert world.value("scheduler_schedule_attempts_total", result="error", **ours) is None
    assert world.value("scheduler_pending_pods", queue="unschedulable") == 1
    assert world.value("scheduler_pending_pods", queue="gated") == 1
    assert world.value("scheduler_pending_pods", queue="active") == 0
    assert world.value("scheduler_queued_entities", queue="unschedulable", type="pod") == 1
    assert world.value("scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="1") == 30
    assert world.value("scheduler_cache_size", type="nodes") == 1
    world.core.cache.put(node("n2", cpu="16"))
    world.cycle()
    assert world.value("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="2") == 1
    assert world.value("scheduler_pod_scheduling_attempts_sum") == 3


def test_victims_are_counted_once_for_the_job_that_gets_the_room() -> None:
    world = World("kube-scheduler")
    for name in ("a", "b"):
        put(world.core.cache, pod(name, node="n1", phase="Running", cpu="2"))
    put(world.core.cache, important("urgent", "4"))
    assert len(world.cycle().record.evictions) == 2
    assert world.value("scheduler_preemption_attempts_total") == 1 and world.value("scheduler_preemption_victims_sum") == 2


def test_volcano_and_kai_count_evictions_by_action() -> None:
    victims = [Eviction(f"default/{name}", "n1", f"uid-{name}", "default/g", "preempt", "default/x", "preempt") for name in "ab"]
    victims.append(Eviction("default/c", "n1", "uid-c", "default/g", "reclaim", "default/y", "reclaim"))
    for system in ("volcano", "kai"):
        world = World(system)
        world.core.cache.put(group("g", 1))
        put(world.core.cache, pod("a", "n1", "Running", group="g"))
        cycle = replace(world.cycle(), record=CycleRecord(evictions=victims))
        world.metrics.cycle(cycle, 0.0, world.core)
        assert world.value(f"{system}_total_preemption_attempts") == 1
        if system == "volcano":
            assert world.value("volcano_pod_preemption_victims") == 2
            assert world.value("volcano_eviction_transactions_total", action="reclaim") == 1
        else:
            names = {"podgroup": "g", "namespace": "default", "uid": "uid-g", "nodepool": "default"}
            assert world.value("kai_pod_group_evicted_pods_total", action="preempt", **names) == 2
            assert world.value("kai_podgroups_scheduled_by_action", action="reclaim") == 1


def _with_gate(name: str) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"schedulerName": "navarch", "containers": [container], "schedulingGates": [{"name": "wait"}]},
        "status": {"phase": "Pending"},
    }
