"""What is done before a binding: with a known end whatever a step does, and taken back before it is done anew."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import cast

import pytest

from navarch.engine.record import Bind, CycleRecord
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cycle import Cycle
from navarch.live.prebind.preparation import PreparationFailed, Preparations

pytestmark = pytest.mark.looptime


class Told:
    def __init__(self, binds: list[Bind]) -> None:
        self.record = CycleRecord(binds=binds)


class Step:
    """Plans every bind; `fails` is raised by prepare, and undoing takes a minute."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails = fails
        self.plans: dict[str, str] = {}
        self.done_for: list[str] = []
        self.story: list[str] = []

    def plan(self, cycle: Cycle) -> None:
        self.plans |= {bind.uid: bind.node for bind in cycle.record.binds}

    def wants(self, uid: str) -> bool:
        return uid in self.plans

    async def prepare(self, bind: AssumedBind) -> None:
        self.story.append(f"prepare {bind.node}")
        if self.fails is not None:
            raise self.fails

    async def undo(self, bind: AssumedBind) -> None:
        if self.plans.pop(bind.uid, None) is None:
            return
        await asyncio.sleep(60)
        self.story.append(f"undone {bind.node}")

    def done(self, bind: AssumedBind) -> None:
        self.plans.pop(bind.uid, None)


class Slow(Step):
    """Takes a minute."""

    async def prepare(self, bind: AssumedBind) -> None:
        await super().prepare(bind)
        await asyncio.sleep(60)


class Scene:
    def __init__(self, step: Step) -> None:
        self.step = step
        self.failed: list[str] = []
        self.preparations = Preparations((step,), self._fail)

    def _fail(self, bind: AssumedBind, why: str) -> None:
        self.failed.append(why)
        self.preparations.ended(bind, bound=False)

    def plan(self, node: str) -> AssumedBind:
        self.preparations.plan(cast(Cycle, Told([Bind("default/a", node, "uid-a", "default/j")])))
        return AssumedBind("uid-a", "default", "a", node, "default/j", 0.0)

    def bind(self, node: str) -> None:
        self.preparations.when_prepared(self.plan(node), lambda: self.step.story.append(f"bind {node}"))

    async def settled(self) -> None:
        while len(self.preparations):
            await asyncio.sleep(1)


@pytest.mark.parametrize("error", [PreparationFailed("no volume"), KeyError("spec")])
async def test_a_step_that_fails_in_any_way_ends_the_bind(error: Exception) -> None:
    scene = Scene(Step(error))
    scene.bind("n1")
    await scene.settled()
    assert len(scene.failed) == 1
    assert scene.step.story == ["prepare n1", "undone n1"]


async def test_an_undo_ends_before_the_next_preparation_starts() -> None:
    scene = Scene(Step(PreparationFailed("no volume")))
    scene.bind("n1")
    await asyncio.sleep(1)
    scene.step.fails = None
    scene.bind("n2")
    await scene.settled()
    assert scene.step.story == ["prepare n1", "undone n1", "prepare n2", "bind n2"]


async def test_a_second_decision_that_is_not_carried_out_is_undone() -> None:
    scene = Scene(Step(PreparationFailed("no volume")))
    scene.bind("n1")
    await scene.settled()
    scene.plan("n2")
    await asyncio.sleep(0)
    await scene.settled()
    assert (scene.step.plans, scene.step.story) == ({}, ["prepare n1", "undone n1", "undone n2"])
    scene.step.fails = None
    scene.bind("n3")
    await asyncio.sleep(0)
    assert scene.step.story[3:] == ["prepare n3", "bind n3"], "nothing is waited for that was taken back"


async def test_at_the_end_nothing_is_prepared_any_more_and_nothing_taken_back() -> None:
    """The next scheduler continues from there."""
    scene = Scene(Slow())
    scene.bind("n1")
    await asyncio.sleep(1)
    await scene.preparations.close()
    assert (len(scene.preparations), scene.step.story, scene.failed) == (0, ["prepare n1"], [])
    await asyncio.sleep(120)
    assert (scene.step.story, scene.failed) == (["prepare n1"], [])


async def test_a_bound_pod_needs_no_assumption_any_more() -> None:
    scene = Scene(Step())
    scene.bind("n1")
    await scene.settled()
    scene.preparations.ended(AssumedBind("uid-a", "default", "a", "n1", "default/j", 0.0), bound=True)
    await scene.settled()
    assert (scene.step.plans, scene.step.story) == ({}, ["prepare n1", "bind n1"])


class Disks(Step):
    """Made for `a` and `b` when the test does so; `c` needs none."""

    def __init__(self) -> None:
        super().__init__()
        self.made = {name: asyncio.get_running_loop().create_future() for name in ("a", "b")}

    def plan(self, cycle: Cycle) -> None:
        self.plans |= {bind.uid: bind.node for bind in cycle.record.binds if bind.uid[-1] in self.made}

    async def prepare(self, bind: AssumedBind) -> None:
        await self.made[bind.name]

    async def undo(self, bind: AssumedBind) -> None:
        self.plans.pop(bind.uid)
        self.story.append(f"undone {bind.name}")


