"""Pods that ask for a part of a GPU, under every policy: placed beside others, evicted for, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.owing import Owing
from tests.worlds.small_cluster import binds, decided, evicted, promises, task, with_nodes

import navarch
from navarch.engine.record import CycleRecord
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import DeviceRequest, JobSpec, QueueSpec, Shape
from navarch.offline.plan import PlanError
from navarch.plugins.gang import Gang, KubeBatchGang
from navarch.plugins.priority import Priority
from navarch.testing import node, pod
from navarch.testing.builders import Builder

GPU = "nvidia.com/gpu"
SHARING = ("navarch", "easy", "fifo", "packing", "sjf", "volcano", "kube-batch")


def half(name: str, fraction: str = "0.5") -> Builder:
    return pod(name).annotate("gpu-fraction", fraction)


def placed(policy: str, *objects: Builder) -> set[str]:
    cycle = navarch.plan([node("n").cpu(8).gpu(1), *objects], policy=policy).to_dict()["cycles"][0]
    return {bind["pod"].partition("/")[2] for bind in cycle["binds"]}


@pytest.mark.parametrize("policy", SHARING)
def test_two_halves_share_a_gpu_and_the_others_wait(policy: str) -> None:
    assert len(placed(policy, *(half(name) for name in "abcd"))) == 2


@pytest.mark.parametrize("policy", SHARING)
def test_a_shared_gpu_is_no_whole_gpu(policy: str) -> None:
    assert len(placed(policy, half("part"), pod("whole").cpu(1).gpu(1))) == 1


def test_an_amount_of_memory_is_a_part_too() -> None:
    sized = node("n").cpu(8).gpu(1).label("nvidia.com/gpu.memory", "16000")
    pods = [pod(name).annotate("gpu-memory", "6000") for name in "abc"]
    assert len(navarch.plan([sized, *pods]).to_dict()["cycles"][0]["binds"]) == 2


@pytest.mark.parametrize(("name", "value"), [("gpu-fraction", "abc"), ("gpu-fraction", "1.5"), ("gpu-memory", "16Gi")])
def test_a_part_that_cannot_be_read_is_refused_with_its_annotation(name: str, value: str) -> None:
    with pytest.raises(PlanError, match=rf"metadata.annotations\[{name}\]: found '{value}'"):
        navarch.plan([node("n").gpu(1), pod("a").annotate(name, value)])


def test_kube_schedulers_policy_refuses_parts_by_name() -> None:
    (cycle,) = navarch.plan([node("n").cpu(8).gpu(1), half("a")], policy="kube-scheduler").to_dict()["cycles"]
    assert cycle["binds"] == []
    assert "the pod asks for a part of a GPU" in str(cycle["jobs"])


def test_parts_are_counted_when_their_shape_takes_the_number_of_another_that_is_gone() -> None:
    """Shapes that no pod has any more leave their numbers to new ones, from one cycle of a live scheduler to the next."""
    cluster = with_nodes(("n", {"cpu": 8, GPU: 1}))
    cluster.put_job(JobSpec("ns/whole", "default", namespace="ns", name="whole", phase="Inqueue"))
    cluster.put_task(task("whole", Shape(requests=requests_from({GPU: 1})), "ns/whole"))
    assert set(binds(after(cluster, "backfill"))) == {"whole"}
    cluster.remove_task("whole")
    for name in ("a", "b", "c"):
        cluster.put_job(JobSpec(f"ns/{name}", "default", namespace="ns", name=name, phase="Inqueue"))
        cluster.put_task(task(name, part(), f"ns/{name}"))
    assert len(binds(after(cluster, "backfill"))) == 2


# evicting actions


def part(fraction: int = 500, **amounts: int) -> Shape:
    return Shape(requests=requests_from(amounts), devices=DeviceRequest(fraction=fraction))


def shared_gpu(*, queue: str = "default") -> Cluster:
    """One GPU with two halves on it, each a job of low priority."""
    cluster = with_nodes(("n", {"cpu": 8, GPU: 1}))
    cluster.put_queue(QueueSpec("theirs"))
    for name in ("low-a", "low-b"):
        cluster.put_job(JobSpec(f"ns/{name}", queue, namespace="ns", name=name, min_member=0, phase="Running"))
        cluster.put_task(task(name, part(), f"ns/{name}", "n", gpu_groups=("g1",)))
    return cluster


def urgent(cluster: Cluster, *shapes: Shape) -> None:
    cluster.put_job(JobSpec("ns/high", "default", namespace="ns", name="high", min_member=len(shapes), priority=9, phase="Inqueue"))
    for number, shape in enumerate(shapes):
        cluster.put_task(task(f"high-{number}", shape, "ns/high", priority=9, pod_priority=9))


def after(cluster: Cluster, action: str, **options: Any) -> CycleRecord:
    return decided(cluster, Priority, Gang, Owing, actions=("allocate", action), **options)


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_one_victim_makes_room_for_a_half_and_two_for_two(action: str) -> None:
    cluster = shared_gpu()
    urgent(cluster, part())
    record = after(cluster, action)
    assert len(evicted(record)) == 1 and promises(record) == {"high-0": "n"}
    cluster = shared_gpu()
    urgent(cluster, part(), part())
    assert evicted(after(cluster, action)) == ["low-a", "low-b"]


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_a_part_is_reclaimed_from_another_queue(action: str) -> None:
    cluster = shared_gpu(queue="theirs")
    urgent(cluster, part())
    record = after(cluster, action)
    assert len(evicted(record)) == 1 and promises(record) == {"high-0": "n"}


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_a_whole_gpu_takes_all_that_share_it(action: str) -> None:
    cluster = shared_gpu()
    urgent(cluster, Shape(requests=requests_from({GPU: 1})))
    assert evicted(after(cluster, action)) == ["low-a", "low-b"]


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_a_part_for_which_no_gpu_can_be_freed_is_promised_nothing(action: str) -> None:
    cluster = with_nodes(("n", {"cpu": 8}))
    cluster.put_job(JobSpec("ns/low", "default", namespace="ns", name="low", min_member=0, phase="Running"))
    cluster.put_task(task("low", Shape(requests=requests_from({"cpu": 8})), "ns/low", "n"))
    urgent(cluster, part(cpu=1))
    record = after(cluster, action)
    assert (evicted(record), promises(record)) == ([], {})


def test_kube_batchs_eviction_says_that_it_frees_no_parts() -> None:
    cluster = shared_gpu()
    urgent(cluster, part())
    record = decided(cluster, Priority, KubeBatchGang, actions=("allocate", "preempt"))
    assert evicted(record) == []
    (high,) = [job for job in record.jobs if job.job == "ns/high"]
    assert "GpuNotShared" in [reason.code for reason in high.reasons]
