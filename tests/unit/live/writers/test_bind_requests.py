"""BindRequests without an answer: reported after a while, and only for as long as that lasts."""

from __future__ import annotations

from typing import cast

import pytest
from tests.worlds.live_parts.cluster_cache import cache, pod, put

from navarch.kube.client import Client
from navarch.live.writers import bind_requests
from navarch.live.writers.bind_requests import UNANSWERED, BindRequests
from navarch.model.objects.bind_requests import BindRequestSpec
from navarch.model.spec import ObjectSpec


def test_an_unanswered_bind_request_is_reported_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    made, _ = cache()
    waiting = pod("a")
    put(made, waiting)
    requests = BindRequests(cast(Client, None), made, lambda: True, enabled=True)

    def late(now: float) -> list[str]:
        return [task.name for task in requests.unanswered(now)]

    def says(phase: str) -> None:
        made.put(ObjectSpec("BindRequest", "default", "a", BindRequestSpec("default", "a", "n1", phase=phase, backoff_limit=3)))

    assert late(0.0) == []
    says("")
    assert (late(1.0), late(1.0 + UNANSWERED), late(2.0 + UNANSWERED)) == ([], ["a"], ["a"])
    said = [record.getMessage().partition(":")[0] for record in caplog.records if record.name == bind_requests.__name__]
    assert said == ["1 BindRequests have had no answer for 30 s"]
    says("Failed")
    assert late(3.0 + UNANSWERED) == [], "a binder tries"
    says("")
    assert late(4.0 + UNANSWERED) == [], "the time begins anew"
