"""A plan as people see it in Python: properties, a short text, HTML and data frames."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import navarch
from navarch.offline import plan_tables
from navarch.testing.builders import node, pod


def planned() -> navarch.Plan:
    return navarch.plan([node("n1").cpu("2"), pod("a").cpu("1"), pod("b").cpu("4")])


def test_binds_and_what_waits() -> None:
    result = planned()
    assert [(bind.pod, bind.node) for bind in result.binds] == [("default/a", "n1")]
    assert result.evictions == []
    (waiting,) = result.pending
    assert waiting.job.endswith("b")
    assert waiting.reasons


def test_the_text_is_short() -> None:
    assert repr(planned()) == "<Plan: 1 pod bound, 0 evicted, 1 job pending>"


def test_text_of_objects_is_escaped_in_html() -> None:
    result = planned()
    result.records[0].binds[:] = [type(result.binds[0])("default/<img src=x>", "n1", "u")]
    page = result._repr_html_()
    assert "&lt;img src=x&gt;" in page
    assert "<img" not in page


class Frame:
    def __init__(self, columns: dict[str, list[object]]) -> None:
        self.columns = columns


def test_a_data_frame_of_the_library_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = ModuleType("polars")
    vars(frames)["DataFrame"] = Frame
    monkeypatch.setitem(sys.modules, "polars", frames)
    monkeypatch.setattr(plan_tables, "find_spec", lambda name: name == "polars" or None)
    frame = planned().to_dataframe()
    assert frame.columns["decision"] == ["bind", "wait"]
    assert frame.columns["pod"] == ["default/a", ""]


def test_without_such_a_library_the_error_names_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_tables, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install pandas"):
        planned().to_dataframe()
