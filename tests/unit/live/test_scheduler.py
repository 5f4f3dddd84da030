"""The live scheduler between its parts: when it may decide and write, what a failed bind leads to, and how a term ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.worlds.live_parts.cluster_cache import group, pod, put
from tests.worlds.live_parts.failing_cycle import failing
from tests.worlds.live_parts.offline_scheduler import scheduling, sent_by

from navarch.kube.write.pool import Done, Write
from navarch.live import cycle as cycles
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.leader_cycles import UNHEALTHY_AFTER
from navarch.live.ops.election import Elector
from navarch.live.scheduler import FLUSH_INTERVAL, MAX_BINDINGS_AHEAD, Scheduler
from navarch.model.snapshot import Snapshot

pytestmark = pytest.mark.looptime


class Lease:
    """An elector that leads while the test says so."""

    def __init__(self) -> None:
        self.leading = True
        self.kept = False

    def keep(self) -> None:
        self.kept = True


def elected(scheduler: Scheduler) -> Lease:
    lease = Lease()
    scheduler.elector = cast(Elector, lease)
    return lease


def submitted(scheduler: Scheduler) -> list[Write]:
    return sent_by(scheduler).writes


def bind_of(name: str, job: str = "") -> AssumedBind:
    return AssumedBind(f"uid-{name}", "default", name, "n1", job or f"default/pod/{name}", 0.0)


def counted(scheduler: Scheduler, name: str, **labels: str) -> float | None:
    return scheduler.metrics.registry.get_sample_value(name, labels)


async def test_only_the_holder_of_the_lease_decides_and_writes() -> None:
    async with scheduling() as scheduler:
        put(scheduler.cache, pod("a"))
        lease = elected(scheduler)
        lease.leading = False
        scheduler.cycles.run()
        assert (scheduler.leading, scheduler.may_write(), scheduler.core.last_cycle) == (False, False, None)
        for part, may in ((scheduler.client.transport, False), (scheduler.pool, False), (scheduler.lease_client.transport, True)):
            assert part.may_write() is may, "the lease alone is written without one"
        lease.leading = True
        scheduler.core.leading = False
        scheduler.cycles.run()
        assert (scheduler.leading, scheduler.may_write(), scheduler.core.last_cycle) == (False, True, None), (
            "not before it has begun to lead"
        )
        scheduler.core.leading = True
        scheduler.rereading = True
        scheduler.cycles.run()
        assert scheduler.core.last_cycle is None, "nor on half a cache"
        scheduler.rereading = False
        scheduler.cycles.run()
        assert [write.path for write in submitted(scheduler)] == ["/api/v1/namespaces/default/pods/a/binding"]


async def test_a_dry_run_names_the_extenders_that_it_does_not_ask(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "policy.yaml"
    given = "{extender.urlPrefix: 'http://127.0.0.1:1/e', extender.predicateVerb: p}"
    plugins = f"[{{name: gang}}, {{name: predicates}}, {{name: extender, arguments: {given}}}]"
    file.write_text(f"actions: allocate\ntiers:\n- plugins: {plugins}\n", encoding="utf-8")
    async with scheduling(dry_run=True, policy=str(file)) as scheduler:
        put(scheduler.cache, pod("a"))
        scheduler.cycles.run()
        scheduler.cycles.run()
        assert scheduler.core.last_cycle is not None and len(scheduler.core.last_cycle.record.binds) == 1
    assert [each.message for each in caplog.records if "extender" in each.message] == [
        "dry run: extender http://127.0.0.1:1/e is not asked here: cycles are decided as if it had no objection "
        "(--ask-extenders asks it)"
    ]


async def test_a_dry_run_writes_nothing_and_takes_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scheduling(dry_run=True) as scheduler:
        led: list[str] = []

        async def lead() -> None:
            led.append("led")

        monkeypatch.setattr(scheduler, "lead", lead)
        await scheduler.lead_when_elected()
        assert (led, scheduler.elector, scheduler.may_write()) == (["led"], None, False)
        put(scheduler.cache, pod("a"))
        scheduler.cycles.run()
        assert scheduler.core.last_cycle is not None and len(scheduler.core.last_cycle.record.binds) == 1
        assert submitted(scheduler) == [] and scheduler.assumed.binds == {}


async def test_several_failed_cycles_in_a_row_make_the_scheduler_unready(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scheduling() as scheduler:
        before = scheduler.operator_server.missing()
        monkeypatch.setattr(cycles, "decide", failing)
        for _ in range(UNHEALTHY_AFTER - 1):
            scheduler.cycles.run()
        assert scheduler.operator_server.missing() == before
        scheduler.cycles.run()
        assert scheduler.operator_server.missing() == [
            *before,
            f"the last {UNHEALTHY_AFTER} cycles failed: RuntimeError: a plugin's fault",
        ]
        assert counted(scheduler, "navarch_failed_cycles_total") == UNHEALTHY_AFTER
        monkeypatch.undo()
        scheduler.cycles.run()
        assert scheduler.operator_server.missing() == before


async def test_a_snapshot_in_use_is_not_overwritten_by_the_next_cycle() -> None:
    async with scheduling() as scheduler:
        put(scheduler.cache, pod("a", cpu="100"))

        def next_snapshot() -> Snapshot:
            scheduler.cycles.run()
            assert scheduler.core.last_cycle is not None
            return scheduler.core.last_cycle.snapshot

        def share_memory(left: Snapshot, right: Snapshot) -> bool:
            return bool(np.shares_memory(left.tasks.shape, right.tasks.shape))

        first, second = next_snapshot(), next_snapshot()
        assert share_memory(first, second), "nothing reads the snapshot of the last cycle: its arrays are reused"
        assert await scheduler.operator_server.debug_snapshot()
        assert not share_memory(second, next_snapshot())


async def test_a_bind_that_failed_is_written_on_the_pod() -> None:
    async with scheduling() as scheduler:
        put(scheduler.cache, pod("a", cpu="2"))
        ended: list[tuple[str, bool]] = []
        cast(Any, scheduler.preparations).ended = lambda bind, *, bound: ended.append((bind.uid, bound))
        bind = scheduler.assumed.binds["uid-a"] = bind_of("a")
        scheduler.core.bind_failed(bind, "the node is full", asyncio.get_running_loop().time())
        scheduler.writers.flush(asyncio.get_running_loop().time())
        (status,) = [write for write in submitted(scheduler) if write.path.endswith("/pods/a/status")]
        assert b"binding to n1 failed: the node is full" in status.body and b"SchedulerError" in status.body
        assert ended == [("uid-a", False)]
        assert counted(scheduler, "navarch_binds_total", result="failed") == 1


async def test_a_bind_that_succeeded_or_was_dropped_ends_its_preparations() -> None:
    async with scheduling() as scheduler:
        put(scheduler.cache, pod("a"))
        ended: list[tuple[str, bool]] = []
        cast(Any, scheduler.preparations).ended = lambda bind, *, bound: ended.append((bind.uid, bound))
        scheduler.core.bind_succeeded(bind_of("a"))
        scheduler.core.bind_overtaken(bind_of("b"))
        assert ended == [("uid-a", True), ("uid-b", False)]
        assert [counted(scheduler, "navarch_binds_total", result=each) for each in ("ok", "dropped", "failed")] == [1, 1, 0]


async def test_a_gang_that_is_released_is_evicted_and_nothing_is_prepared_for_it() -> None:
    async with scheduling() as scheduler:
        scheduler.cache.put(group("g", 3))
        for name in ("a", "b"):
            put(scheduler.cache, pod(name, node="n1", phase="Running", group="g"))
        put(scheduler.cache, pod("c", group="g"))
        given_up: list[str] = []
        cast(Any, scheduler.preparations).give_up = lambda job, why: given_up.append(job)
        now = asyncio.get_running_loop().time()
        for later in (0.0, scheduler.options.gang_timeout):
            scheduler.core.check_gangs(now + later)
        assert given_up == ["default/g"]
        await asyncio.sleep(1.0)
        marked = [write.path for write in submitted(scheduler) if b"DisruptionTarget" in write.body]
        assert marked == [f"/api/v1/namespaces/default/pods/{name}/status" for name in ("a", "b")]
        assert set(scheduler.assumed.evictions) == {"uid-a", "uid-b"}


async def test_a_pool_that_is_named_on_the_command_line_is_ours() -> None:
    async with scheduling(node_pool_label_key="pool", partition_label_value="blue") as scheduler:
        settings = scheduler.read_settings()
        assert (settings.node_pool_key, settings.node_pool) == ("pool", "blue")


# The end of a term.


def on_the_wire(scheduler: Scheduler) -> Callable[[], None]:
    """A binding that was sent; what is given back answers it."""
    done: Done = lambda outcome: None  # noqa: E731
    scheduler.writers.binder.outbox.put(lambda: (Write("POST", "/binding", b"{}"), done))
    return sent_by(scheduler).end


async def test_writes_are_finished_before_the_lease_is_given_back() -> None:
    async with scheduling(shutdown_timeout=20.0) as scheduler:
        lease, answer = elected(scheduler), on_the_wire(scheduler)
        finishing = asyncio.create_task(scheduler.finish_writes())
        await asyncio.sleep(5.0)
        assert not finishing.done()
        answer()
        await finishing
        assert asyncio.get_running_loop().time() < 6.0
        assert (lease.kept, scheduler.writers.binder.outbox.paused) == (False, True)


async def test_a_binding_without_an_answer_leaves_the_lease_to_run_out() -> None:
    async with scheduling(shutdown_timeout=20.0) as scheduler:
        lease, _ = elected(scheduler), on_the_wire(scheduler)
        await scheduler.finish_writes()
        assert asyncio.get_running_loop().time() >= 20.0
        assert (lease.kept, scheduler.writers.binder.outbox.paused) == (True, True)


@pytest.mark.parametrize("already", [True, False])
async def test_after_a_lost_lease_nothing_is_awaited_or_sent(already: bool) -> None:
    async with scheduling(shutdown_timeout=20.0) as scheduler:
        lease, _ = elected(scheduler), on_the_wire(scheduler)
        lease.leading = not already
        finishing = asyncio.create_task(scheduler.finish_writes())
        await asyncio.sleep(1.0)
        lease.leading = False
        await finishing
        assert asyncio.get_running_loop().time() < 3.0
        assert scheduler.writers.binder.outbox.paused


# Beside the cycles.


async def test_a_status_that_cannot_be_made_does_not_keep_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async with scheduling() as scheduler:
        flushed: list[float] = []

        def failing_flush(now: float) -> None:
            raise RuntimeError("an object nobody expected")

        cast(Any, scheduler.writers.pods).flush = failing_flush
        cast(Any, scheduler.writers.groups).flush = flushed.append
        flushing = asyncio.create_task(scheduler.flush_statuses())
        await asyncio.sleep(FLUSH_INTERVAL * 3.5)
        flushing.cancel()
        assert len(flushed) == 3 and "an object nobody expected" in caplog.text
        assert scheduler.metrics.registry.get_sample_value("navarch_task_failures_total", {"task": "pod statuses"}) == 3


async def test_a_periodic_check_that_fails_does_not_keep_the_others_from_being_made() -> None:
    async with scheduling() as scheduler:
        checked: list[float] = []

        def failing_look() -> bool:
            raise RuntimeError("a file system nobody expected")

        cast(Any, scheduler.policy_file).look = failing_look
        cast(Any, scheduler.core).check_gangs = checked.append
        running = asyncio.create_task(scheduler.periodic_tasks.run())
        await asyncio.sleep(3.5)
        running.cancel()
        assert len(checked) == 3
        assert scheduler.supervised.notes() == ["policy file failed 3 times in a row: RuntimeError"]


async def test_a_scheduler_whose_tasks_raise_runs_on_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scheduling(leader_elect=False) as scheduler:
        starts: list[str] = []

        async def failing_informers() -> None:
            starts.append("informers")
            raise KeyError("reply")

        async def failing_lead() -> None:
            starts.append("leading")
            raise RecursionError

        monkeypatch.setattr(scheduler.informers, "run", failing_informers)
        monkeypatch.setattr(scheduler.informers, "wait_for_sync", failing_lead)
        running = asyncio.create_task(scheduler.run())
        await asyncio.sleep(10.0)
        assert not running.done() and starts.count("informers") > 3 and starts.count("leading") > 3
        scheduler.stop()
        await running


async def test_the_rest_of_a_backlog_is_taken_up_when_the_bindings_before_it_are_on_their_way() -> None:
    async with scheduling() as scheduler:
        hurried: list[int] = []
        cast(Any, scheduler.cycle_loop).trigger = lambda: hurried.append(len(scheduler.writers.binder.outbox))
        flushing = asyncio.create_task(scheduler.flush_statuses())
        await asyncio.sleep(FLUSH_INTERVAL * 1.5)
        assert hurried == [], "there is no more"
        scheduler.cycles.backlog_left = True
        scheduler.writers.binder.outbox.pause()
        for _ in range(MAX_BINDINGS_AHEAD):
            scheduler.writers.binder.outbox.put(lambda: None)
        await asyncio.sleep(FLUSH_INTERVAL)
        assert hurried == [], "the API server has enough to do"
        scheduler.writers.binder.outbox.resume()
        await asyncio.sleep(FLUSH_INTERVAL)
        assert hurried == [0]
        flushing.cancel()
