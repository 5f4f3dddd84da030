"""Orders that users of batch systems know, each by the jobs that it starts first on one full node."""

from __future__ import annotations

from typing import Any

import pytest

import navarch
from navarch.testing.builders import node, pod, pod_group


def started(names: list[str], *jobs: list[Any], now: float = 100_000.0) -> set[str]:
    """Pods that a cycle starts under these plugins on a node with two GPUs."""
    tiers = [{"plugins": [{"name": name} for name in ("gang", *names, "predicates")]}]
    objects = [node("n1").gpu(2), *(each for one in jobs for each in one)]
    cycle = navarch.plan(objects, {"actions": "allocate", "tiers": tiers}, now=now).to_dict()["cycles"][0]
    return {bind["pod"].removeprefix("default/") for bind in cycle["binds"]}


def job(name: str, gpus: int = 2, *, created: str = "1970-01-02T00:00:00Z", expected: str = "") -> list[Any]:
    group = pod_group(name).created(created)
    if expected:
        group.annotate("navarch.io/expected-duration", expected)
    return [group, pod(f"{name}-0").gpu(gpus).in_group(name)]


def test_strict_order_keeps_later_jobs_behind_one_that_does_not_fit() -> None:
    large = job("a", 4)
    small = job("b", 1, created="1970-01-02T00:00:01Z")
    assert started([], large, small) == {"b-0"}
    assert started(["strict-order"], large, small) == set()


def test_strict_order_says_which_job_is_first() -> None:
    tiers = [{"plugins": [{"name": name} for name in ("gang", "strict-order", "predicates")]}]
    objects = [node("n1").gpu(2), *job("a", 4), *job("b", 1, created="1970-01-02T00:00:01Z")]
    cycle = navarch.plan(objects, {"actions": "allocate", "tiers": tiers}).to_dict()["cycles"][0]
    found = {each["job"]: [reason["code"] for reason in each["reasons"]] for each in cycle["jobs"]}
    assert "BehindFirstJob" in found["default/b"]


@pytest.mark.parametrize(("expected", "first"), [(("2h", "30m"), "b-0"), (("30m", "2h"), "a-0"), (("2h", ""), "a-0")])
def test_shortest_first_orders_by_expected_duration(expected: tuple[str, str], first: str) -> None:
    jobs = [job(name, expected=each) for name, each in zip("ab", expected)]
    assert started(["shortest-first"], *jobs) == {first}


def test_ageing_lifts_a_job_that_has_waited_long() -> None:
    old = job("z", created="1970-01-01T00:00:00Z", expected="9h")
    new = job("a", created="1970-01-02T03:00:00Z", expected="1h")
    assert started(["shortest-first"], old, new) == {"a-0"}
    assert started(["ageing", "shortest-first"], old, new) == {"z-0"}
