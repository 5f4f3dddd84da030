"""Kinds that may not be watched, told together."""

from __future__ import annotations

import asyncio
import logging

import pytest

from navarch.kube.errors import Forbidden, Status
from navarch.kube.resources import PODS, Resource
from navarch.kube.watch.forbidden_kinds import ForbiddenKinds

QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs")


def refusal(resource: Resource) -> Forbidden:
    return Forbidden(Status(code=403, reason="Forbidden", message="no"), method="GET", path=resource.path())


async def told(kinds: ForbiddenKinds, caplog: pytest.LogCaptureFixture, *resources: Resource) -> str:
    """What is said of those that are refused at once."""
    caplog.clear()
    heard = asyncio.Event()

    def hear(record: logging.LogRecord) -> bool:
        heard.set()
        return True

    caplog.handler.addFilter(hear)
    for resource in resources:
        kinds.add(resource, refusal(resource))
    async with asyncio.timeout(60):
        await heard.wait()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    return record.getMessage()


async def test_one_is_told_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    kinds = ForbiddenKinds(pause=0.0)
    assert await told(kinds, caplog, PODS) == "GET /api/v1/pods: 403 Forbidden: no; retrying until it is allowed."


async def test_many_are_told_in_one_line_and_later_ones_in_another(caplog: pytest.LogCaptureFixture) -> None:
    kinds = ForbiddenKinds("Ask somebody", pause=0.0)
    first = "GET /apis/batch.volcano.sh/v1alpha1/jobs: 403 Forbidden: no; retrying until it is allowed."
    others = "The same holds for 2 other kinds: pods.v1, queues.v1beta1.scheduling.volcano.sh."
    assert await told(kinds, caplog, QUEUES, PODS, JOBS) == f"{first} Ask somebody. {others}"
    assert await told(kinds, caplog, JOBS) == f"{first} Ask somebody."
