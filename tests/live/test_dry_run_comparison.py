"""`--dry-run` beside a scheduler in charge: what it logs, how it compares, its report, and `navarch jobs` from its endpoint."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.worlds.live.cluster import World

from navarch.cli.main import main
from navarch.live.scheduler import Scheduler

pytestmark = pytest.mark.live


async def followed(world: World, dry: Scheduler, count: int) -> None:
    def now() -> int:
        return 0 if dry.dry_run is None else len(dry.dry_run.followed)

    await world.eventually(lambda: asyncio.sleep(0, now()), lambda found: found == count)


async def test_pods_that_another_scheduler_binds_are_compared(world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The test binds pods as the scheduler `theirs`; the dry run watches."""
    caplog.set_level(logging.INFO)
    report = tmp_path / "report.json"
    await world.node("n0", cpu="4")
    await world.node("n1", cpu="4", here="only")
    options: dict[str, Any] = {
        "dry_run": True,
        "scheduler_names": ("theirs",),
        "report": report,
        "listen": "127.0.0.1:0",
        "period": 0.05,
    }
    async with world.scheduler(**options) as dry:
        pods = {
            "same": await world.pod("same", scheduler="theirs", nodeSelector={"here": "only"}),
            "elsewhere": await world.pod("elsewhere", scheduler="theirs", nodeSelector={"here": "only"}),
            "refused": await world.pod("refused", scheduler="theirs", cpu="64"),
        }
        await followed(world, dry, 3)
        url = f"http://127.0.0.1:{dry.operator_server.health.port}"
        command = ["jobs", "--kubeconfig", str(world.kubeconfig), "--state", url, "-o", "json"]
        shown = await asyncio.to_thread(CliRunner().invoke, main, command)
        rows = {each["name"]: each for each in json.loads(shown.stdout)["items"]}
        assert rows["refused"]["why"].startswith("cannot start: one pod needs 64 CPUs, the largest node has 4")
        for name, node in (("same", "n1"), ("elsewhere", "n0"), ("refused", "n0")):
            await world.client.bind(world.namespace, name, uid=pods[name]["metadata"]["uid"], node=node)
        await followed(world, dry, 0)
    found = json.loads(report.read_text())
    outcomes = {each["pod"]: each["outcome"] for each in found["pods"]}
    slow = outcomes["default/same"] == "earlier" or outcomes["default/elsewhere"] == "earlier"  # a machine that slept for seconds
    assert outcomes["default/refused"] == "never"
    assert slow or outcomes == {"default/same": "agreed", "default/elsewhere": "otherNode", "default/refused": "never"}
    assert found["summary"]["compared"] == 3 and found["schedulerNames"] == ["theirs"]
    assert "dry run: would bind default/same to n1" in caplog.text
    assert "dry run: default/refused waits: cannot start: one pod needs 64 CPUs" in caplog.text
    (line,) = [each for each in caplog.records if "would bind default/same" in each.getMessage()]
    assert (line.__dict__["pod"], line.__dict__["node"], line.__dict__["job"]) == ("default/same", "n1", "default/same")
