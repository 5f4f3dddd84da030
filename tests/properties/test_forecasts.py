"""A forecast is about every job: groups without pods, suspended, half made, finished or foreign ones do not break it for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
import yaml
from tests.worlds.explained_clusters import GROUPS, POLICIES, World
from tests.worlds.groups_without_pods import ODD, odd_groups

import navarch
from navarch.cli.cluster.start_estimate import StartEstimate
from navarch.engine.cycle import decide
from navarch.engine.policy import PRESETS, Policy
from navarch.engine.registry import Registry
from navarch.explanation.names import NotFound
from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.job_history import JobRun, run_of
from navarch.live.cluster_objects import ClusterObjects
from navarch.model.cluster import Cluster
from navarch.model.spec import JobSpec, TaskSpec
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.simulator.progress import SimulatedJob
from navarch.simulator.start_times.estimate import Basis, start_times
from navarch.testing.builders import node, pod, pod_group
from navarch.views.jobs import job_rows
from navarch.views.prospects import prospects
from navarch.web.work.forecasting import forecast_starts
from navarch.web.work.requests import Forecast

NOW = 1767258000.0
"""2026-01-01T09:00:00Z: after every moment in the objects."""
DURATION = {"navarch.io/expected-duration": "12h"}
SERVED = ["default-scheduler", "volcano"]
WORLDS = [(seed, policy) for policy in POLICIES for seed in range(2)]


def objects_of(seed: int, policy: str) -> list[dict[str, Any]]:
    world = World(seed, policy)
    for each in world.objects:
        if each["kind"] in ("Pod", "PodGroup"):
            each["metadata"].setdefault("annotations", {}).update(DURATION)
    return world.objects + odd_groups(seed, policy if policy in GROUPS else "volcano")


def read(objects: Sequence[Mapping[str, Any]], policy_name: Any) -> tuple[Cluster, Policy, Registry]:
    registry = installed(())
    policy = read_policy(policy_name, registry)
    return Inventory([Document(each) for each in objects], settings_for(policy, SERVED)).cluster, policy, registry


@pytest.mark.parametrize(("seed", "policy"), WORLDS)
def test_every_waiting_job_has_a_start_or_a_reason_in_eta(seed: int, policy: str) -> None:
    cluster, rules, registry = read(objects_of(seed, policy), POLICIES[policy])
    places = prospects(cluster, rules, registry, NOW)
    record = decide(cluster.snapshot(rules.semantics.node_order), rules, registry, NOW, "cycle")
    rows = job_rows(cluster, record, lambda namespace, name: None, None, places)
    for row in StartEstimate((), 1.0).rows(rows, cluster, rules, registry, NOW, ()):
        if row.prospect is not None and not row.prospect.never:
            assert row.start is not None or row.start_unknown, row.key
            assert "failed" not in row.start_unknown, (row.key, row.start_unknown)


@pytest.mark.parametrize(("seed", "policy"), WORLDS)
def test_every_job_is_explained(seed: int, policy: str) -> None:
    objects = objects_of(seed, policy)
    for name in (World(seed, policy).jobs[0], *ODD[seed % 2 :: 2]):
        try:
            found = navarch.explain(objects, name, POLICIES[policy], NOW, trials=8, seconds=60, scheduler_names=SERVED)
        except NotFound as error:
            assert name in ODD and "has no pods" in str(error)
            continue
        assert found.eta is not None or found.eta_reason, name
        assert "failed" not in found.eta_reason, (name, found.eta_reason)


@pytest.mark.parametrize(("seed", "policy"), WORLDS)
def test_the_dashboards_forecast_speaks_of_every_waiting_job(seed: int, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.nice", lambda by: by)  # of the working process
    documents = [Document(each) for each in objects_of(seed, policy)]
    cluster, rules, registry = read(objects_of(seed, policy), POLICIES[policy])
    given: Any = PRESETS[policy] if policy in PRESETS else POLICIES[policy]
    work = Forecast(policy=yaml.safe_load(given) if isinstance(given, str) else given, scheduler_names=SERVED, seconds=3.0)
    found = forecast_starts(work, ClusterObjects(documents))
    told = {*found["known"], *(key for keys in found["unknown"].values() for key in keys)}
    waiting = {key for key, each in prospects(cluster, rules, registry, NOW).items() if not each.never}
    assert waiting <= told and not [reason for reason in found["unknown"] if "failed" in reason]


class TestOneJobsFailure:
    """A job whose own facts raise is without a start, and says why. The other has its start."""

    def starts(self) -> Any:
        runs = pod_group("runs").annotate("navarch.io/expected-duration", "1h").phase("Running")
        objects = [node("n1").cpu(4), runs, pod("runs-0").cpu(4).in_group("runs").on("n1")]
        for name in ("bad", "good"):
            objects += [pod_group(name), pod(f"{name}-0").cpu(4).in_group(name)]
        cluster, policy, registry = read(objects, "fifo")
        return start_times(cluster, policy, registry, NOW, ["default/bad", "default/good"], Basis(cluster, NOW), runs=10)

    def test_while_its_run_time_is_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(spec: JobSpec, tasks: Sequence[TaskSpec]) -> JobRun:
            if spec.name == "bad":
                raise ValueError("no such length")
            return run_of(spec, tasks)

        monkeypatch.setattr("navarch.simulator.start_times.estimate.run_of", failing)
        self.expect("its forecast failed: ValueError: no such length")

    def test_while_it_is_played(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settle = SimulatedJob.settle

        def failing(self: SimulatedJob, now: float) -> float | None:
            if self.spec.name == "bad":
                raise KeyError("lost")
            return settle(self, now)

        monkeypatch.setattr(SimulatedJob, "settle", failing)
        self.expect("its forecast failed: KeyError: 'lost'")

    def expect(self, reason: str) -> None:
        found = self.starts()
        assert set(found.known) == {"default/good"} and found.unknown == {"default/bad": reason}
        assert msgspec.to_builtins(found.known["default/good"])["p50"] > NOW
