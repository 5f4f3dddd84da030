"""A rule that hangs is ended, its job is set aside, and what follows the cycle is left alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.worlds.plugin_session import World

from navarch.actions.allocate import Allocate
from navarch.engine.containment.containment import TOO_LONG, CycleFailed
from navarch.engine.cycle import decide
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.live.hangs.watchdog import Watchdog

pytestmark = [
    pytest.mark.contained,
    # The exception may strike while the collector finalises what an earlier test left. Python drops it there, and it is raised again.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Hangs(Plugin):
    """Never returns for a job named bad"""

    name = "hangs"

    def job_order(self, job: Job) -> int:
        while job.key == "ns/bad":
            pass
        return 0


class HangsAtOnce(Plugin):
    """Never opens"""

    name = "hangs-at-once"

    def open(self) -> None:
        while True:
            pass


def run(kind: type[Plugin], watchdog: Watchdog, *jobs: str) -> CycleRecord:
    world = World().node("n", cpu=8).queue("q")
    for job in jobs:
        world.job(job).pods(job, 1, cpu=1)
    policy = Policy(("allocate",), ((PluginOption(kind.name),),))
    with watchdog.watch():
        return decide(world.cluster.snapshot(), policy, Registry([kind], [Allocate]), 0.0)


def test_the_job_at_hand_is_set_aside_and_nothing_else_is_decided() -> None:
    watchdog = Watchdog(1.0)
    record = run(Hangs, watchdog, "a", "bad", "c")
    assert [failure.job for failure in record.failures] == ["ns/bad"]
    assert record.failures[0].error == "CycleTimeout: the cycle took too long"
    assert record.binds == []
    assert record.warnings == [TOO_LONG]
    assert [job.reasons[0].code for job in record.jobs] == ["InternalError"]
    assert len(run(Hangs, watchdog, "a", "c").binds) == 2, "the next cycle goes on without it"


def test_a_hang_without_a_job_ends_the_cycle_with_a_name() -> None:
    with pytest.raises(CycleFailed, match=r"plugin hangs-at-once \(test_watchdog.py:\d+\) failed: CycleTimeout"):
        run(HangsAtOnce, Watchdog(1.0), "a")


def test_only_cycles_are_ended() -> None:
    """The body is busy for longer than the limit, but in no cycle."""
    watchdog = Watchdog(0.001)
    count = 0
    with watchdog.watch():
        for _ in range(3_000_000):
            count += 1
    assert count == 3_000_000


def test_a_limit_of_zero_ends_no_cycle() -> None:
    assert len(run(Hangs, Watchdog(0), "a").binds) == 1


TRACED = """
import sys
from navarch.live.hangs.watchdog import Watchdog
with Watchdog(60.0).watch():
    pass
sys.settrace(lambda *event: None)
(lambda: None)()
sys.settrace(None)
"""


def test_a_debugger_can_trace_the_process_after_a_cycle() -> None:
    """An exception that was asked for and withdrawn keeps Python 3.11 in the first traced call for ever."""
    assert subprocess.run([sys.executable, "-c", TRACED], check=False, timeout=120).returncode == 0
