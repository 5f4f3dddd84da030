"""Start times: the scheduler run forward from a cluster as it is."""

from __future__ import annotations

from navarch.installed import installed
from navarch.model.spec import JobSpec
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.offline.plan import read_policy, settings_for
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
