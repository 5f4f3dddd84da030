"""Pods that share GPUs, with KAI's binder and without it: the marks that say which GPU each uses, and which pods fit together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.live.cluster import World
from tests.worlds.live.kai import GPU, KAI, REQUESTS, gpu_node, group, kai_world, member, queue, refusal, shown

from navarch.cli.cluster.reading import read_overview
from navarch.installed import installed
from navarch.kube.client import PatchType
from navarch.kube.resources import PODS

pytestmark = pytest.mark.live
LABEL = "runai-gpu-group"


@pytest.fixture(params=["embedded", "kube-apiserver"])
async def play(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with kai_world(request, tmp_path) as made:
        await queue(made, "department")
        await queue(made, "team", "department")
        await gpu_node(made, "n0", 2)
        yield made


async def sharer(world: World, name: str, fraction: str, **annotations: str) -> None:
    await group(world, name, minMember=1)
    await member(world, name, name, gpus=0, annotations={"gpu-fraction": fraction, **annotations})


async def seat(world: World, name: str) -> tuple[str, ...]:
    """The GPUs of a pod, by its labels; by its annotation where the server (before 1.35) copies no labels from a binding."""
    metadata = (await world.get_pod(name))["metadata"]
    found = [value for key, value in (metadata.get("labels") or {}).items() if key.split("/")[0] == LABEL]
    return tuple(sorted(found or metadata["annotations"].get(LABEL, "").split(",")))


async def gpus_used(world: World) -> float:
    (node,) = (await read_overview(world.client, "kai", installed(), print, ("kai-scheduler",))).nodes
    return node.used.get(GPU, 0) / 1000


async def test_without_a_binder_the_gpus_are_written_with_the_binding(play: World) -> None:
    world = play
    history = await world.watch()
    async with world.scheduler(**KAI, bind_requests=False):
        await sharer(world, "a", "0.5")
        why = "sharing a GPU needs KAI's binder, or --gpu-sharing=annotations"
        await refusal(world, "a", why)
        await shown(world, "a", why=why)
    async with world.scheduler(**KAI, bind_requests=False, gpu_sharing="annotations"):
        await history.until_bound(1, "a")
        for name, fraction in (("b", "0.4"), ("c", "0.5")):
            await sharer(world, name, fraction)
            await history.until_bound(1, name)
        (first,), (second,), (third,) = [await seat(world, name) for name in "abc"]
        assert first == second != third, "0.5 and 0.4 fill a GPU as far as it goes"
        assert await gpus_used(world) == 2
        marks = (await world.get_pod("a"))["metadata"]["annotations"]
        assert (marks["received-resource-type"], marks[LABEL]) == ("Fraction", first)
        await sharer(world, "d", "0.6")
        await refusal(world, "d", "1 node(s) didn't have enough resources: GPUs")
    async with world.scheduler(**KAI, bind_requests=False, gpu_sharing="annotations"):
        # Another scheduler knows the GPU of each pod from the marks alone.
        await world.client.delete(PODS, "b", namespace=world.namespace, grace_period=0)
        await sharer(world, "e", "0.5", **{"gpu-fraction-num-devices": "2"})
        await history.until_bound(1, "e")
        assert await seat(world, "e") == tuple(sorted((first, third))), "the other half of each"
    assert history.broken == [] and history.waiting() == [f"{world.namespace}/d"]
    assert (await world.client.list(REQUESTS, namespace=world.namespace)).items == []


async def test_kais_binder_is_told_the_gpus_and_what_it_marks_is_believed(play: World) -> None:
    world = play
    history = await world.watch()
    async with binder(world) as carried_out, world.scheduler(**KAI):
        for name, fraction in (("a", "0.5"), ("b", "0.5"), ("c", "0.25")):
            await sharer(world, name, fraction)
            await history.until_bound(1, name)
        await sharer(world, "d", "0.8")
        await refusal(world, "d", "1 node(s) didn't have enough resources: GPUs")
        asked = {request["spec"]["podName"]: request["spec"] for request in carried_out}
        assert sorted(asked) == ["a", "b", "c"]
        assert {(spec["receivedResourceType"], spec["receivedGPU"]["count"]) for spec in asked.values()} == {("Fraction", 1)}
        assert [asked[name]["receivedGPU"]["portion"] for name in "abc"] == ["0.50", "0.50", "0.25"]
        seats = [asked[name]["selectedGPUGroups"] for name in "abc"]
        assert seats[0] == seats[1] != seats[2]
        assert [list(await seat(world, name)) for name in "abc"] == seats
        assert await gpus_used(world) == 2
        await world.client.delete(PODS, "c", namespace=world.namespace, grace_period=0)
        await history.until_bound(1, "d")
        assert carried_out[-1]["spec"]["selectedGPUGroups"] not in seats, "a name is given once"
    assert history.broken == []


@contextlib.asynccontextmanager
async def binder(world: World) -> AsyncIterator[list[dict[str, Any]]]:
    """KAI's binder: marks the pod with its GPUs, binds it, and says so. Yields the requests that it has carried out."""
    done: list[dict[str, Any]] = []

    async def work() -> None:
        while True:
            for request in (await world.client.list(REQUESTS, namespace=world.namespace)).items:
                if request.get("status", {}).get("phase"):
                    continue
                name, (seat,) = request["spec"]["podName"], request["spec"]["selectedGPUGroups"]
                labelled = {"metadata": {"labels": {LABEL: seat}}}
                pod = await world.client.patch(PODS, name, labelled, PatchType.MERGE, namespace=world.namespace)
                done.append(request)
                await world.client.bind(world.namespace, name, uid=pod["metadata"]["uid"], node=request["spec"]["selectedNode"])
                succeeded = {"status": {"phase": "Succeeded"}}
                await world.client.patch(REQUESTS, name, succeeded, PatchType.MERGE, subresource="status", namespace=world.namespace)
            await asyncio.sleep(0.02)

    task = asyncio.create_task(work())
    try:
        yield done
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
