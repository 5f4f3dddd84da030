"""What KAI's users read in a PodGroup: conditions with the queue's figures, and the events of groups that wait or break."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from navarch.apis.core.objects import from_manifest
from navarch.apis.dialect import Settings
from navarch.apis.kai.podgroups import PodGroup, Queue, read_pod_group, read_queue
from navarch.engine.reasons import Reason
from navarch.engine.record import JobDecision
from navarch.live.writers.group_bodies import GroupState, kai_body
from navarch.model.spec import Condition, JobSpec, QueueSpec
from navarch.model.status import TaskStatus

LONELY = Reason("PodSchedulingErrors", "no nodes with enough resources were found")


def group(**spec: Any) -> JobSpec:
    manifest = {"metadata": {"name": "g", "namespace": "team"}, "spec": {"queue": "red", **spec}}
    return read_pod_group(from_manifest(manifest, PodGroup), Settings())


def queue() -> QueueSpec:
    resources = {
        "gpu": {"quota": 2, "limit": 4},
        "cpu": {"quota": 1500, "limit": -1},
        "memory": {"quota": -1, "limit": 8},
    }
    return read_queue(from_manifest({"metadata": {"name": "red"}, "spec": {"resources": resources}}, Queue), Settings())


def body(job: JobSpec, *reasons: Reason, pool: str = "", **counts: int) -> Any:
    counted = [counts.get(status.name.lower(), 0) for status in TaskStatus]
    decision = JobDecision(job.key, "red", "Inqueue", 1, {}, reasons=reasons)
    return kai_body(GroupState(job, job, counted, decision, pool, 1e9, {"red": queue()}))


def condition(*arguments: Any, **named: Any) -> dict[str, Any]:
    (found,) = body(*arguments, **named).status["schedulingConditions"]
    return dict(found)


def test_a_group_that_fits_nowhere() -> None:
    said = condition(group(), LONELY, pending=1)
    assert (said["reason"], said["status"], said["nodePool"]) == ("Unschedulable", "True", "default")
    assert said["reasons"] == [{"reason": "PodSchedulingErrors", "message": LONELY.message}]
    assert condition(group(), LONELY, pool="a100", pending=1)["nodePool"] == "a100"
    assert condition(group(schedulingBackoff=1), LONELY, pending=1)["message"] == f"Node-Pool 'default': {LONELY.message}"


@pytest.mark.parametrize(
    ("code", "job", "expected"),
    [
        (
            "OverLimit",
            group(),
            {"queueAllocatedResources": {"nvidia.com/gpu": "3500m"}, "podGroupRequestedResources": {"nvidia.com/gpu": "1"}},
        ),
        (
            "NonPreemptibleOverQuota",
            replace(group(), preemptable=False),
            {
                "queueAllocatedNonPreemptibleResources": {"nvidia.com/gpu": "3500m"},
                "podGroupRequestedResources": {"nvidia.com/gpu": "1"},
                "podGroupRequestedNonPreemptibleResources": {"nvidia.com/gpu": "1"},
            },
        ),
    ],
)
def test_a_queue_that_says_no_shows_its_figures(code: str, job: JobSpec, expected: dict[str, Any]) -> None:
    figures: dict[str, int | float | str] = {"queue": "red", "resource": "gpu", "requested": 1.0, "bound": 4.0, "held": 3.5}
    (reason,) = condition(job, Reason(code, "full", figures=figures), pending=1)["reasons"]
    assert reason["details"]["queueDetails"] == {
        "name": "red",
        "queueDeservedResources": {"cpu": "1500m", "nvidia.com/gpu": "2"},
        "queueResourceLimits": {"memory": "8000000", "nvidia.com/gpu": "4"},
        **expected,
    }


def test_a_group_that_waits_for_its_own_pods_has_no_condition() -> None:
    assert body(group(), Reason("NotReady", "Waiting for 3 pods, currently 1 exist, 0 are gated"), pending=1).status is None


def test_conditions_go_once_every_pod_is_bound() -> None:
    before = Condition("UnschedulableOnNodePool", "True", "Unschedulable", "no room", "1", 1e9, "default")
    job = replace(group(), conditions=(before,))
    assert body(job, running=1, binding=1).status is None, "a bind that fails still has its explanation"
    assert body(job, running=1, pending=1).status is None
    assert body(job, running=2).status == {"schedulingConditions": None}


def test_an_unchanged_condition_is_not_written_again() -> None:
    before = Condition("UnschedulableOnNodePool", "True", "Unschedulable", LONELY.message, "4", 1e9, "default")
    assert body(replace(group(), conditions=(before,)), LONELY, pending=1).status is None
    other = Condition("UnschedulableOnNodePool", "True", "Unschedulable", "no room", "4", 1e9, "h100")
    both = body(replace(group(), conditions=(other,)), LONELY, pending=1).status["schedulingConditions"]
    assert [(each["nodePool"], each["transitionID"]) for each in both] == [("h100", "4"), ("default", "5")]
