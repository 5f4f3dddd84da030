"""SLA: patience ends, and then the job is let through."""

from __future__ import annotations

from tests.worlds.plugin_session import World, job_of

from navarch.engine.points.protocols import Vote
from navarch.engine.session import Session
from navarch.plugins.volcano.sla import Sla


def world() -> World:
    made = World().queue("q").job("patient", created=1.0)
    made.job("own", created=100.0, annotations={"volcano.sh/sla-waiting-time": "1m"})
    return made.job("old", created=130.0, annotations={"sla-waiting-time": "20s"})


def plugin(session: Session) -> Sla:
    (found,) = session.plugins
    assert isinstance(found, Sla)
    return found


def order(session: Session) -> list[str]:
    return [job.spec.name for job in sorted(session.all_jobs(), key=plugin(session).job_order)]


def test_jobs_with_a_deadline_go_first_by_deadline() -> None:
    assert order(world().session(Sla)) == ["old", "own", "patient"]


def test_the_policy_speaks_for_jobs_that_do_not() -> None:
    assert order(world().session(Sla, arguments={"sla-waiting-time": 120.0})) == ["patient", "old", "own"]


def test_a_job_is_let_through_when_its_wait_is_over_and_not_before() -> None:
    for now, vote in ((159.9, Vote.ABSTAIN), (160.0, Vote.PERMIT)):
        session = world().session(Sla, now=now)
        assert plugin(session).job_enqueueable(job_of(session, "own")) == vote
        assert plugin(session).job_pipelined(job_of(session, "own")) == vote
        assert plugin(session).job_enqueueable(job_of(session, "patient")) == Vote.ABSTAIN


def test_an_invalid_waiting_time_is_none() -> None:
    for text in ("soon", "0s", "-5m", ""):
        made = World().queue("q").job("j", annotations={"sla-waiting-time": text})
        session = made.session(Sla, now=1e9)
        assert plugin(session).deadline(job_of(session, "j")) is None
