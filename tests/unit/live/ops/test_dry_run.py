"""The outcomes of a comparison, and the report of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.worlds.live_parts.cluster_cache import SETTINGS, node, pod, put

from navarch.apis.core.pod_objects import Pod
from navarch.installed import installed
from navarch.live.core import LiveCore
from navarch.live.ops.dry_run.comparison import DryRun
from navarch.live.ops.dry_run.report import DryRunReport, ReportError
from navarch.offline.policies import read_policy


class Side:
    """A core that decides and never commits, beside a scheduler that is played by the test."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.core = LiveCore(SETTINGS, lambda instruction: None)
        self.run = DryRun(lambda: self.now)
        for name in ("n1", "n2"):
            self.core.cache.put(node(name))

    def cycle(self) -> bool:
        registry = installed()
        return self.run.take(self.core.decide(read_policy("navarch", registry), registry, self.now))

    def put(self, *pods: Pod) -> None:
        for each in pods:
            put(self.core.cache, each)

    def compare(self) -> dict[str, int]:
        self.run.compare(self.core.cache.cluster)
        return dict(self.run.counts)


def test_each_outcome_of_a_comparison_is_counted() -> None:
    side = Side()
    side.put(pod("a", cpu="3"), pod("b", cpu="3"), pod("huge", cpu="9"))
    assert side.cycle() and not side.cycle(), "a decision is news once"
    ours = {each.pod: each.node for each in side.run.followed.values()}
    assert ours["default/huge"] == "" and ours["default/a"] and ours["default/b"]
    other = {"n1": "n2", "n2": "n1"}
    side.put(
        pod("a", node=ours["default/a"], cpu="3"), pod("b", node=other[ours["default/b"]], cpu="3"), pod("huge", node="n1", cpu="9")
    )
    assert side.compare() == {"agreed": 1, "other node": 1, "never": 1}
    side.put(pod("waits", cpu="4"), pod("early", cpu="1"))
    side.cycle()
    side.now += 60
    side.cycle()
    side.put(pod("waits", node="n1", cpu="4"), pod("early", node="n2", cpu="1"))
    assert side.compare() == {"agreed": 1, "other node": 1, "never": 1, "later": 1, "earlier": 1}
    (early,) = [each for each in side.run.compared if each.outcome == "earlier"]
    assert early.seconds == 60
    assert not side.run.followed


def test_a_pod_that_is_deleted_is_not_compared() -> None:
    side = Side()
    side.put(pod("a"))
    side.cycle()
    side.core.cache.pods.clear()
    side.core.cache.remove_pod("uid-a")
    assert side.compare() == {} and not side.run.followed


@pytest.mark.parametrize("name", ["report.json", "report.html"])
def test_the_report_has_every_outcome_and_no_markup_of_users(tmp_path: Path, name: str) -> None:
    side = Side()
    side.put(pod("a<script>", cpu="9"))
    side.cycle()
    side.put(pod("a<script>", cpu="9", node="n1"))
    side.compare()
    DryRunReport(tmp_path / name, ("x",), "navarch").write(side.run, side.now)
    text = (tmp_path / name).read_text()
    assert [each.name for each in tmp_path.iterdir()] == [name]
    if name.endswith("json"):
        found = json.loads(text)
        assert found["summary"]["never"] == 1 and found["pods"][0]["outcome"] == "never" and found["pods"][0]["ourNode"] == ""
    else:
        assert "<script>" not in text and "a&lt;script&gt;" in text and "can never start" in text


@pytest.mark.parametrize(("name", "why"), [("report.txt", "ends in .html or .json"), ("none/report.json", "does not exist")])
def test_a_report_that_cannot_be_written_is_refused_at_once(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(ReportError, match=why):
        DryRunReport(tmp_path / name, ("x",), "navarch")


def test_the_summary_counts_what_navarch_would_start() -> None:
    side = Side()
    side.put(pod("a"), pod("huge", cpu="9"))
    side.cycle()
    assert side.run.summary().endswith("Navarch would start 1 pods now that it has not started, and refuses 1")
