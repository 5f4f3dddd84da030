"""What is done before a binding: with a known end whatever a step does, and taken back before it is done anew."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from navarch.cache.assumed import AssumedBind
from navarch.cache.cycle import Cycle
from navarch.cache.preparing import PreparationFailed, Preparations
from navarch.engine.record import Bind, CycleRecord

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

    def wants(self, bind: AssumedBind) -> bool:
        return bind.uid in self.plans

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
        self.preparations.before(self.plan(node), lambda: self.step.story.append(f"bind {node}"))

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


async def test_what_is_being_taken_back_is_waited_for_before_it_is_prepared_anew() -> None:
    scene = Scene(Step(PreparationFailed("no volume")))
    scene.bind("n1")
    await asyncio.sleep(1)
    scene.step.fails = None
    scene.bind("n2")
    await scene.settled()
    assert scene.step.story == ["prepare n1", "undone n1", "prepare n2", "bind n2"]


async def test_what_was_planned_for_a_bind_that_is_not_carried_out_is_taken_back() -> None:
    scene = Scene(Step())
    scene.plan("n1")
    await asyncio.sleep(0)
    await scene.settled()
    assert (scene.step.plans, scene.step.story) == ({}, ["undone n1"])
    scene.bind("n2")
    await scene.settled()
    assert scene.step.story[1:] == ["prepare n2", "bind n2"]
    assert scene.step.plans == {"uid-a": "n2"}
