"""What `navarch.plan` accepts, and the one line that it says to anything else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import navarch
from navarch.testing.builders import node, pod

TEXT = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
"""


def one_by_one() -> Iterator[dict[str, Any]]:
    yield node("n1").cpu("4")
    yield pod("a").cpu("1")


def test_objects_come_in_many_forms(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(TEXT)
    forms: list[Any] = [TEXT, file, str(file), tmp_path, [file], [TEXT], one_by_one()]
    assert [[(bind.pod, bind.node) for bind in navarch.plan(form).binds] for form in forms] == [[("default/a", "n1")]] * len(forms)


def test_json_text_is_read() -> None:
    assert navarch.plan('{"apiVersion": "v1", "kind": "List", "items": []}').binds == []


def test_a_file_that_does_not_exist_is_one_mistake() -> None:
    with pytest.raises(navarch.PlanError, match=r"File no-such.yaml: .*a file that can be read"):
        navarch.plan("no-such.yaml")


@pytest.mark.parametrize("now", [1767268800, 1767268800.0, "2026-01-01T12:00:00Z", datetime(2026, 1, 1, 12, tzinfo=UTC), "1767268800"])
def test_now_may_have_each_documented_form(now: Any) -> None:
    assert navarch.plan(one_by_one(), now=now).binds


@pytest.mark.parametrize("now", ["noon", float("nan"), "9" * 400, object()])
def test_a_moment_that_is_none(now: Any) -> None:
    with pytest.raises(ValueError, match="expected seconds since the epoch, a datetime or a time such as 2026-01-01T12:00:00Z"):
        navarch.plan(one_by_one(), now=now)


def test_arguments_mean_what_one_thinks_or_one_line_says_why_not(tmp_path: Path) -> None:
    assert len(navarch.plan(one_by_one(), policy=None, plugin_dirs=str(tmp_path)).binds) == 1
    assert navarch.plan(one_by_one(), scheduler_names="other").binds == []
    with pytest.raises(ValueError, match="plugin_dirs: found 'no-such', expected a directory that exists"):
        navarch.plan(one_by_one(), plugin_dirs="no-such")


@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [
        ("objects", None, "a file, a text, a manifest"),
        ("objects", 7, "a file, a text, a manifest"),
        ("cycles", 0, "a whole number, at least 1"),
        ("cycles", "2", "a whole number, at least 1"),
        ("cycles", True, "a whole number, at least 1"),
        ("policy", 4, "a preset, a path"),
        ("scheduler_names", 5, "a name or names"),
        ("scheduler_names", [5], "a name or names"),
        ("plugin_dirs", 3, "a directory or directories"),
        ("plugin_dirs", [3], "a directory or directories"),
        ("metrics", 5, "a mapping of nodes to their load"),
    ],
)
def test_a_wrong_argument_is_named_in_one_line(argument: str, value: Any, expected: str) -> None:
    given: dict[str, Any] = {"objects": one_by_one(), argument: value}
    with pytest.raises(ValueError, match=f"^{argument}: found .*, expected {expected}") as error:
        navarch.plan(**given)
    assert "\n" not in str(error.value)
