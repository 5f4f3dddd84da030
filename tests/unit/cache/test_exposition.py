"""The text of /metrics, judged by the parser that Prometheus' own library has for it."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from navarch.cache.exposition import Registry


def parsed(registry: Registry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(registry.text().decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def test_every_kind_is_read_as_what_it_is() -> None:
    registry = Registry()
    registry.counter("cycles", "Cycles run.").inc()
    registry.gauge("leading", "1 while\nleading \\ else 0.").set(1)
    registry.gauges("share", "A queue's.", "queue", "figure").labels('a"b\\c\nd', "x").inc(0.25)
    registry.watch("waiting", "Read now.", "kind", lambda: {"b": 2, "a": 1e18})
    kinds = {family.name: (family.type, family.documentation) for family in text_string_to_metric_families(registry.text().decode())}
    assert kinds == {
        "cycles": ("counter", "Cycles run."),
        "leading": ("gauge", "1 while\nleading \\ else 0."),
        "share": ("gauge", "A queue's."),
        "waiting": ("gauge", "Read now."),
    }
    assert parsed(registry) == {
        ("cycles_total", ()): 1.0,
        ("leading", ()): 1.0,
        ("share", (("figure", "x"), ("queue", 'a"b\\c\nd'))): 0.25,
        ("waiting", (("kind", "a"),)): 1e18,
        ("waiting", (("kind", "b"),)): 2.0,
    }


def test_a_histogram_counts_what_is_at_most_each_bound_and_all_of_it() -> None:
    registry = Registry()
    seconds = registry.histograms("seconds", "Spent.", (0.1, 1.0), "part")
    for value in (0.05, 0.1, 0.5, 7.0):
        seconds.labels("open").observe(value)
    found = {(name, dict(labels).get("le")): value for (name, labels), value in parsed(registry).items()}
    assert found == {
        ("seconds_bucket", "0.1"): 2.0,
        ("seconds_bucket", "1.0"): 3.0,
        ("seconds_bucket", "+Inf"): 4.0,
        ("seconds_count", None): 4.0,
        ("seconds_sum", None): 7.65,
    }


def test_what_is_cleared_is_gone_and_names_are_taken_once() -> None:
    registry = Registry()
    share = registry.gauges("share", "", "queue")
    share.labels("a").set(float("inf"))
    assert registry.sample("share", queue="a") == float("inf") and b'share{queue="a"} +Inf\n' in registry.text()
    share.clear()
    assert registry.sample("share", queue="a") is None
    with pytest.raises(ValueError, match="two metrics are called share"):
        registry.counter("share", "")
    with pytest.raises(ValueError, match="expected values of"):
        share.labels("a", "b")
