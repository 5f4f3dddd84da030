"""Filters, order and parts of the list of jobs."""

from __future__ import annotations

from typing import Any

import pytest
from multidict import MultiDict

from navarch.model.spec import QueueSpec
from navarch.web.errors import RequestError
from navarch.web.tables.job_filter import JobFilter, Part, read_filter, read_part
from navarch.web.tables.jobs import COLUMNS, NUMBER, Row

QUEUES = {"root": QueueSpec("root"), "ml": QueueSpec("ml", parent="root"), "cv": QueueSpec("cv", parent="root")}
LABELS = {"a/x": [{"user": "jane"}, {"app": "train"}]}


def row(key: str, **values: Any) -> Row:
    found: dict[str, Any] = {**dict.fromkeys(COLUMNS, ""), "id": key, "created": None, "gpus": 0, **values}
    namespace, _, name = key.partition("/")
    return tuple({**found, "namespace": namespace, "name": name}[column] for column in COLUMNS)


def matches(given: JobFilter, found: Row) -> bool:
    return given.matches(found, QUEUES, lambda key: LABELS.get(key, []))


def test_each_filter_narrows() -> None:
    found = row("a/x", queue="ml", state="waiting", cause="No room")
    assert matches(JobFilter(), found)
    assert matches(JobFilter(namespaces=frozenset({"a", "b"})), found)
    assert not matches(JobFilter(namespaces=frozenset({"b"})), found)
    assert matches(JobFilter(queue="root"), found), "queues below count"
    assert not matches(JobFilter(queue="cv"), found)
    assert matches(JobFilter(states=frozenset({"waiting"})), found)
    assert not matches(JobFilter(states=frozenset({"running"})), found)
    for text in ("a/x", "no ro", "ml"):
        assert matches(JobFilter(text=text), found)
    assert not matches(JobFilter(text="zz"), found)
    assert matches(JobFilter(labels=(("user", "jane"), ("app", None))), found)
    assert not matches(JobFilter(labels=(("user", "joe"),)), found)


def test_rows_are_sorted_by_a_column_then_by_id_and_rows_without_a_value_come_last() -> None:
    rows = [row("a/3", gpus=1, created=5.0), row("a/1", gpus=1, created=None), row("a/2", gpus=2, created=9.0)]

    def ids(part: Part) -> list[str]:
        return [each[0] for each in part.of(rows)]

    assert ids(Part()) == ["a/1", "a/2", "a/3"]
    assert ids(Part(NUMBER["gpus"])) == ["a/1", "a/3", "a/2"]
    assert ids(Part(NUMBER["gpus"], descending=True)) == ["a/2", "a/1", "a/3"]
    assert ids(Part(NUMBER["created"], descending=True)) == ["a/2", "a/3", "a/1"]
    assert ids(Part(NUMBER["created"], offset=1, limit=1)) == ["a/2"]
    assert ids(Part(offset=9)) == []


def test_queries_are_read_and_checked() -> None:
    query = MultiDict(
        [("namespace", "a"), ("namespace", "b"), ("text", "BeRT"), ("label", "k=v=w"), ("label", "k"), ("state", "failed")]
    )
    assert read_filter(query) == JobFilter(frozenset("ab"), "", frozenset({"failed"}), "bert", (("k", "v=w"), ("k", None)))
    assert read_part(MultiDict({"sort": "-gpus", "limit": "5"})) == Part(NUMBER["gpus"], True, 0, 5)
    for wrong in ({"limit": "1e3"}, {"offset": "-1"}, {"limit": "9" * 12}, {"sort": "--gpus"}, {"limit": "²"}):
        with pytest.raises(RequestError):
            read_part(MultiDict(wrong))
