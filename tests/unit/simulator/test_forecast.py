"""Start times: the scheduler run forward from a cluster as it is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.device_objects import claim, device_class, exactly, slice_of, user

from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.model.spec import JobSpec
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.policies import read_policy
from navarch.simulator.forecast import forecast
from navarch.testing.builders import node, pod, pod_group


def test_waiting_jobs_start_when_running_ones_end_as_supposed() -> None:
    registry = installed(())
    policy = read_policy("fifo", registry)
    objects = [
        node("n1").gpu(4),
        pod_group("runs"),
        pod("runs-0").gpu(4).in_group("runs").on("n1").phase("Running"),
        pod_group("a").created("1970-01-01T00:00:01Z"),
        pod("a-0").gpu(4).in_group("a"),
        pod_group("b").created("1970-01-01T00:00:02Z"),
        pod("b-0").gpu(4).in_group("b"),
    ]
    cluster = Inventory([Document(each) for each in objects], settings_for(policy)).cluster
    before = [cluster.jobs.counts.copy(), cluster.nodes.used.copy()]

    def supposed(job: JobSpec, running: bool) -> float:
        return 100.0 if running else 50.0

    assert forecast(cluster, policy, registry, 1000.0, supposed, until=5000.0) == {"default/a": 1100.0, "default/b": 1150.0}
    assert forecast(cluster, policy, registry, 1000.0, supposed, until=1120.0) == {"default/a": 1100.0}
    assert (cluster.jobs.counts == before[0]).all() and (cluster.nodes.used == before[1]).all()


@pytest.mark.parametrize("extended", [False, True])
def test_devices_are_held_until_their_pods_end(extended: bool) -> None:
    """One device serves three jobs, one after the other: by claims, or by the class behind an extended resource."""
    registry = installed(())
    policy = read_policy("navarch", registry)
    found = device_class()
    found["spec"]["extendedResourceName"] = "example.com/gpu"
    objects = [node("n1").cpu(8), found, slice_of("n1", "a")]
    for number, name in enumerate("abc"):
        objects += [] if extended else [claim(name, exactly())]
        asking: Any = pod(name).request("example.com/gpu", 1) if extended else user(name, name)
        objects += [pod_group(name).created(f"1970-01-01T00:00:0{number}Z"), asking.in_group(name)]
    cluster = Inventory([Document(each) for each in objects], settings_for(policy)).cluster
    starts = forecast(cluster, policy, registry, 1000.0, lambda job, running: 50.0, until=5000.0)
    assert starts == {"default/a": 1000.0, "default/b": 1050.0, "default/c": 1100.0}
