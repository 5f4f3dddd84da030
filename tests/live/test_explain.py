"""`navarch explain` in a cluster, on the embedded API server and on a real one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.worlds.live.cluster import World

from navarch.cli.main import main
from navarch.embedded.api.server import ApiServer

pytestmark = pytest.mark.live


async def explained(world: World, *words: str) -> Result:
    """The command runs its own loop, so it gets a thread."""
    return await asyncio.to_thread(
        CliRunner().invoke, main, ["explain", *words, "--kubeconfig", str(world.kubeconfig), "--seconds", "600"]
    )


async def answer(world: World, *words: str) -> dict[str, Any]:
    result = await explained(world, *words, "-o", "json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


async def test_a_pod_that_waits_is_explained_in_the_cluster(any_world: World) -> None:
    await any_world.node("n0")
    await any_world.pod("holds", cpu="3", nodeName="n0")
    await any_world.pod("wants", cpu="2")
    found = await answer(any_world, f"{any_world.namespace}/wants")
    assert (found["state"], found["blockers"]["jobs"]) == ("pending", [f"{any_world.namespace}/holds"])
    assert not any("resourceVersion" in note for note in found["notes"]), "how kinds are listed stands in docs/explain.md"
    assert {each["kind"] for each in found["changes"] if each["starts"]} >= {"resources", "node", "end"}


async def test_a_job_is_explained_before_it_is_submitted(any_world: World, tmp_path: Path) -> None:
    await any_world.node("n0")
    await any_world.pod("holds", cpu="3", nodeName="n0")
    path = tmp_path / "new.json"
    path.write_text(json.dumps(any_world.pod_body("new", "2", "", "navarch")))
    found = await answer(any_world, f"{any_world.namespace}/new", "-f", str(path), "--cluster")
    assert found["blockers"]["jobs"] == [f"{any_world.namespace}/holds"]


async def test_a_queue_and_a_node_of_the_cluster(world: World) -> None:
    await world.node("n0")
    await world.pod("wants", cpu="9")
    assert (await answer(world, "node/n0"))["waiting"][0]["refused"] == ["Insufficient cpu"]
    assert [each["job"] for each in (await answer(world, "queue/default"))["waiting"]] == ["default/wants"]


async def test_missing_and_forbidden_objects(world: World, server: ApiServer) -> None:
    await world.node("n0")
    await world.pod("wants", cpu="9")
    missing = await explained(world, "want")
    assert missing.exit_code == 1 and "did you mean default/wants?" in missing.stderr
    server.faults.errors(403, path="/api/v1/pods")
    refused = await explained(world, "wants")
    assert refused.exit_code == 1 and "orbidden" in refused.stderr
