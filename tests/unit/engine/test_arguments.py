"""Reading argument values the strict way and the ways of the systems that files come from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.engine.arguments import Argument, Arguments, Kind, Reading, WrongKind, duration, find, read_kind


@pytest.mark.parametrize(
    ("kind", "value", "reading", "expected"),
    [
        ("int", 3, "strict", 3),
        ("float", 3, "strict", 3.0),
        ("bool", "true", "yaml", True),
        ("bool", "F", "yaml", False),
        ("float", 2, "yaml", 2.0),
        ("int", "3", "text", 3),
        ("bool", True, "text", True),
        ("str", 5, "text", "5"),
        ("float", "0.5", "text", 0.5),
        ("duration", "1m30s", "strict", 90.0),
        ("list", ("a",), "strict", ["a"]),
        ("mapping", {"a": 1}, "text", {"a": 1}),
    ],
)
def test_values_of_each_kind_are_read(kind: Kind, value: object, reading: Reading, expected: object) -> None:
    found = read_kind(kind, value, reading)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "reading"),
    [
        ("int", "3", "strict"),
        ("int", "3", "yaml"),
        ("int", 3.0, "yaml"),
        ("int", True, "strict"),
        ("bool", "true", "strict"),
        ("bool", "yes", "yaml"),
        ("float", "0.5", "yaml"),
        ("str", 5, "strict"),
        ("duration", 5, "strict"),
        ("duration", "5", "text"),
        ("duration", "1d", "strict"),
        ("mapping", [], "strict"),
        ("int", None, "text"),
    ],
)
def test_values_of_the_wrong_kind_are_refused(kind: Kind, value: object, reading: Reading) -> None:
    with pytest.raises(WrongKind, match=r"^found .*, expected "):
        read_kind(kind, value, reading)


def test_a_value_outside_of_choices_or_below_the_minimum_is_refused() -> None:
    with pytest.raises(WrongKind, match="expected one of a, b"):
        Argument("x", "str", choices=("a", "b")).read("c")
    with pytest.raises(WrongKind, match="expected 1 or more"):
        Argument("x", "int", minimum=1).read(0)


@given(st.integers(0, 10_000), st.integers(0, 59), st.integers(0, 59))
def test_durations_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert duration(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


def test_the_most_exact_declaration_covers_a_name() -> None:
    declared = (Argument("a.*", "int"), Argument("a.b.*", "str"), Argument("a.b.c", "bool"))
    assert [find(declared, name) for name in ("a.x", "a.b.x", "a.b.c")] == list(declared)
    assert find(declared, "a.") is None and find(declared, "b") is None


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda a: a.integer("n"), 1),
        (lambda a: a.number("n"), 1.0),
        (lambda a: a.flag("on"), True),
        (lambda a: a.text("s"), ""),
    ],
)
def test_defaults_come_from_the_declaration(read: Callable[[Arguments], object], expected: object) -> None:
    declared = (Argument("n", "int", 1), Argument("on", "bool", False), Argument("s", "str"))
    assert read(Arguments(declared, {"on": True})) == expected


def test_an_undeclared_name_is_a_bug_of_the_plugin() -> None:
    with pytest.raises(KeyError):
        Arguments((), {})["nope"]
