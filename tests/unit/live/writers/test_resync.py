"""Binds of unknown outcome: the API is asked until it is known, and it is reported once."""

from __future__ import annotations

import asyncio
import random
from typing import Any, cast

import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.binder import Ends, Scene, status
from tests.worlds.live_parts.cluster_cache import pod, put

from navarch.apis.core.pod_objects import Pod
from navarch.kube.client import Client
from navarch.kube.errors import KubeError, NotFound, NotServed, OutcomeUnknown, ServerFault, Status, Unreachable
from navarch.kube.resources import PODS, Resource
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.core import LiveCore
from navarch.live.writers.resync import UNSEEN, Resync
from navarch.model.status import TaskStatus

pytestmark = pytest.mark.looptime


class Server:
    """Has one pod; answers when it is told to."""

    def __init__(self, found: Pod) -> None:
        self.found = found
        self.asked = 0
        self.answers = asyncio.Event()
        self.failures: list[KubeError] = []
        self.request: dict[str, Any] = {}
        """The request to another binder."""

    async def get(self, resource: Resource, *_: Any, **__: Any) -> Pod | dict[str, Any]:
        if resource != PODS:
            return self.request
        self.asked += 1
        await self.answers.wait()
        if self.failures:
            raise self.failures.pop(0)
        return self.found


class Asked:
    """A scene whose binder asks a server that has the pod `found`."""

    def __init__(self, found: Pod) -> None:
        self.server = Server(found)
        scene = Scene(resync=self._resync)
        self.scene, self.cache, self.submitted, self.ends, self.bind = scene, scene.cache, scene.submitted, scene.ends, scene.bind

    def _resync(self, core: LiveCore) -> Resync:
        self.resync = Resync(cast(Client, self.server), core, random.Random(1))
        return self.resync


def unknown() -> tuple[Resync, Server, ClusterCache, Ends, AssumedBind]:
    """The binding of a pod was sent, and no answer came."""
    made = Asked(pod("a"))
    made.submitted.end(OutcomeUnknown("cut"))
    return made.resync, made.server, made.cache, made.ends, made.bind


async def led(resync: Resync, seconds: float) -> None:
    """Lead for a while."""
    task = asyncio.create_task(resync.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_one_that_was_being_asked_for_when_the_lead_was_lost_is_asked_for_when_it_comes_back() -> None:
    resync, server, made, ends, _ = unknown()
    await led(resync, 2.0)
    assert (server.asked, ends.heard, status(made)) == (1, [], TaskStatus.BINDING)
    server.answers.set()
    await led(resync, 2.0)
    assert (server.asked, ends.heard, status(made)) == (2, ["failed"], TaskStatus.PENDING)


@pytest.mark.parametrize("asked", [False, True], ids=["before it is asked for", "while it is asked for"])
@pytest.mark.parametrize(("node", "end"), [("n1", "bound"), ("n2", "dropped")])
async def test_an_outcome_that_the_watch_shows_first_is_reported(asked: bool, node: str, end: str) -> None:
    resync, server, made, ends, _ = unknown()
    if asked:
        await led(resync, 2.0)
    put(made, pod("a", node))
    server.answers.set()
    await led(resync, 2.0)
    assert ends.heard == [end]
    assert ends.announced == (["a"] if end == "bound" else [])


async def test_a_bind_is_looked_up_exactly_when_it_is_due() -> None:
    asked = Asked(pod("a"))
    resync, server, submitted, ends = asked.resync, asked.server, asked.submitted, asked.ends
    server.answers.set()
    task = asyncio.create_task(resync.run())
    await asyncio.sleep(2.0)
    submitted.end(OutcomeUnknown("cut"))
    await asyncio.sleep(1.5)
    assert (server.asked, ends.heard) == (1, ["failed"])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("found", "end", "place"),
    [
        (pod("a", "n1"), "bound", TaskStatus.BINDING),
        (pod("a"), "failed", TaskStatus.PENDING),
        (pod("a", "n2"), "failed", TaskStatus.PENDING),
        (replace(pod("a", "n1"), metadata=replace(pod("a").metadata, uid="uid-other")), "failed", TaskStatus.PENDING),
        (None, "failed", TaskStatus.PENDING),
    ],
    ids=["bound", "not bound", "bound elsewhere", "another pod", "no pod"],
)
async def test_the_answer_of_the_server_is_reported(found: Pod | None, end: str, place: TaskStatus) -> None:
    resync, server, made, ends, bind = unknown()
    if found is None:
        server.failures.append(NotFound(Status(code=404, reason="NotFound", message="no such pod")))
    else:
        server.found = found
    server.answers.set()
    await led(resync, 10.0)
    assert (server.asked, ends.heard, status(made), len(resync)) == (1, [end], place, 0)
    assert (bind.uid in made.assumed.binds) == (end == "bound"), "its place is kept until the watch shows it"


async def test_a_server_that_cannot_say_is_asked_again_until_it_can() -> None:
    resync, server, made, ends, _ = unknown()
    server.failures = [ServerFault(Status(code=500, reason="", message="store")), OutcomeUnknown("cut"), Unreachable("down")]
    server.answers.set()
    await led(resync, 0.5)
    assert (server.asked, len(resync)) == (0, 1), "not before a second has passed"
    await led(resync, 30.0)
    assert (server.asked, ends.heard, status(made)) == (4, ["failed"], TaskStatus.PENDING)


async def test_what_names_no_pod_is_no_answer() -> None:
    resync, server, made, ends, _ = unknown()
    server.failures.append(NotServed(Status(code=404, reason="NotFound", message="404 page not found")))
    server.found = replace(pod("a"), metadata=replace(pod("a").metadata, uid=None))
    server.answers.set()
    await led(resync, 10.0)
    assert (ends.heard, status(made)) == ([], TaskStatus.BINDING)
    server.found = pod("a", "n1")
    await led(resync, 10.0)
    assert (ends.heard, status(made)) == (["bound"], TaskStatus.BINDING)


@pytest.mark.parametrize(("there", "end"), [(True, "bound"), (False, "failed")])
async def test_a_pod_for_another_binder_counts_as_unbound_only_without_its_request(there: bool, end: str) -> None:
    resync, server, made, ends, bind = unknown()
    bind.delegated = True
    server.request = {"metadata": {"ownerReferences": [{"uid": bind.uid if there else "uid-before"}]}}
    server.answers.set()
    await led(resync, 10.0)
    assert (ends.heard, bind.uid in made.assumed.binds) == ([end], there)


async def test_a_pod_that_is_deleted_meanwhile_is_dropped() -> None:
    resync, server, made, ends, _ = unknown()
    made.remove_pod("uid-a")
    await led(resync, 2.0)
    assert (server.asked, ends.heard) == (0, ["dropped"])


async def test_a_binding_that_the_watch_does_not_show_is_looked_at_and_told_once() -> None:
    asked = Asked(pod("a", "n1"))
    resync, server, made, submitted, ends, bind = asked.resync, asked.server, asked.cache, asked.submitted, asked.ends, asked.bind
    server.answers.set()
    submitted.end()
    await led(resync, UNSEEN + 10)
    assert (server.asked, ends.heard, bind.written) == (1, ["bound"], True)
    resync.ask(bind, 0.0)
    put(made, pod("a", "n1"))
    await led(resync, 1.0)
    assert (server.asked, ends.heard, len(resync)) == (1, ["bound"], 0)
