"""A Volcano Job that no controller takes up gets one event."""

from __future__ import annotations

import pytest
from tests.worlds.live_parts.cluster_cache import cache
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.apis.dialect import Settings
from navarch.apis.operators.workload import PodMaker
from navarch.live.writers.events import Events
from navarch.live.writers.unattended_jobs import MOST_A_TICK, PATIENCE, UnattendedJobs


async def test_a_job_without_a_controller_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    into, _ = cache(settings=Settings(scheduler_names=frozenset({"volcano"})))
    said = Submitted()
    told = UnattendedJobs(into, Events(said.pool, clock=lambda: 1e9))
    for name in ("train", "tune"):
        into.put(PodMaker("ml", name, frozenset({"volcano"}), uid=name, created=100.0, taken_up=False), 1)
    told.report(100.0 + PATIENCE)
    assert said.bodies() == []
    for now in (101.0, 102.0):
        told.report(now + PATIENCE)
    bodies = said.bodies()
    assert [(body["reason"], body["regarding"]["kind"], body["regarding"]["name"]) for body in bodies] == [
        ("NoController", "Job", "train"),
        ("NoController", "Job", "tune"),
    ]
    assert len(caplog.records) == 1 and "Is volcano-controllers running?" in caplog.text
    into.put(PodMaker("ml", "train", frozenset({"volcano"}), uid="train", created=100.0), 2)
    assert [each.name for each in into.unattended_makers(1e9)] == ["tune"]


async def test_many_jobs_get_their_events_over_several_ticks() -> None:
    into, _ = cache(settings=Settings(scheduler_names=frozenset({"volcano"})))
    events = Events(Submitted().pool, clock=lambda: 1e9)
    unattended = UnattendedJobs(into, events)
    names = [f"job-{number:03}" for number in range(2 * MOST_A_TICK + 1)]
    for name in names:
        into.put(PodMaker("ml", name, frozenset({"volcano"}), uid=name, created=100.0, taken_up=False), 1)
    counts = []
    for tick in range(4):
        before = len(events.outbox)
        unattended.report(101.0 + tick + PATIENCE)
        counts.append(len(events.outbox) - before)
    assert counts == [MOST_A_TICK, MOST_A_TICK, 1, 0]
