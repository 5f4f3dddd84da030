"""Resourcequota: admission within the quotas of the namespace."""

from __future__ import annotations

from typing import Any

from tests.worlds.plugin_session import World, amounts, job_of

from navarch.engine.points.protocols import Vote
from navarch.engine.reasons import Reason
from navarch.engine.session import Session
from navarch.model.spec import QuotaSpec
from navarch.plugins.volcano.resourcequota import ResourceQuota


def world(asked: dict[str, Any] | None, used: dict[str, Any] | None = None, **hard: Any) -> World:
    made = World().queue("q").job("j", min_resources=asked, phase="Pending")
    made.cluster.put_quota(QuotaSpec("ns", "quota", amounts(hard) or (), amounts(used or {}) or ()))
    return made


def ask(session: Session) -> Vote | Reason:
    (plugin,) = session.plugins
    assert isinstance(plugin, ResourceQuota)
    return plugin.job_enqueueable(job_of(session, "j"))


def test_within_the_quota_and_beyond_it() -> None:
    assert ask(world({"cpu": 2, "memory": "2G"}, cpu=2, memory="2G").session(ResourceQuota)) == Vote.PERMIT
    refused = ask(world({"cpu": 20, "memory": "1G"}, used={"cpu": 1}, cpu=2, memory="2G").session(ResourceQuota))
    assert isinstance(refused, Reason)
    assert refused.message == "resource quota insufficient, requested: cpu=20, used: cpu=1, limited: cpu=2"
    assert refused.figures["cpu hard"] == 2000


def test_only_resources_that_the_quota_names_count() -> None:
    assert ask(world({"gpu": 8}, cpu=1).session(ResourceQuota)) == Vote.PERMIT


def test_without_minimum_or_quota_nothing_is_held_back() -> None:
    assert ask(world(None, cpu=1).session(ResourceQuota)) == Vote.PERMIT
    made = World().queue("q").job("j", min_resources={"cpu": 9})
    made.cluster.put_quota(QuotaSpec("elsewhere", "quota", amounts({"cpu": 1}) or ()))
    assert ask(made.session(ResourceQuota)) == Vote.PERMIT


def test_jobs_admitted_in_the_same_cycle_count() -> None:
    session = world({"cpu": 2}, cpu=3).session(ResourceQuota)
    session.job_enqueued(job_of(session, "j"))
    assert isinstance(ask(session), Reason)
