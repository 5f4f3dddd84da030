"""The next step that a refusal names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import navarch
from navarch.engine.reasons import Event, Reason, next_step
from navarch.testing.builders import Builder, PodBuilder, node, pod, queue

STORAGE = "look at its volume claims (kubectl get pvc), or correct their names in the pods"
DEVICES = "look at its claims on devices (kubectl get resourceclaims), or correct their names in the pods"


def with_volume(each: PodBuilder) -> PodBuilder:
    each["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "nope"}}]
    return each


def with_devices(each: PodBuilder) -> PodBuilder:
    each["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimName": "nope"}]
    return each


@pytest.mark.parametrize("asks", [0, 1], ids=["best effort", "with a request"])
@pytest.mark.parametrize(("waiting", "step"), [(with_volume, STORAGE), (with_devices, DEVICES)])
def test_a_claim_that_is_missing_is_what_the_user_looks_at(waiting: Callable[[PodBuilder], PodBuilder], step: str, asks: int) -> None:
    one = waiting(pod("a").cpu(asks) if asks else pod("a"))
    (job,) = navarch.plan([node("n").cpu(4), one]).pending
    (reason,) = job.reasons
    assert "not found" in reason.message
    assert next_step(reason) == step
    assert Event.POD_REMOVED not in reason.undone_by


def test_a_share_is_not_called_a_limit_that_can_be_raised() -> None:
    objects: list[Builder] = [node("n").cpu(4), queue("a"), queue("b")]
    for name in ("a", "b"):
        for number in range(4):
            each = pod(f"{name}-{number}").annotate("volcano.sh/queue-name", name).cpu(1)
            objects.append(each.on("n") if name == "a" or number else each)
    reasons = [reason for job in navarch.plan(objects).pending for reason in job.reasons]
    assert reasons and not any("limit" in next_step(reason) for reason in reasons)


def test_a_bound_is_one() -> None:
    assert next_step(Reason("QueueLimit", "")).endswith("have the queue's limit raised")
