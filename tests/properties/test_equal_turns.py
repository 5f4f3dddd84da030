"""Turns of equal jobs in one step decide what plain turns decide, in the same order, for the same reasons."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from navarch.actions import allocate
from navarch.actions.equal_turns import EqualTurns
from navarch.actions.job_queues import JobHeap
from navarch.engine.cycle import decide
from navarch.engine.job import Job
from navarch.engine.policy import load, preset
from navarch.engine.policy.values import Policy
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import CardRequest, JobSpec, NodeSpec, QueueSpec, Shape, Taint, TaskSpec, VgpuRequest
from navarch.model.status import TaskStatus

SEEDS = st.integers(0, 2**32 - 1)


CARDS: tuple[dict[str, object], ...] = (
    {
        "name": "deviceshare",
        "arguments": {"deviceshare.VGPUEnable": True, "deviceshare.SchedulePolicy": "binpack", "deviceshare.ScheduleWeight": 10},
    },
)


def tiers(*plugins: str | dict[str, object], compat: str = "") -> Policy:
    named = [{"name": each} if isinstance(each, str) else each for each in plugins]
    document: dict[str, object] = {"actions": "allocate, backfill", "tiers": [{"plugins": named}]}
    return load(document | ({"compat": compat} if compat else {}), installed().catalogue(), "test")


POLICIES = {name: preset(name, installed().catalogue()) for name in ("navarch", "volcano", "kube-batch", "kai")} | {
    "by age": tiers("gang", "predicates", "best-fit"),
    "by share": tiers("gang", "drf", "predicates", "nodeorder"),
    "proportion": tiers("priority", "gang", "proportion", "predicates", "nodeorder"),
    "capacity": tiers("priority", "gang", "drf", "capacity", "predicates", "binpack"),
    "volcano, packed": tiers("gang", "drf", "proportion", "predicates", "binpack", compat="volcano"),
    "cards": tiers("gang", "drf", "proportion", "predicates", "nodeorder", *CARDS),
    "volcano, cards": tiers("gang", "drf", "proportion", "predicates", "nodeorder", *CARDS, compat="volcano"),
    "namespaces": tiers("gang", "namespace-turns", "predicates", "nodeorder"),
}


def equal_jobs(seed: int) -> Cluster:
    """Many elastic jobs of few kinds: most turns are of equal jobs. Some jobs have two kinds of pods, some queues a limit."""
    draw = Random(seed)
    cluster = Cluster()
    queues = ("default",) if draw.random() < 0.7 else ("default", "other")
    for queue in queues:
        limit = requests_from({"cpu": draw.randint(4, 30)}) if draw.random() < 0.3 else None
        cluster.put_queue(QueueSpec(queue, state="Open", capability=limit))
    nodes = draw.randint(2, 14)
    for i in range(nodes):
        room = requests_from({"cpu": draw.choice((4, 4, 4, 6)), "memory": "16Gi", "pods": draw.choice((6, 110, 110))})
        taints = (Taint("k", "v", "PreferNoSchedule"),) if draw.random() < 0.2 else ()
        cluster.put_node(NodeSpec(f"n{i}", allocatable=room, taints=taints, labels={"kubernetes.io/hostname": f"n{i}"}))
    kinds = []
    for cpu, memory in ((500, 1), (500, 1), (250, 2), (1000, 2)):
        requests = requests_from({"cpu": f"{cpu}m", "memory": memory << 30})
        kinds.append(Shape(requests=requests, scoring=(cpu, memory << 30), footprint=(cpu, memory << 30), qos="Burstable"))
    kinds = kinds[: draw.choice((1, 1, 3, 4))]
    for j in range(draw.randint(2, 14)):
        size, name = draw.randint(1, 9), f"j{j}"
        least = 1 if draw.random() < 0.7 else draw.randint(1, size)
        namespace, created = draw.choice(("a", "a", "b")), float(draw.choice((0, 0, 0, 5)))
        spec = JobSpec(
            f"{namespace}/{name}", draw.choice(queues), min_member=least, namespace=namespace, name=name, phase="Inqueue",
            priority=draw.choice((0, 0, 0, 5)), created=created,
        )  # fmt: skip
        cluster.put_job(spec)
        kind = draw.choice(kinds)
        for i in range(size):
            status = draw.choices((TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.RELEASING), (14, 1, 1))[0]
            waits = status == TaskStatus.PENDING
            cluster.put_task(
                TaskSpec(
                    uid=f"{name}-{i}", namespace=namespace, name=f"{name}-{i}", job=spec.key, status=status,
                    shape=kind if draw.random() < 0.9 else draw.choice(kinds),
                    node="" if waits else f"n{draw.randrange(nodes)}",
                    nominated_node=f"n{draw.randrange(nodes)}" if waits and draw.random() < 0.03 else "",
                )
            )  # fmt: skip
    return cluster


def jobs_with_cards(seed: int) -> Cluster:
    """Elastic jobs that take parts of GPU cards."""
    draw = Random(seed)
    cluster = Cluster()
    cluster.put_queue(QueueSpec("default", state="Open"))
    for i in range(draw.randint(2, 5)):
        register = "".join(f"GPU-{i}-{n},10,16000,NVIDIA-T4,true,hami-core:" for n in range(draw.randint(1, 3)))
        offered = {"volcano.sh/vgpu-number": 30, "volcano.sh/vgpu-memory": 48000, "volcano.sh/vgpu-cores": 300}
        room = requests_from({"cpu": draw.choice((4, 8)), "memory": "16Gi", "pods": 110, **offered})
        annotations = {"volcano.sh/node-vgpu-register": register}
        cluster.put_node(NodeSpec(f"n{i}", allocatable=room, annotations=annotations, labels={"kubernetes.io/hostname": f"n{i}"}))
    for j in range(draw.randint(1, 4)):
        name, least = f"j{j}", draw.choice((1, 1, 3))
        cluster.put_job(JobSpec(f"a/{name}", "default", min_member=least, namespace="a", name=name, phase="Inqueue"))
        asked = CardRequest((VgpuRequest(1, draw.choice((2000, 4000, 6000, 9000)), draw.choice((0, 20, 40))),))
        shape = Shape(requests=requests_from({"cpu": "500m", "memory": "1Gi"}), cards=draw.choice((asked, asked, asked, None)))
        for i in range(draw.randint(1, 7)):
            cluster.put_task(TaskSpec(uid=f"{name}-{i}", namespace="a", name=f"{name}-{i}", job=f"a/{name}", shape=shape))
    return cluster


def decided(seed: int, policy: str, *, plain: bool, jobs: Callable[[int], Cluster] = equal_jobs) -> tuple[list[object], ...]:
    with pytest.MonkeyPatch.context() as patch:
        if plain:
            patch.setattr(allocate, "may_take_turns_together", lambda session: False)
        record = decide(jobs(seed).snapshot(), POLICIES[policy], installed(), 1e9)
    return list(record.binds), list(record.evictions), list(record.nominations), list(record.jobs), list(record.tried)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sampled_from(sorted(POLICIES)))
def test_a_cycle_decides_the_same_with_plain_turns(seed: int, policy: str) -> None:
    assert decided(seed, policy, plain=False) == decided(seed, policy, plain=True)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(["cards", "volcano, cards"]))
def test_cards_are_given_out_as_with_plain_turns(seed: int, policy: str) -> None:
    """In Volcano a placement that is undone keeps its cards: nothing may be tried that plain turns do not try."""
    assert decided(seed, policy, plain=False, jobs=jobs_with_cards) == decided(seed, policy, plain=True, jobs=jobs_with_cards)


@pytest.mark.parametrize("policy", ["navarch", "volcano", "by age", "by share", "proportion", "capacity"])
def test_random_clusters_have_turns_in_one_step(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the property above compares plain turns with plain turns."""
    together: list[bool] = []
    take = EqualTurns.take

    def counted(turns: EqualTurns, job: Job, others: JobHeap) -> bool:
        together.append(take(turns, job, others))
        return together[-1]

    monkeypatch.setattr(EqualTurns, "take", counted)
    for seed in range(20):
        decided(seed, policy, plain=False)
    assert sum(together) > 20
