"""Decisions merged by job, rates, and figures of /metrics."""

from __future__ import annotations

from msgspec.structs import replace

from navarch.views.published_state import CycleSummary, Decided
from navarch.web.scheduler.link import binds_per_second, merged
from navarch.web.scheduler.metrics_page import parse_metrics


def decided(kind: str, cycle: int, pod: str, node: str, job: str, **more: str) -> Decided:
    return Decided(kind, cycle, "2026-11-16T06:00:00Z", pod, node, job, **more)


def test_decisions_of_one_cycle_about_one_job_are_one_entry() -> None:
    found = merged(
        [
            decided("bind", 7, "ml/a-0", "n1", "ml/a"),
            decided("bind", 7, "ml/a-1", "n2", "ml/a"),
            decided("eviction", 6, "cv/b-0", "n1", "cv/b", for_="ml/a", action="reclaim", message="because"),
            decided("bind", 5, "ml/a-0", "n1", "ml/a"),
        ]
    )
    assert [(each["kind"], each["cycle"], each["job"], each["pods"], each["nodes"]) for each in found] == [
        ("bind", 7, "ml/a", 2, ["n1", "n2"]),
        ("evict", 6, "cv/b", 1, ["n1"]),
        ("bind", 5, "ml/a", 1, ["n1"]),
    ]
    assert (found[1]["for"], found[1]["action"], found[1]["message"]) == ("ml/a", "reclaim", "because")


def test_a_node_that_is_reserved_again_and_again_is_one_entry() -> None:
    nominated = [decided("nomination", number, f"ml/a-{pod}", "n1", "ml/a") for number in (9, 8, 7) for pod in (0, 1)]
    at = {9: "2026-11-16T06:00:09Z", 8: "2026-11-16T06:00:08Z", 7: "2026-11-16T06:00:07Z"}
    nominated = [replace(each, time=at[each.cycle]) for each in nominated]
    other = decided("nomination", 8, "ml/b-0", "n2", "ml/b")
    found = merged([*nominated[:3], other, *nominated[3:], decided("bind", 6, "ml/a-0", "n1", "ml/a"), replace(nominated[0], cycle=5)])
    assert [(each["kind"], each["job"], each["cycle"], each["pods"], each["times"]) for each in found] == [
        ("nominate", "ml/a", 9, 2, 3),
        ("nominate", "ml/b", 8, 1, 1),
        ("bind", "ml/a", 6, 1, 1),
        ("nominate", "ml/a", 5, 1, 1),
    ]
    assert found[0]["time"] - found[0]["since"] == 2.0


def cycle(number: int, time: str, bound: int) -> CycleSummary:
    return CycleSummary(number, str(number), time, 0.01, {}, 1, bound, 0, 0, 0, 0)


def test_binds_per_second_count_the_last_minute() -> None:
    cycles = [
        cycle(3, "2026-11-16T06:01:30Z", 60),
        cycle(2, "2026-11-16T06:01:00Z", 60),
        cycle(1, "2026-11-16T06:00:00Z", 999),
    ]
    assert binds_per_second(cycles) == 2.0
    assert binds_per_second(cycles[:2]) == 4.0
    assert binds_per_second(cycles[:1]) == 60.0


def test_metrics_give_failed_writes_and_quantiles() -> None:
    text = "\n".join(
        (
            'navarch_binds_total{result="ok"} 100.0',
            'navarch_binds_total{result="failed"} 2.0',
            'navarch_binds_total{result="dropped"} 4.0',
            'navarch_evictions_total{action="reclaim",result="given up"} 1.0',
            'navarch_status_writes_total{kind="Pod",result="error"} 3.0',
            'navarch_cycle_duration_seconds_bucket{le="0.001"} 40.0',
            'navarch_cycle_duration_seconds_bucket{le="0.01"} 90.0',
            'navarch_cycle_duration_seconds_bucket{le="0.1"} 100.0',
            'navarch_cycle_duration_seconds_bucket{le="+Inf"} 100.0',
        )
    )
    found = parse_metrics(text)
    assert (found.failed_writes, found.binds, found.p50, found.p99) == (6, 100, 0.01, 0.1)
    assert parse_metrics("").binds is None
