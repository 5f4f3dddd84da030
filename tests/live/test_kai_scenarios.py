"""KAI's own plays from beginning to end, on either server: gangs in parts, pods that are moved together, queues that take back what
is theirs, jobs that shrink, and GPUs that are shared; with what their users read on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.worlds.live.cluster import BUDGETS, World
from tests.worlds.live.kai import (
    KAI,
    QUEUES,
    get_group,
    gpu_node,
    group,
    job_row,
    kai_world,
    member,
    members,
    queue,
    queue_rows,
    refusal,
    runs,
    shown,
    told,
)
from tests.worlds.live.priority_classes import CLASSES

from navarch.kube.client import PatchType
from navarch.kube.resources import PODS

pytestmark = pytest.mark.live
DIRECT = {**KAI, "bind_requests": False}


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def play(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with kai_world(request, tmp_path) as made:
        await queue(made, "department")
        yield made


async def test_a_gang_in_parts_within_parts_starts_when_each_of_them_can(play: World) -> None:
    world = play
    await queue(world, "team", "department")
    await gpu_node(world, "n0", 4)
    history = await world.watch()
    parts = [
        {"name": "ps", "minMember": 1},
        {"name": "workers", "minSubGroup": 2},
        {"name": "left", "parent": "workers", "minMember": 2},
        {"name": "right", "parent": "workers", "minMember": 2},
    ]
    await group(world, "train", subGroups=parts)
    for part, pods in (("ps", 1), ("left", 2), ("right", 1)):
        await members(world, "train", pods, part=part)
    async with world.scheduler(**DIRECT):
        note = "Waiting for 5 pods, currently 4 exist, 0 are gated, sub-group right has 1 of 2"
        said = ("Normal", "NotReady", f"Job is not ready for scheduling. {note}")
        await world.eventually(lambda: world.events("train"), lambda found: said in found)
        await shown(world, "train", min_member=5, pending=4, why=note)

        await member(world, "train-right-1", "train", "right")
        condition = await told(world, "train")
        lacking = "Resources were found for 1 pods from all sub-groups while sub-group right requires 2 pods for gang scheduling."
        assert condition["message"].startswith(lacking) and "1 node(s) didn't have enough resources: GPUs" in condition["message"]
        assert history.bound() == [], "there is a GPU for each of four"
        await refusal(world, "train-right-1", lacking)
        await shown(world, "train", pending=5, why="cannot start: needs 5 GPUs, the cluster has 4")

        await gpu_node(world, "n1", 1)
        await history.until_bound(5)
        await world.eventually(
            lambda: get_group(world, "train"),
            lambda found: (
                not found.get("status", {}).get("schedulingConditions")
                and "kai.scheduler/last-start-timestamp" in found["metadata"].get("annotations", {})
            ),
        )
        await shown(world, "train", phase="Running", running=5, why="")
    history.check([("train", 5)])


async def test_the_minimum_number_of_sub_groups_starts_and_the_rest_follows(play: World) -> None:
    world = play
    await queue(world, "team", "department")
    await gpu_node(world, "n0", 3)
    history = await world.watch()
    await group(world, "serve", minSubGroup=1, subGroups=[{"name": name, "minMember": 2} for name in ("a", "b")])
    for part in ("a", "b"):
        await members(world, "serve", 2, part=part)
    async with world.scheduler(**DIRECT):  # KAI binds b-0 by itself while b-1 does not exist
        await history.until_bound(2)
        await refusal(world, "serve-b-0", "sub-group b requires 2 pods for gang scheduling")
        assert history.bound() == [f"{world.namespace}/serve-a-{i}" for i in range(2)], "one GPU is left, and b needs two at once"
        await shown(world, "serve", min_member=2, phase="Running", running=2, pending=2)
        await gpu_node(world, "n1", 1)
        await history.until_bound(4)
    history.check([("serve-a", 2), ("serve-b", 2)])


async def test_running_pods_are_moved_together_so_that_a_larger_one_fits(play: World) -> None:
    """Two nodes of two GPUs, one busy on each. A preemptible pod has to move, and leaves only after its grace period."""
    world = play
    await queue(world, "team", "department")
    await gpu_node(world, "n0", 2)
    await gpu_node(world, "n1", 2)
    history = await world.watch()
    async with world.scheduler(**DIRECT):
        for name in ("first", "second", "third"):
            await group(world, name, minMember=1, preemptibility="preemptible" if name == "third" else "non-preemptible")
            await member(world, f"{name}-0", name, grace=3600)
            await history.until_bound(1, name)
            await runs(world, f"{name}-0")
        assert [(task.name, task.node) for task in history.standing()] == [("first-0", "n0"), ("second-0", "n0"), ("third-0", "n1")]
        await world.client.delete(PODS, "second-0", namespace=world.namespace, grace_period=0)

        await group(world, "large", minMember=1)
        await member(world, "large-0", "large", gpus=2)
        await history.until(
            lambda: [t.name for t in history.tasks.values() if t.deleting] == ["third-0"], "the pod that may be moved is evicted"
        )
        promise = "node n1 is promised to it: it starts there when pods that are leaving are gone"
        await refusal(world, "large-0", promise)
        assert (await world.get_pod("large-0"))["status"]["nominatedNodeName"] == "n1"
        await shown(world, "large", why=promise)
        note = f"Evicted by consolidation for {world.namespace}/large"
        event = ("Normal", "Evict", f"Pod {world.namespace}/third-0: {note}")
        await world.eventually(lambda: world.events("third"), lambda found: event in found)

        await member(world, "third-1", "third")  # as its controller does when it sees the first one leave
        await history.until_bound(1, "third-1")
        assert history.bound("large") == []
        await world.client.delete(PODS, "third-0", namespace=world.namespace, grace_period=0)
        await history.until_bound(1, "large")
        where = {task.name: task.node for task in history.standing()}
        assert where == {"first-0": "n0", "third-1": "n0", "large-0": "n1"}
    assert history.broken == []


async def test_a_critical_pod_gets_its_room_although_a_budget_covers_every_victim(play: World) -> None:
    """As KAI does: victims are deleted, and no budget vetoes it."""
    world = play
    await queue(world, "team", "department")
    await gpu_node(world, "n0", 2)
    for name, value in (("low", 10), ("high", 90)):
        made = f"{name}-{world.namespace}"
        await world.clusterwide(CLASSES, {"metadata": {"name": made}, "value": value})
    history = await world.watch()
    async with world.scheduler(**DIRECT):
        for i in range(2):
            await group(world, f"low{i}", minMember=1, priorityClassName=f"low-{world.namespace}")
            await member(world, f"low{i}-0", f"low{i}", labels={"app": "low"})
        await history.until_bound(2)
        spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "low"}}}
        await world.client.create(BUDGETS, {"metadata": {"name": "keep"}, "spec": spec}, namespace=world.namespace)
        await runs(world, "low0-0", "low1-0")
        await group(world, "high", minMember=1, priorityClassName=f"high-{world.namespace}")
        await member(world, "high-0", "high")
        await history.until_bound(1, "high")
        assert len(history.evicted) == 1
    assert history.broken == []


async def test_a_queue_takes_back_its_share_and_no_more(play: World) -> None:
    """Four GPUs, a quota of one each, equal weights: each has two of them due, and one queue holds all."""
    world = play
    for name in ("lender", "owner"):
        await queue(world, name, "department", quota=1)
    await gpu_node(world, "n0", 4)
    history = await world.watch()
    async with world.scheduler(**DIRECT):
        for i in range(4):
            await group(world, f"loan{i}", "lender", minMember=1)
            await member(world, f"loan{i}-0", f"loan{i}")
        await history.until_bound(4)
        await runs(world, *(f"loan{i}-0" for i in range(4)))
        await group(world, "due", "owner", minMember=2)
        await members(world, "due", 2)
        await history.until_bound(2, "due")
        assert len(history.evicted) == 2 and len(history.bound("loan")) == 2
        gone = min(history.evicted).removeprefix(f"{world.namespace}/")
        note = f"Evicted by reclaim for {world.namespace}/due"
        await world.eventually(lambda: world.events(gone), lambda found: ("Warning", "Evicted", note) in found)

        await group(world, "more", "owner", minMember=1)
        await member(world, "more-0", "more")
        figures = "it holds 2 GPUs and the workload requested 1 GPUs, more than its fair share of 2 GPUs"
        share = f"owner may not take from other queues: {figures}"
        condition = await told(world, "more")
        assert condition["reasons"][-1] == {"reason": "OverFairShare", "message": share}
        await world.eventually(lambda: world.events("more"), lambda found: any(share in text for _, _, text in found))
        await refusal(world, "more-0", "1 node(s) didn't have enough resources: GPUs")
        await world.eventually(lambda: job_row(world, "more"), lambda row: share in row.messages)
        rows = await queue_rows(world)
        for name, asks in (("lender", 2), ("owner", 3)):
            assert (rows[name].fair_share or {})["nvidia.com/gpu"] == 2000
            assert (rows[name].allocated["nvidia.com/gpu"], rows[name].request["nvidia.com/gpu"]) == (2000, 1000 * asks)
            assert rows[name].share == pytest.approx(1.0)
    assert (len(history.evicted), history.broken) == (2, [])


async def test_three_gpus_for_a_queue_that_holds_four_and_two_thirds_of_eight(play: World) -> None:
    """Whether it may take them is a matter of quotas. With four each it has a fair share of five (its quota, and one of the one that
    the other does not ask for), and 4.66 + 3 is more: nothing is taken. With all eight as its quota 7.66 is within it, and each GPU
    that the other holds is above its own quota of none: it goes."""
    world = play
    await queue(world, "held", "department", quota=4)
    await queue(world, "asks", "department", quota=4)
    await gpu_node(world, "n0", 8)
    history = await world.watch()
    async with world.scheduler(**DIRECT, gpu_sharing="annotations"):
        for name, belongs in (*((f"mine{i}", "asks") for i in range(4)), *((f"theirs{i}", "held") for i in range(3))):
            await group(world, name, belongs, minMember=1)
            await member(world, f"{name}-0", name)
        await group(world, "mine4", "asks", minMember=1)
        await member(world, "mine4-0", "mine4", gpus=0, annotations={"gpu-fraction": "0.66"})
        await history.until_bound(8)
        await group(world, "want", "asks", minMember=3)
        await members(world, "want", 3)
        condition = await told(world, "want")
        share = "it holds 4.66 GPUs and the workload requested 3 GPUs, more than its fair share of 5 GPUs"
        assert condition["reasons"][-1]["message"] == f"asks may not take from other queues: {share}"
        assert history.evicted == set()

        for name, quota in (("held", 0), ("asks", 8)):
            body = {"spec": {"resources": {"gpu": {"quota": quota}}}}
            await world.client.patch(QUEUES, name, body, PatchType.MERGE)
        await history.until_bound(3, "want")
        assert history.evicted == {f"{world.namespace}/theirs{i}-0" for i in range(3)}
        rows = await queue_rows(world)
        assert rows["asks"].allocated["nvidia.com/gpu"] == 7660
    assert history.broken == []


async def test_a_job_gives_what_it_has_above_its_minimum_and_grows_again(play: World) -> None:
    world = play
    for name in ("team", "other"):
        await queue(world, name, "department", quota=2)
    await gpu_node(world, "n0", 4)
    history = await world.watch()
    async with world.scheduler(**DIRECT):
        await group(world, "elastic", minMember=2)
        await members(world, "elastic", 4)
        await history.until_bound(4)
        await runs(world, *(f"elastic-{i}" for i in range(4)))
        await group(world, "want", "other", minMember=2)
        await members(world, "want", 2)
        await history.until_bound(2, "want")
        assert len(history.evicted) == 2 and len(history.bound("elastic")) == 2, "what it needs stays"
        for i in (4, 5):
            await member(world, f"elastic-{i}", "elastic")
        await refusal(world, "elastic-4", "1 node(s) didn't have enough resources: GPUs")
        await shown(world, "elastic", phase="Running", min_member=2, running=2, pending=2)
        assert len(history.evicted) == 2, "both hold what is due to them"
        for i in range(2):
            await world.client.delete(PODS, f"want-{i}", namespace=world.namespace, grace_period=0)
        await history.until_bound(4, "elastic")
    assert history.broken == []
