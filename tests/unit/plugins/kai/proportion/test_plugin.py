from __future__ import annotations

from typing import Any

import pytest

from navarch.apis.dialect import Settings
from navarch.engine.job import Job
from navarch.engine.policy import load
from navarch.engine.session import Session
from navarch.installed import installed
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document
from navarch.plugins.kai.amounts import GPU
from navarch.plugins.kai.proportion.plugin import KaiProportion

Manifest = dict[str, Any]
POLICY = {"compat": "kai", "actions": "allocate", "tiers": [{"plugins": [{"name": "proportion"}]}]}


def node(name: str, gpus: int, **labels: str) -> Manifest:
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    metadata = {"name": name, "labels": {key.replace("_", "/"): value for key, value in labels.items()}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


def queue(name: str, parent: str = "", quota: float = -1, limit: float = -1, weight: float = 1) -> Manifest:
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"cpu": unlimited, "memory": unlimited, "gpu": {"quota": quota, "limit": limit, "overQuotaWeight": weight}}
    spec: Manifest = {"resources": resources, **({"parentQueue": parent} if parent else {})}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def gang(name: str, queue: str, gpus: int, pods: int = 1, preemptible: bool = True, on: str = "") -> list[Manifest]:
    metadata = {"name": name, "namespace": "default"}
    spec: Manifest = {"queue": queue, "minMember": pods, "preemptibility": "preemptible" if preemptible else "non-preemptible"}
    made: list[Manifest] = [{"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}]
    for i in range(pods):
        container = {"name": "c", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": str(gpus)}}}
        about = {"name": f"{name}-{i}", "namespace": "default", "uid": f"{name}-{i}", "annotations": {"pod-group-name": name}}
        placed = {"nodeName": on} if on else {}
        status = {"phase": "Running" if on else "Pending"}
        spec = {"containers": [container], **placed}
        made.append({"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec, "status": status})
    return made


def opened(
    *objects: Manifest | list[Manifest], asleep: tuple[str, ...] = (), names: frozenset[str] | None = None
) -> tuple[Session, KaiProportion]:
    manifests = [m for found in objects for m in (found if isinstance(found, list) else [found])]
    inventory = Inventory([Document(m) for m in manifests], Settings(imply_queues=False, scheduler_names=names))
    assert not inventory.mistakes
    cluster = inventory.cluster
    for name in asleep:
        cluster.jobs.hold(f"default/{name}", True)
    registry = installed()
    session = Session(cluster.snapshot(), load(POLICY, registry.catalogue(), "policy"), registry, now=0.0)
    plugin = session.plugins[0]
    assert isinstance(plugin, KaiProportion)
    return session, plugin


def job(session: Session, name: str) -> Job:
    return next(job for job in session.all_jobs() if job.key == f"default/{name}")


def gpus(plugin: KaiProportion, queue: str, figures: str = "allocated") -> float:
    return float(getattr(plugin.tree, figures)[GPU, plugin.row[queue]])


@pytest.mark.parametrize(("app", "total"), [("web", 6), ("kai-resource-reservation", 8), ("scaling-pod", 8)])
def test_pods_of_other_schedulers_are_not_divided(app: str, total: float) -> None:
    container = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}}
    about = {"name": "other", "namespace": "default", "labels": {"app": app}}
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"nodeName": "n", "containers": [container]}}
    _, plugin = opened(node("n", 8), queue("a"), [{**other, "status": {"phase": "Running"}}], names=frozenset({"kai-scheduler"}))
    assert plugin.total[GPU] == total


def test_requests_of_inactive_jobs_count() -> None:
    objects = (node("n", 8), queue("dep"), queue("a", "dep", 0), queue("b", "dep", 0))
    waiting = (gang("mine", "a", 1, pods=8), gang("theirs", "b", 1, pods=8))
    _, plugin = opened(*objects, *waiting, asleep=("mine",))
    assert (gpus(plugin, "a", "share"), gpus(plugin, "b", "share")) == (4, 4)


def test_allocated_amounts_follow_placements_up_the_tree() -> None:
    session, plugin = opened(
        node("n", 8),
        queue("dep"),
        queue("q", "dep"),
        gang("running", "q", 2, on="n"),
        gang("fixed", "q", 1, preemptible=False),
    )
    assert (gpus(plugin, "q"), gpus(plugin, "dep"), gpus(plugin, "dep", "fixed")) == (2, 2, 0)
    waiting = job(session, "fixed")
    task = next(iter(waiting.tasks))
    statement = session.statement()
    statement.allocate(waiting, [task], [0], session.class_of(task))
    assert (gpus(plugin, "q"), gpus(plugin, "dep"), gpus(plugin, "dep", "fixed")) == (3, 3, 1)
    victim = next(iter(job(session, "running").tasks))
    statement.evict(victim)
    assert (gpus(plugin, "q"), gpus(plugin, "dep", "fixed")) == (1, 1)
    statement.discard()
    assert (gpus(plugin, "q"), gpus(plugin, "dep"), gpus(plugin, "dep", "fixed")) == (2, 2, 0)


def test_a_limit_on_the_way_up_refuses() -> None:
    session, plugin = opened(node("n", 8), queue("dep", limit=1), queue("q", "dep"), gang("g", "q", 1, pods=2))
    waiting = job(session, "g")
    reason = plugin.chunk_refusal(waiting, list(waiting.tasks))
    assert reason is not None and reason.code == "OverLimit"
    assert reason.message == (
        "dep quota has reached the allowable limit of GPUs. Limit is 1 GPUs, currently 0 GPUs allocated and workload requested 2 GPUs"
    )
    assert plugin.chunk_refusal(waiting, list(waiting.tasks)[:1]) is None


def test_non_preemptible_jobs_stay_within_quota() -> None:
    session, plugin = opened(node("n", 8), queue("q", quota=1), gang("g", "q", 2, preemptible=False), gang("p", "q", 2))
    reason = plugin.chunk_refusal(job(session, "g"), list(job(session, "g").tasks))
    assert reason is not None and reason.code == "NonPreemptibleOverQuota"
    assert reason.message == (
        "Non-preemptible workload is over quota. Workload requested 2 GPUs, but q quota is 1 GPUs, while 0 GPUs are "
        "already allocated for non-preemptible pods. Use a preemptible workload to go over quota."
    )
    assert plugin.chunk_refusal(job(session, "p"), list(job(session, "p").tasks)) is None


def test_a_queue_whose_way_up_is_broken_takes_no_part() -> None:
    session, plugin = opened(node("n", 8), queue("a", "b"), queue("b", "a"), queue("c", "nowhere"), queue("d"), gang("g", "c", 1))
    assert list(plugin.row) == ["d"]
    reason = plugin.chunk_refusal(job(session, "g"), list(job(session, "g").tasks))
    assert reason is not None and reason.code == "QueueDoesNotExist"


def test_the_figures_of_a_queue_are_in_thousandths_of_gpus() -> None:
    session, plugin = opened(node("n", 8), queue("q", quota=4), gang("r", "q", 2, on="n"), gang("w", "q", 8))
    figures = plugin.queue_figures(session.queues["q"])
    assert figures.deserved == {"nvidia.com/gpu": 4000.0}
    assert (figures.allocated["nvidia.com/gpu"], figures.request["nvidia.com/gpu"]) == (2000, 10000)
    assert figures.fair_share is not None and figures.fair_share["nvidia.com/gpu"] == 8000.0
    assert figures.share == pytest.approx(0.25), "two of eight GPUs"
