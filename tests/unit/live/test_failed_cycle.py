"""A cycle that fails: what /debug/snapshot shows then is what it failed on, and the next good cycle is none the worse."""

from __future__ import annotations

import pytest
from tests.worlds.live_parts.cluster_cache import node, pod, put
from tests.worlds.live_parts.failing_cycle import failing

from navarch.kube.connect import Endpoint
from navarch.live import cycle as cycles
from navarch.live.run_options import RunOptions
from navarch.live.scheduler import Scheduler
from navarch.offline import replay

pytestmark = pytest.mark.looptime


async def test_the_snapshot_shown_is_the_one_that_cannot_be_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler(Endpoint("http://127.0.0.1:1"), RunOptions(listen="", leader_elect=False, dry_run=True))
    scheduler.core.leading = True
    scheduler.cache.put(node("n1"))
    for number in range(30):
        put(scheduler.cache, pod(f"p{number:02d}"))
    scheduler.cycles.run()
    assert scheduler.core.last_cycle is not None
    shown = replay.read(await scheduler.operator_server.debug_snapshot())
    assert len(shown.tasks) == 30
    scheduler.cycles.run()
    scheduler.cycles.run()

    monkeypatch.setattr(cycles, "decide", failing)
    scheduler.cache.remove_pod("uid-p07")
    put(scheduler.cache, pod("p40", cpu="2"))
    scheduler.cycles.run()
    assert scheduler.cycles.failed == 1
    shown = replay.read(await scheduler.operator_server.debug_snapshot())
    names = {line.spec.name for line in shown.tasks}
    assert "p07" not in names
    assert "p40" in names
    assert shown.uid != scheduler.core.last_cycle.uid
    assert {name for line in shown.jobs for name in line.tasks} == {line.row for line in shown.tasks}

    monkeypatch.undo()
    scheduler.cycles.run()
    assert scheduler.cycles.failed == 0
    shown = replay.read(await scheduler.operator_server.debug_snapshot())
    assert replay.decisions(replay.again(shown, scheduler.policy_file.registry)) == bytes(shown.decisions)
    for client in (scheduler.client, scheduler.lease_client, scheduler.pool):
        await client.close()
