"""`navarch plan --cluster -f job.yaml`: the live cluster and a file, under the policy that runs there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.worlds.live.cluster import World

from navarch.cli.main import main
from navarch.views.published_state import StateAddress, read_state

pytestmark = pytest.mark.live


async def test_a_new_job_is_decided_for_the_cluster_as_it_is(world: World, tmp_path: Path) -> None:
    await world.node("n0", cpu="4")
    new = tmp_path / "new.yaml"
    body = {**world.pod_body("new", "3", "", "navarch"), "apiVersion": "v1", "kind": "Pod"}
    new.write_text(yaml.safe_dump(body))

    async def typed(*arguments: str) -> Result:
        command = ["plan", "--cluster", "--kubeconfig", str(world.kubeconfig), *arguments]
        return await asyncio.to_thread(CliRunner().invoke, main, command)

    async with world.scheduler(listen=""):
        await world.eventually(lambda: read_state(world.client, StateAddress.parse("default/navarch")), bool)
        free = await typed("-f", str(new), "-o", "json")
        assert free.exit_code == 0, free.output
        (cycle,) = json.loads(free.stdout)["cycles"]
        assert cycle["binds"] == [{"node": "n0", "pod": "default/new"}]
        await world.pod("there", cpu="3")
        await world.eventually(lambda: world.get_pod("there"), lambda found: found["spec"].get("nodeName"))
        full = await typed("-f", str(new), "-o", "json")
        (cycle,) = json.loads(full.stdout)["cycles"]
        (job,) = [each for each in cycle["jobs"] if each["job"] == "default/new"]
        assert cycle["binds"] == [] and "insufficient cpu" in json.dumps(job["reasons"]).lower()
        differs = await typed("-f", str(new), "--policy", "volcano")
        assert "--policy volcano differs from the policy that runs (navarch" in differs.stderr
    refused = CliRunner().invoke(main, ["plan", "--kubeconfig", str(world.kubeconfig), "-f", str(new)])
    assert refused.exit_code == 2 and "expected --cluster beside them" in refused.output
    nothing = CliRunner().invoke(main, ["plan"])
    assert nothing.exit_code == 2 and "expected -f FILE with manifests, or --cluster" in nothing.output
