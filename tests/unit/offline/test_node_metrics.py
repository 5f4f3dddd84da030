"""The load of nodes from files and Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import navarch
from navarch.apis.errors import ObjectError
from navarch.offline.node_metrics import metrics_file, read_metrics
from navarch.offline.plan import PlanError


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ([1], "NodeMetrics n1: found a list, expected a mapping with cpu, memory, ageSeconds"),
        ({"cpu": 5}, "NodeMetrics n1: cpu: found 5, expected a mapping from a period to percent, such as {10m: 55}"),
        ({"cpu": {"10m": "5"}}, "NodeMetrics n1: cpu[10m]: found '5', expected percent, a number"),
        ({"memory": {"10m": float("nan")}}, "NodeMetrics n1: memory[10m]: found nan, expected percent, a number"),
        ({"ageSeconds": "1m"}, "NodeMetrics n1: ageSeconds: found '1m', expected a number of seconds"),
        ({"gpu": {}}, "NodeMetrics n1: gpu: found an unknown field, expected one of cpu, memory, ageSeconds"),
    ],
)
def test_a_mistake_is_that_nodes_own(figures: Any, text: str) -> None:
    found, mistakes = read_metrics({"n1": figures, "n2": {"cpu": {"10m": 5}}}, now=10.0)
    assert [str(each) for each in mistakes] == [text] and list(found) == ["n2"]
    with pytest.raises(PlanError, match="NodeMetrics n1"):
        navarch.plan([], metrics={"n1": figures})
    kept = navarch.plan([], metrics={"n1": figures}, keep_going=True)
    assert [str(each) for each in kept.mistakes] == [text]


def test_a_node_that_is_not_there_is_named() -> None:
    assert "metrics: no node 'n9' is in the input" in navarch.plan([], metrics={"n9": {}}).warnings


@pytest.mark.parametrize(("text", "expected"), [("- 1\n", "a mapping"), ("a: [", "a file that can be read"), ("", "a mapping")])
def test_a_file_that_is_no_mapping(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "load.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ObjectError, match=expected):
        metrics_file(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ObjectError, match="No such file"):
        metrics_file(tmp_path / "none.yaml")
