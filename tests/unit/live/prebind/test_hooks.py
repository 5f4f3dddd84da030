"""Hooks around a binding: whatever a hook does, the bind has a known end, and a gang is bound as a whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast

import pytest

from navarch.engine.arguments import Arguments
from navarch.engine.plugin import Plugin
from navarch.engine.points.bind_hooks import BindHooks, Placement, Refused
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.record import Bind, CycleRecord
from navarch.engine.registry import Registry
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cycle import Cycle
from navarch.live.prebind.hooks import Hooks
from navarch.live.prebind.preparation import Preparations
from navarch.model.cluster import Cluster
from navarch.model.spec import Shape, TaskSpec

pytestmark = pytest.mark.looptime


class Recorded(BindHooks):
    """Notes every call. `acts` (pod name -> what it does) is set by the test."""

    acts: ClassVar[dict[str, Callable[[], Any]]] = {}
    story: ClassVar[list[str]] = []

    async def pre_bind(self, placement: Placement) -> None:
        self.story.append(f"pre {placement.name}")
        act = self.acts.get(placement.name)
        if act is not None:
            await act()

    async def undo(self, placement: Placement) -> None:
        self.story.append(f"undo {placement.name}")

    async def post_bind(self, placement: Placement) -> None:
        self.story.append(f"post {placement.name}")

    async def close(self) -> None:
        self.story.append("close")


class Hooked(Plugin):
    """Has a live side"""

    name = "hooked"
    live = Recorded


class World:
    """Preparations with hooks, where every prepared pod is bound at once."""

    def __init__(self, kind: type[Plugin] = Hooked, *, gang: bool = False) -> None:
        Recorded.acts, Recorded.story = {}, []
        self.cluster = Cluster()
        self.policy = Policy((), ((PluginOption(kind.name),),))
        self.at_hand = ""
        self.hooks = Hooks(None, lambda: self.cluster, lambda: Registry((kind,)), self._note_job)
        self.failed: dict[str, str] = {}
        self.preparations = Preparations((self.hooks,), self._fail, lambda job: gang)

    def _note_job(self, key: str) -> None:
        self.at_hand = key

    def _fail(self, bind: AssumedBind, why: str) -> None:
        self.failed[bind.name] = why
        self.preparations.ended(bind, bound=False)

    def bind(self, *names: str) -> None:
        for name in names:
            self.cluster.put_task(TaskSpec(uid=name, namespace="ns", name=name, shape=Shape(), labels={"pod": name}))
        binds = [Bind(f"ns/{name}", "n1", name, "ns/j") for name in names]

        class Decided:
            record = CycleRecord(binds=binds)
            policy = self.policy

        self.preparations.plan(cast(Cycle, Decided()))
        for name in names:
            bind = AssumedBind(name, "ns", name, "n1", "ns/j", 0.0)
            self.preparations.when_prepared(bind, partial(self._bound, bind))

    def _bound(self, bind: AssumedBind) -> None:
        Recorded.story.append(f"bind {bind.name}")
        self.preparations.ended(bind, bound=True)

    async def settled(self) -> list[str]:
        while len(self.preparations):
            await asyncio.sleep(1)
        await asyncio.sleep(1)
        return Recorded.story


async def hang() -> None:
    await asyncio.Event().wait()


async def refuse() -> None:
    raise Refused("no licence is free")


async def fail() -> None:
    raise KeyError("lost")


async def leave() -> None:
    raise SystemExit(3)


async def cancel() -> None:
    raise asyncio.CancelledError


async def test_the_binding_waits_for_a_slow_hook() -> None:
    world = World()
    Recorded.acts["a"] = lambda: asyncio.sleep(20)
    world.bind("a")
    await asyncio.sleep(10)
    assert Recorded.story == ["pre a"]
    assert await world.settled() == ["pre a", "bind a", "post a"]


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (hang, "plugin hooked: pre_bind took longer than 30 s"),
        (refuse, "plugin hooked refuses: no licence is free"),
        (fail, "plugin hooked: pre_bind failed: KeyError: 'lost'"),
        (leave, "plugin hooked: pre_bind failed: SystemExit: 3"),
        (cancel, "plugin hooked: pre_bind was cancelled"),
    ],
)
async def test_a_hook_that_fails_costs_its_pod_the_binding_and_no_other(act: Callable[[], Any], why: str) -> None:
    world = World()
    Recorded.acts["a"] = act
    world.bind("a", "b")
    story = await world.settled()
    assert world.failed == {"a": why}
    assert {"bind b", "post b", "undo a"} <= set(story) and "bind a" not in story


@pytest.mark.parametrize("act", [hang, refuse, fail])
async def test_a_gang_is_bound_as_a_whole_or_not_at_all(act: Callable[[], Any]) -> None:
    world = World(gang=True)
    Recorded.acts["c"] = act
    world.bind("a", "b", "c")
    story = await world.settled()
    assert sorted(world.failed) == ["a", "b", "c"]
    assert sorted(story) == ["pre a", "pre b", "pre c", "undo a", "undo b", "undo c"]


async def test_a_gang_waits_for_its_slowest_member() -> None:
    world = World(gang=True)
    Recorded.acts["b"] = lambda: asyncio.sleep(20)
    world.bind("a", "b")
    await asyncio.sleep(10)
    assert Recorded.story == ["pre a", "pre b"]
    assert sorted(await world.settled()) == ["bind a", "bind b", "post a", "post b", "pre a", "pre b"]


async def test_a_pod_that_is_decided_again_while_its_hooks_are_undone_is_prepared_anew() -> None:
    world = World()
    Recorded.acts["a"] = refuse
    world.bind("a")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    Recorded.acts.clear()
    while not world.failed:
        await asyncio.sleep(0)
    world.bind("a")
    assert await world.settled() == ["pre a", "undo a", "pre a", "bind a", "post a"]


async def test_errors_after_the_binding_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Careless(Recorded):
        async def post_bind(self, placement: Placement) -> None:
            raise ValueError("too late")

    class Late(Plugin):
        """Fails after the binding"""

        name = "late"
        live = Careless

    world = World(Late)
    world.bind("a")
    assert await world.settled() == ["pre a", "bind a"]
    assert "post_bind failed: ValueError: too late" in caplog.text


async def test_hooks_that_cannot_be_made_bind_nothing() -> None:
    class Broken(BindHooks):
        def __init__(self, arguments: Arguments, client: Any) -> None:
            raise OSError("no credentials")

    class Unmade(Plugin):
        """Has no live side after all"""

        name = "unmade"
        live = Broken

    world = World(Unmade)
    world.bind("a")
    await world.settled()
    assert world.failed == {"a": "plugin unmade refuses: its hooks cannot be made: OSError: no credentials"}


async def test_pods_that_a_hook_does_not_want_are_bound_at_once() -> None:
    class Choosy(Recorded):
        def wants(self, placement: Placement) -> bool:
            return placement.labels["pod"] == "b"

    class Some(Plugin):
        """Wants some pods"""

        name = "some"
        live = Choosy

    world = World(Some)
    world.bind("a", "b")
    assert Recorded.story == ["bind a"]
    assert await world.settled() == ["bind a", "pre b", "bind b", "post b"]


async def test_a_hook_sees_where_its_gang_goes() -> None:
    seen: list[Placement] = []

    class Watching(BindHooks):
        async def pre_bind(self, placement: Placement) -> None:
            seen.append(placement)

    class Watched(Plugin):
        """Watches"""

        name = "watched"
        live = Watching

    world = World(Watched, gang=True)
    world.bind("a", "b")
    await world.settled()
    assert [(each.pod, each.node, dict(each.gang)) for each in seen] == [
        ("ns/a", "n1", {"ns/a": "n1", "ns/b": "n1"}),
        ("ns/b", "n1", {"ns/a": "n1", "ns/b": "n1"}),
    ]


async def test_only_so_many_hooks_run_at_the_same_time() -> None:
    class Narrow(Recorded):
        at_once = 1

    class One(Plugin):
        """One at a time"""

        name = "one"
        live = Narrow

    world = World(One)
    Recorded.acts["a"] = lambda: asyncio.sleep(20)
    world.bind("a", "b")
    await asyncio.sleep(10)
    assert Recorded.story == ["pre a"]
    assert "bind b" in await world.settled()


async def test_another_policy_ends_the_hooks_of_the_last() -> None:
    world = World()
    world.bind("a")
    await world.settled()
    world.policy = Policy((), ((PluginOption("hooked"),),), source="another")
    world.bind("b")
    await world.settled()
    assert Recorded.story.count("close") == 1
    await world.hooks.close()
    assert Recorded.story.count("close") == 2


async def test_a_scheduler_that_ends_does_not_wait_for_a_hook_that_hangs() -> None:
    class Endless(Recorded):
        async def post_bind(self, placement: Placement) -> None:
            await hang()

    class Last(Plugin):
        """Hangs after the binding"""

        name = "last"
        live = Endless

    world = World(Last)
    world.bind("a")
    await asyncio.sleep(1)
    clock = asyncio.get_running_loop().time
    before = clock()
    await world.hooks.close()
    assert clock() - before < 10 and Recorded.story[-1] == "close"


async def test_the_job_of_a_hook_is_at_hand_while_the_hook_runs() -> None:
    """For the process guard: a hook that holds the interpreter ends the process, and its job is to blame."""
    world, seen = World(), list[str]()

    async def look() -> None:
        seen.append(world.at_hand)
        await asyncio.sleep(2)
        seen.append(world.at_hand)

    Recorded.acts["a"] = look
    world.bind("a")
    await asyncio.sleep(1)
    assert (seen, world.at_hand) == (["ns/j"], "")
    await world.settled()
    assert (seen, world.at_hand) == (["ns/j", "ns/j"], "")


async def test_a_hook_sees_its_cancellation_although_its_job_is_noted() -> None:
    world, seen = World(), list[str]()

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append(world.at_hand)
            raise

    Recorded.acts["a"] = tidy
    world.bind("a")
    await world.settled()
    assert seen == ["ns/j"]
    assert "took longer" in world.failed["a"]
