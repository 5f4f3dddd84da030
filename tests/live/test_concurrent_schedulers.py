"""Two schedulers that are both at work, in processes of their own, released upon the same pods at the same instant.

What is promised then: no pod is bound twice, since the API server refuses the second binding and its sender finds out where
the pod is; each sees what the other bound; a gang is whole in the end. That a node is not filled by both cannot be promised, as
kube-scheduler cannot: neither knows what the other is about to write. The kubelet turns away what is too much, its owner makes a
new pod, and that finds its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from functools import partial

import pytest
from aiohttp import web
from tests.worlds.live.cluster import World, end
from tests.worlds.live.history import History

from navarch.embedded.api.server import ApiServer
from navarch.kube.client import PatchType
from navarch.kube.resources import PODS

pytestmark = pytest.mark.live

NODES = 12
ROUNDS = 4
GANGS = [(f"gang{i}-", 4) for i in range(8)]
SINGLES = 16
PACKING = """
actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: binpack}]
"""


class Kubelets:
    """Turn away the youngest pod of a node that is too full, as kubelets do; its owner makes another in its stead."""

    def __init__(self, world: World, history: History) -> None:
        self._world = world
        self._history = history
        self.turned_away = 0

    async def run(self) -> None:
        while True:
            if full := self._history.too_full():
                await self._turn_away([task.uid for task in self._history.standing() if task.node == full[0]][-1])
            else:  # asked anew after each: what changed meanwhile is told of once
                await self._history.change()

    async def _turn_away(self, uid: str) -> None:
        task = self._history.tasks[uid]
        status = {"status": {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}}
        await self._world.client.patch(PODS, task.name, status, PatchType.MERGE, namespace=task.namespace, subresource="status")
        await self._history.until(lambda: task.uid not in {each.uid for each in self._history.standing()}, "it has failed")
        self.turned_away += 1
        pod = await self._world.get_pod(task.name)
        group = pod["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name", "")
        scheduler = pod["spec"]["schedulerName"]
        await self._world.pod(f"{task.name}-again", group=group, scheduler=scheduler)


class Together:
    """Holds back what one of them binds in a round until the other binds something as well: each has then decided about pods that
    the other has decided about. Without it, one that the machine favours is done before the other begins."""

    def __init__(self, server: ApiServer) -> None:
        self._sent: dict[str, asyncio.Event] = {}
        server.faults.intercept(self._hold)

    def next_round(self) -> None:
        self._sent = {who: asyncio.Event() for who in ("first", "second")}

    def let_go(self) -> None:
        self._sent = {}

    async def _hold(self, request: web.BaseRequest) -> None:
        if request.path.endswith("/binding") and self._sent:
            self._sent[request.headers["Impersonate-User"]].set()
            await asyncio.gather(*(each.wait() for each in self._sent.values()))


@contextlib.asynccontextmanager
async def kubelets(world: World, history: History) -> AsyncIterator[Kubelets]:
    made = Kubelets(world, history)
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def load(world: World, number: int, names: list[str]) -> None:
    """A fourth of what there is room for, each other one for each scheduler."""
    for i, (stem, members) in list(enumerate(GANGS))[number::ROUNDS]:
        await world.gang(stem.rstrip("-"), members, scheduler=names[i // ROUNDS % len(names)])
    singles = range(SINGLES)[number::ROUNDS]
    await asyncio.gather(*(world.pod(f"single-{i}", scheduler=names[i // ROUNDS % len(names)]) for i in singles))


def conflicts(world: World) -> int:
    """Bindings that came too late, as both tell of them."""
    lines = [line for who in ("first", "second") for line in world.log_of(who).read_text(encoding="utf-8").splitlines()]
    return sum("bind of " in line and "/binding: 409 " in line for line in lines)


@pytest.mark.parametrize("names", [["navarch"], ["navarch", "rival"]], ids=["one name", "two names"])
async def test_two_schedulers_decide_at_the_same_instant(any_world: World, names: list[str]) -> None:
    world = any_world
    for i in range(NODES):
        await world.node(f"r{i}")
    history = await world.watch()
    together = Together(world.server) if world.server is not None and len(names) == 1 else None

    def stand(wanted: int) -> bool:
        return len(history.standing()) == wanted and not history.too_full()

    (world.folder / "packing.yaml").write_text(PACKING)
    # One spreads and one packs, so that they disagree about every pod.
    first = await world.process("--no-leader-elect", "--cycle-timeout=0", f"--scheduler-name={names[0]}", name="first")
    second = await world.process(
        "--no-leader-elect",
        "--cycle-timeout=0",
        f"--scheduler-name={names[-1]}",
        f"--policy={world.folder / 'packing.yaml'}",
        name="second",
    )
    try:
        async with kubelets(world, history) as room:
            await asyncio.gather(world.said("first", "leading:"), world.said("second", "leading:"))
            for number in range(ROUNDS):
                for process in (first, second):
                    process.send_signal(signal.SIGSTOP)
                await load(world, number, names)
                if together is not None:
                    together.next_round()
                for process in (first, second):
                    process.send_signal(signal.SIGCONT)
                wanted = (number + 1) * (4 * len(GANGS) + SINGLES) // ROUNDS
                await history.until(partial(stand, wanted), f"{wanted} stand")
        history.check(GANGS, rivals=True)
        assert len(history.seen) == wanted + room.turned_away
        if together is not None:
            await world.eventually(lambda: asyncio.sleep(0, conflicts(world)), bool)
            together.let_go()
        elif len(names) == 2:
            assert conflicts(world) == 0

        # Each knows what the other did: the remaining one finds the nodes full, and one place when one is freed.
        assert await end(second) == 0
        before = len(history.overfull)
        await asyncio.gather(*(world.pod(f"late-{i}", scheduler=names[0]) for i in range(3)))
        await world.eventually(lambda: world.events("late-2"), lambda said: any(reason == "FailedScheduling" for _, reason, _ in said))
        gone = history.standing("single")[-1]
        await world.client.delete(PODS, gone.name, namespace=gone.namespace, grace_period=0)
        await history.until(lambda: len(history.standing("late")) == 1, "one place, one pod")
        assert len(history.overfull) == before
        history.check(GANGS, rivals=True, lost=False)
    finally:
        for process in (first, second):
            await end(process, signal.SIGKILL)