class GangScene(Scene):
    """Three pods of one job."""

    def __init__(self, *, starts: bool, carried_out: str = "abc") -> None:
        self.disks = Disks()
        super().__init__(self.disks)
        self.preparations = Preparations((self.disks,), self._fail, lambda job: starts)
        decided = [Bind(f"default/{name}", "n1", f"uid-{name}", "default/j") for name in "abc"]
        self.preparations.plan(cast(Cycle, Told(decided)))
        for name in carried_out:
            bind = AssumedBind(f"uid-{name}", "default", name, "n1", "default/j", 0.0)
            self.preparations.when_prepared(bind, partial(self.disks.story.append, f"bind {name}"))


async def test_a_gang_is_bound_when_all_of_it_is_prepared() -> None:
    scene = GangScene(starts=True)
    scene.disks.made["a"].set_result(None)
    await asyncio.sleep(1)
    assert scene.disks.story == []
    scene.disks.made["b"].set_result(None)
    await scene.settled()
    assert (scene.disks.story, scene.failed) == (["bind a", "bind b", "bind c"], [])


@pytest.mark.parametrize("prepared", [True, False])
async def test_none_of_a_gang_is_bound_if_one_cannot_be_prepared(prepared: bool) -> None:
    scene = GangScene(starts=True)
    if prepared:
        scene.disks.made["a"].set_result(None)
        await asyncio.sleep(1)
    scene.disks.made["b"].set_exception(PreparationFailed("no disk"))
    await scene.settled()
    assert scene.disks.story == ["undone a", "undone b"]
    others = "b of the same gang cannot be bound: no disk"
    assert scene.failed == [others, "no disk", others]


async def test_a_gang_of_which_several_fail_is_given_up_once() -> None:
    scene = GangScene(starts=True)
    for made in scene.disks.made.values():
        made.set_exception(PreparationFailed("no disk"))
    await scene.settled()
    assert (len(scene.failed), sorted(scene.disks.story)) == (3, ["undone a", "undone b"])
    assert all(isinstance(made.exception(), PreparationFailed) for made in scene.disks.made.values())


async def test_members_do_not_wait_for_binds_that_are_not_carried_out() -> None:
    scene = GangScene(starts=True, carried_out="c")
    await scene.settled()
    await asyncio.sleep(1)
    assert (sorted(scene.disks.story), scene.failed) == (["bind c", "undone a", "undone b"], [])


async def test_pods_that_are_no_gang_do_not_wait_for_each_other() -> None:
    scene = GangScene(starts=False)
    assert scene.disks.story == ["bind c"]
    scene.disks.made["a"].set_exception(PreparationFailed("no disk"))
    scene.disks.made["b"].set_result(None)
    await scene.settled()
    assert (scene.disks.story, scene.failed) == (["bind c", "bind b", "undone a"], ["no disk"])


async def test_a_plan_whose_bind_is_not_carried_out_is_undone() -> None:
    scene = Scene(Step())
    scene.plan("n1")
    await asyncio.sleep(0)
    await scene.settled()
    assert (scene.step.plans, scene.step.story) == ({}, ["undone n1"])
    scene.bind("n2")
    await scene.settled()
    assert scene.step.story[1:] == ["prepare n2", "bind n2"]
    assert scene.step.plans == {"uid-a": "n2"}


@pytest.mark.parametrize("starts", [True, False], ids=["a gang", "pods that do not wait for each other"])
async def test_giving_up_a_job_undoes_what_was_prepared_for_it(starts: bool) -> None:
    scene = GangScene(starts=starts)
    await asyncio.sleep(1)
    scene.preparations.give_up("default/other", "no time left")
    scene.preparations.give_up("default/j", "no time left")
    await scene.settled()
    assert scene.failed == ["no time left"] * (3 if starts else 2)
    assert scene.disks.story == (["undone a", "undone b"] if starts else ["bind c", "undone a", "undone b"])
    assert scene.preparations.advanced_at("default/j") is None


async def test_pods_prepared_before_the_job_is_given_up_are_bound() -> None:
    scene = GangScene(starts=False)
    await asyncio.sleep(1)
    scene.disks.made["a"].set_result(None)
    scene.preparations.give_up("default/j", "no time left")
    await scene.settled()
    assert sorted(scene.disks.story) == ["bind a", "bind c", "undone b"]
    assert scene.failed == ["no time left"]


async def test_when_preparations_last_advanced_is_known_while_they_last() -> None:
    scene = GangScene(starts=True)
    clock = asyncio.get_running_loop().time
    assert scene.preparations.advanced_at("default/other") is None
    assert scene.preparations.advanced_at("default/j") == float("-inf")
    await asyncio.sleep(30)
    scene.disks.made["a"].set_result(None)
    await asyncio.sleep(0)
    then = clock()
    await asyncio.sleep(30)
    assert scene.preparations.advanced_at("default/j") == then
    scene.disks.made["b"].set_result(None)
    await scene.settled()
    assert scene.preparations.advanced_at("default/j") is None
    bind = AssumedBind("uid-a", "default", "a", "n1", "default/j", 0.0)
    scene.preparations.progress(bind)
    scene.disks.made["a"] = asyncio.get_running_loop().create_future()
    scene.preparations.when_prepared(bind, lambda: None)
    assert scene.preparations.advanced_at("default/j") == float("-inf"), "progress counts only while something is prepared"
    scene.disks.made["a"].set_result(None)
    await scene.settled()
