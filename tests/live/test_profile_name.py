"""A policy may name the scheduler that it is for; `navarch run` serves only the names that it is given."""

from __future__ import annotations

import pytest
from tests.worlds.live.cluster import EVENTS, World, end

pytestmark = pytest.mark.live

PROFILE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: mine}]
"""
FLAG = "compat: kai\nschedulerParams: {schedulerName: mine}\n"


@pytest.mark.parametrize("text", [PROFILE, FLAG])
async def test_a_policy_for_pods_that_are_not_served_says_so(world: World, text: str) -> None:
    policy = world.folder / "profile.yaml"
    policy.write_text(text, encoding="utf-8")
    told = "the policy names the scheduler mine, which is not served; add --scheduler-name mine"
    unserved = await world.process("--no-leader-elect", f"--policy={policy}", name="unserved")
    served = await world.process("--no-leader-elect", f"--policy={policy}", "--scheduler-name=mine", name="served")
    try:
        await world.said("unserved", told)
        await world.said("served", "leading:")
        assert told not in world.log_of("served").read_text(encoding="utf-8")
    finally:
        await end(unserved)
        await end(served)


TWO_PROFILES = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: spread
- schedulerName: pack
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
"""


async def test_each_profile_judges_the_pods_of_its_name(any_world: World) -> None:
    world = any_world
    policy = world.folder / "profiles.yaml"
    policy.write_text(TWO_PROFILES, encoding="utf-8")
    fuller, emptier = f"fuller-{world.namespace}", f"emptier-{world.namespace}"
    await world.node(fuller, cpu="8", kind=f"chosen-{world.namespace}")
    await world.node(emptier, cpu="8")
    history = await world.watch()
    async with world.scheduler(policy=str(policy), scheduler_names=("spread", "pack")):
        await world.pod("first", cpu="4", scheduler="spread", nodeSelector={"kind": f"chosen-{world.namespace}"})
        await history.until_bound(1)
        await world.pod("packed", cpu="1", scheduler="pack")
        await world.pod("spread", cpu="1", scheduler="spread")
        await history.until_bound(3)

        async def controllers() -> dict[str, str]:
            said = (await world.client.list(EVENTS, namespace=world.namespace)).items
            return {each["regarding"]["name"]: each["reportingController"] for each in said if each["reason"] == "Scheduled"}

        await world.eventually(controllers, lambda found: found == {"first": "spread", "packed": "pack", "spread": "spread"})
    found = {task.name: task.node for task in history.tasks.values()}
    assert found == {"first": fuller, "packed": fuller, "spread": emptier}
    assert history.broken == []
