"""`navarch run --history`: run times are kept while the scheduler works, and `navarch jobs --eta` reads them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.worlds.live.cluster import World

from navarch.cli.main import main
from navarch.job_history import read_history
from navarch.kube.client import PatchType
from navarch.kube.resources import PODS

pytestmark = pytest.mark.live


async def phase(world: World, name: str, value: str, **status: str) -> None:
    change = {"status": {"phase": value, **status}}
    await world.client.patch(PODS, name, change, PatchType.MERGE, namespace=world.namespace, subresource="status")


async def test_a_pod_that_runs_and_ends_is_a_row(world: World, tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    await world.node("n0", cpu="1")
    async with world.scheduler(history=file):
        made = await world.pod("a", activeDeadlineSeconds=3600)
        await world.eventually(lambda: world.get_pod("a"), lambda pod: pod["spec"].get("nodeName"))
        await phase(world, "a", "Running", startTime="2026-01-01T00:00:00Z")
        await world.pod("b")
        arguments = ["jobs", "--eta", "-A", "-o", "json", "--kubeconfig", str(world.kubeconfig), "--state", "none"]
        shown = await asyncio.to_thread(CliRunner().invoke, main, arguments)
        rows = {row["name"]: row for row in json.loads(shown.stdout)["items"] if row["namespace"] == world.namespace}
        assert rows["b"]["eta"] is not None and "by walltime" in rows["b"]["eta"]["basis"]
        await phase(world, "a", "Succeeded")
        await world.eventually(lambda: world.get_pod("b"), lambda pod: pod["spec"].get("nodeName"))
    known = {run.uid: run for run in read_history(file)}
    row = known[made["metadata"]["uid"]]
    assert row.started is not None and row.finished is not None and row.finished > row.started
