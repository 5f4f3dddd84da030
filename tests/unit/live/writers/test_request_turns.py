"""Requests to KAI's binder for one node: one that opens a shared GPU has the node for itself."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from tests.worlds.kai_objects import group, node, pod
from tests.worlds.live_parts.binder import Ends
from tests.worlds.live_parts.fake_pool import Submitted
from tests.worlds.live_parts.kai_core import SETTINGS, KaiCore

from navarch.apis.core.objects import from_manifest
from navarch.apis.kai.objects import BindRequest, read_bind_request
from navarch.kube.client import Client
from navarch.kube.errors import Forbidden, Status
from navarch.live.instructions import BindPod, Instruction
from navarch.live.writers.bind_requests import BindRequests
from navarch.live.writers.binder import Binder, OutcomeLookup


class World(KaiCore):
    """A live core with the binder, and the API server that shows what the test says."""

    def __init__(self, *nodes: dict[str, Any]) -> None:
        super().__init__(*nodes)
        self.submitted = Submitted()
        requests = BindRequests(cast(Client, None), self.cache, lambda: True, enabled=True)
        self.turns = requests.turns
        self.binder = Binder(self.submitted.pool, self.core, cast(OutcomeLookup, Ends()), requests=requests)

    def carry_out(self, instruction: Instruction) -> None:
        if isinstance(instruction, BindPod):
            self.binder.bind(instruction.bind)

    def job(self, name: str, count: int = 1, least: int = 1, **more: Any) -> None:
        self.show_group(group(name, "a", least=least))
        for number in range(count):
            self.show(pod(f"{name}-{number}", name, **more))

    @property
    def asked(self) -> list[str]:
        """Pods whose requests were written and have no answer yet."""
        return [msgspec.json.decode(write.body)["spec"]["podName"] for write, _ in self.submitted.open]

    def take(self) -> dict[str, Any]:
        """The API server accepts the oldest request, and the watch shows it."""
        request: dict[str, Any] = msgspec.json.decode(self.submitted.open[0][0].body)
        self.submitted.end()
        self._put(request)
        self.binder.flush()
        return request

    def _put(self, request: dict[str, Any], **status: Any) -> None:
        self.cache.put(read_bind_request(from_manifest({**request, "status": status}, BindRequest), SETTINGS))

    def bind(self, request: dict[str, Any]) -> None:
        """The binder carried the request out: the pod is on its node, with the label of its GPU."""
        self._put(request, phase="Succeeded")
        manifest = self.pods[request["spec"]["podName"]]
        groups = request["spec"].get("selectedGPUGroups") or []
        labels = {"labels": {"runai-gpu-group": groups[0]}} if groups else {}
        self.show({**manifest, "metadata": {**manifest["metadata"], **labels}, "spec": {**manifest["spec"], "nodeName": "n"}})
        self.binder.flush()

    def give_up(self, request: dict[str, Any]) -> None:
        """The binder failed too often, and the request was removed."""
        self._put(request, phase="Failed", failedAttempts=3)
        self.binder.flush()
        assert self.asked == [], "the binder may still work on it while it is there"
        self.cache.remove(read_bind_request(from_manifest(request, BindRequest), SETTINGS))
        self.binder.flush()


async def test_one_request_that_opens_a_gpu_is_under_way_on_a_node() -> None:
    world = World(node("n", 2))
    world.job("x", 2, least=2, fraction="0.75")
    world.job("y", 1, gpus=0)
    world.decide()
    bound = []
    while world.asked:
        assert len(world.asked) == 1, "the next request waits until the reservation of this one is in use"
        request = world.take()
        assert world.asked == []
        world.bind(request)
        bound.append(request["spec"]["podName"])
    assert sorted(bound) == ["x-0", "x-1", "y-0"]


async def test_requests_that_open_no_gpu_go_together_and_so_do_nodes() -> None:
    world = World(node("n", 2), node("m", 2))
    world.job("shared", 1, fraction="0.25")
    world.decide()
    world.bind(world.take())
    for number in range(3):
        world.job(f"more-{number}", 1, fraction="0.25")
    world.job("whole", 1, gpus=1)
    world.decide()
    assert len(world.asked) == 4, "the GPU of the others is open"

    apart = World(node("n", 1), node("m", 1))
    apart.job("x", 2, least=2, fraction="0.75")
    apart.decide()
    assert sorted(apart.asked) == ["x-0", "x-1"], "each opens a GPU of another node"


async def test_a_request_that_opens_a_gpu_waits_for_all_that_are_under_way() -> None:
    """Also for those that an earlier process wrote: they are read from the cluster."""
    world = World(node("n", 2))
    world.job("plain", 1, gpus=1)
    world.decide()
    plain = world.take()
    world.job("x", 1, fraction="0.5")
    world.job("y", 1)
    world.decide()
    assert world.asked == [], "y came after x"
    world.bind(plain)
    assert world.asked == ["x-0"]
    world.bind(world.take())
    assert world.asked == ["y-0"]


@pytest.mark.parametrize("how", ["refused", "given up", "deleted"])
async def test_a_request_that_comes_to_nothing_ends_its_turn(how: str) -> None:
    world = World(node("n", 2))
    for name in "xy":
        world.job(name, 1, fraction="0.75")
    world.decide()
    (first,) = world.asked
    if how == "refused":
        world.submitted.end(Forbidden(Status(code=403, reason="", message="no")))
        world.binder.flush()
        assert world.asked == [], "the API server is asked first whether the request is there"
        (bind,) = (each for each in world.cache.assumed.binds.values() if each.name == first)
        world.core.bind_failed(bind, "no", 0.0)
        world.binder.flush()
    elif how == "given up":
        world.give_up(world.take())
    else:
        world.take()
        world.cache.remove_pod(first)
        world.binder.flush()
    (second,) = world.asked
    assert {first, second} == {"x-0", "y-0"}


async def test_a_pod_that_is_deleted_while_it_waits_leaves_its_turn() -> None:
    world = World(node("n", 4))
    for name in "xyz":
        world.job(name, 1, fraction="0.75")
    world.decide()
    (first,) = world.asked
    second, third = sorted({"x-0", "y-0", "z-0"} - {first})
    world.cache.remove_pod(second)
    world.bind(world.take())
    assert world.asked == [third]


async def test_a_gang_that_waits_for_its_turns_is_said_to_advance() -> None:
    """So it is not released as half bound while reservations are made one after the other. Then none of its pods goes on."""
    world = World(node("n", 2))
    world.job("x", 2, least=2, fraction="0.75")
    assert world.turns.advanced_at("ns/x") is None
    world.decide()
    assert (world.turns.advanced_at("ns/x") or 0) > 0
    assert [bind.name for bind in world.turns.give_up("ns/x")] == sorted({"x-0", "x-1"} - set(world.asked))
    assert world.turns.advanced_at("ns/x") is None
    world.bind(world.take())
    assert world.asked == []
