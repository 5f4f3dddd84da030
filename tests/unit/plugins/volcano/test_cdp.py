"""CDP: pods that have just started are left alone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.plugin_session import World, job_of

from navarch.engine.session import Session
from navarch.model.status import TaskStatus
from navarch.plugins.volcano.cdp import COOLDOWN, Cdp

SCHEDULED = (("PodScheduled", "True", "", 100.0),)


def offered(now: float, **pod: Any) -> bool:
    session: Session = World().node("n", cpu=4).queue("q").job("j").pods("j", cpu=1, node="n", **pod).session(Cdp, now=now)
    (plugin,) = session.plugins
    assert isinstance(plugin, Cdp)
    tasks = list(job_of(session, "j").tasks)
    assert plugin.preemptable(0, tasks) == plugin.reclaimable(0, tasks)
    return plugin.preemptable(0, tasks) == tasks


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_a_pod_is_protected_for_as_long_as_it_says(where: str) -> None:
    pod = {where: {COOLDOWN: "1m"}, "conditions": SCHEDULED}
    assert not offered(159.0, **pod)
    assert offered(160.0, **pod)


def test_the_label_wins_over_the_annotation() -> None:
    assert offered(120.0, labels={COOLDOWN: "10s"}, annotations={COOLDOWN: "1h"}, conditions=SCHEDULED)


def test_pods_that_say_nothing_or_nonsense_are_not_protected() -> None:
    assert offered(100.0, conditions=SCHEDULED)
    assert offered(100.0, labels={COOLDOWN: "a while"}, conditions=SCHEDULED)


def test_only_running_pods_are_protected() -> None:
    assert offered(100.0, labels={COOLDOWN: "1h"}, conditions=SCHEDULED, status=TaskStatus.BOUND)


def test_without_the_condition_the_start_counts() -> None:
    assert not offered(110.0, labels={COOLDOWN: "1m"}, started=100.0)
    assert offered(110.0, labels={COOLDOWN: "1m"})
