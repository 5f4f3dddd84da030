"""EASY backfill: a later job may start before the first that waits if it does not delay it."""

from __future__ import annotations

from typing import Any

import navarch
from navarch.testing.builders import node, pod, pod_group, queue

PLUGINS = [{"name": name} for name in ("gang", "easy-backfill", "predicates")]
POLICY: dict[str, Any] = {"actions": "allocate", "tiers": [{"plugins": PLUGINS}]}
NOW = 1000.0


def job(name: str, gpus: int, expected: str = "", *, pods: int = 1, on: str = "", created: int = 0) -> list[Any]:
    group = pod_group(name, pods).created(f"1970-01-01T00:00:{created:02d}Z")
    if expected:
        group.annotate("navarch.io/expected-duration", expected)
    members = [pod(f"{name}-{i}").gpu(gpus).in_group(name) for i in range(pods)]
    for member in members:
        if on:
            member.on(on)
            member["status"] = {"phase": "Running", "startTime": "1970-01-01T00:16:40Z"}
    return [group, *members]


def decided(*objects: list[Any]) -> dict[str, Any]:
    given = [node("n1").gpu(4), node("n2").gpu(4), *(each for part in objects for each in part)]
    cycle: dict[str, Any] = navarch.plan(given, POLICY, now=NOW).to_dict()["cycles"][0]
    return cycle


def bound(cycle: dict[str, Any]) -> dict[str, str]:
    return {bind["pod"]: bind["node"] for bind in cycle["binds"]}


def reasons(cycle: dict[str, Any], name: str) -> list[str]:
    return [reason["message"] for each in cycle["jobs"] if each["job"] == f"default/{name}" for reason in each["reasons"]]


RUNNING = job("runs", 4, "100s", on="n1")
FIRST = job("first", 4, "50s", pods=2, created=1)


def test_the_first_job_is_promised_its_earliest_start() -> None:
    said = reasons(decided(RUNNING, FIRST), "first")
    assert "Reserved until 1970-01-01T00:18:20Z: promised a start then on n1, n2" in said


def test_a_job_that_ends_in_time_passes() -> None:
    assert bound(decided(RUNNING, FIRST, job("short", 4, "60s", created=2))) == {"default/short-0": "n2"}


def test_a_job_that_would_delay_the_first_waits_and_is_told_why() -> None:
    cycle = decided(RUNNING, FIRST, job("long", 4, "200s", created=2))
    assert bound(cycle) == {}
    assert any("promised to first from 1970-01-01T00:18:20Z on" in said for said in reasons(cycle, "long"))


def test_a_job_that_does_not_say_how_long_it_runs_counts_as_endless() -> None:
    assert bound(decided(RUNNING, FIRST, job("silent", 1, created=2))) == {}


def test_a_long_job_passes_where_the_promise_needs_nothing() -> None:
    first = job("first", 4, "50s", pods=1, created=1)
    full = job("more", 3, "500s", on="n2")
    assert bound(decided(RUNNING, full, first, job("long", 1, "900s", created=2))) == {"default/long-0": "n2"}


def test_without_known_ends_nothing_is_promised_and_others_pass() -> None:
    cycle = decided(job("runs", 4, on="n1"), FIRST, job("long", 4, "900s", created=2))
    assert bound(cycle) == {"default/long-0": "n2"}
    assert any("no start can be promised" in said for said in reasons(cycle, "first"))


def test_nothing_is_promised_to_a_job_that_its_queue_holds_back() -> None:
    limited = {"actions": "allocate", "tiers": [{"plugins": [*PLUGINS, {"name": "capacity"}]}]}
    small = queue("small").capability(cpu="8", memory="8Gi", **{"nvidia.com/gpu": 2})
    group, member = job("first", 4, "50s", created=1)
    objects = [node("n1").gpu(4), node("n2").gpu(4), small, group.queue("small"), member, *RUNNING]
    (cycle,) = navarch.plan(objects, limited, now=NOW).to_dict()["cycles"]
    assert bound(cycle) == {}
    assert not any("Reserved" in said or "promised" in said for said in reasons(cycle, "first"))


def test_the_first_job_of_another_queue_is_told_when_it_is_expected() -> None:
    group, *members = job("second", 3, "50s", pods=2, created=2)
    cycle = decided([queue("other")], RUNNING, FIRST, [group.queue("other"), *members])
    said = reasons(cycle, "second")
    assert "no start can be promised: what is promised to first comes first" in said
    group, *members = job("second", 4, "50s", created=2)
    runs = job("more", 4, "300s", on="n2")
    small = [pod_group("first").created("1970-01-01T00:00:01Z"), pod("first-0").gpu(4).in_group("first")]
    said = reasons(decided([queue("other")], RUNNING, runs, small, [group.queue("other"), *members]), "second")
    assert any("expected to start at 1970-01-01T00:21:40Z; what is promised to first comes first" in each for each in said), said
