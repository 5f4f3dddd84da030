"""Small parts of running it: who may see a snapshot, how metrics stay bounded, what a log line looks like."""

from __future__ import annotations

import json
import logging

import pytest

from navarch.cache.health import _is_loopback
from navarch.cache.metrics import MOST_QUEUES, OTHERS, Metrics
from navarch.cache.watched import watched
from navarch.cli.run import _JsonLines
from navarch.engine.record import QueueFigures


@pytest.mark.parametrize(("address", "ours"), [("127.0.0.1", True), ("::1", True), ("10.0.0.7", False), ("", False), (None, False)])
def test_a_snapshot_is_for_callers_on_the_machine(address: str | None, ours: bool) -> None:
    assert _is_loopback(address) == ours


def test_queues_beyond_a_number_share_one_label() -> None:
    metrics = Metrics()
    figures = [QueueFigures(f"queue-{i}", {}, {"cpu": 1}, {}, 0.5) for i in range(MOST_QUEUES + 3)]
    metrics.queues(figures)
    assert metrics.registry.get_sample_value("navarch_queue_share", {"queue": "queue-0"}) == 0.5
    labels = {"queue": OTHERS, "figure": "allocated", "resource": "cpu"}
    assert metrics.registry.get_sample_value("navarch_queue_resource", labels) == 3
    metrics.queues([])
    assert metrics.registry.get_sample_value("navarch_queue_share", {"queue": "queue-0"}) is None


def test_a_log_line_is_json() -> None:
    record = logging.LogRecord("navarch.cache", logging.WARNING, "f", 1, "bind of %s failed", ("a/b",), None)
    line = json.loads(_JsonLines().format(record))
    assert (line["level"], line["message"], line["logger"]) == ("warning", "bind of a/b failed", "navarch.cache")


def test_every_kind_is_watched_once_and_what_every_server_has_is_not_optional() -> None:
    kinds = watched()
    resources = [each.candidates[0] for each in kinds]
    assert len(resources) == len(set(resources))
    required = {each.kind for each in kinds if not each.optional}
    assert required == {"Node", "Namespace", "ResourceQuota", "PriorityClass", "PodDisruptionBudget"}
    claims = next(each for each in kinds if each.kind == "ResourceClaim")
    assert [each.version for each in claims.candidates] == ["v1", "v1beta2", "v1beta1"]
