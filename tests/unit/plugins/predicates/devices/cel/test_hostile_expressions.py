"""Expressions that the API accepts and that would stop a scheduler which evaluates them without care."""

from __future__ import annotations

import pytest

from navarch.plugins.predicates.devices.cel.cost import LIMIT, Meter
from navarch.plugins.predicates.devices.cel.selector import CelCostError, CelError, CelRuntimeError, Device, compile_selector

GPU = Device.read("d", {"attributes": {"model": {"string": "a"}}})


def bindings(first: str, again: str, count: int, last: str) -> str:
    """cel.bind(a0, first, cel.bind(a1, again(a0), ... last ...))"""
    texts = [f"cel.bind(a0,{first},"] + [f"cel.bind(a{i},{again.format(f'a{i - 1}')}," for i in range(1, count)]
    return "".join(texts) + last.format(f"a{count - 1}") + ")" * count


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ('"x".split("").size() > 0', True),
        ('"".split("").size() == 0 && "abc".split("", 2) == ["a", "bc"] && "a-b-c".split("-", 2) == ["a", "b-c"]', True),
        ('"a-b".split("-", 0).size() == 0 && "a-b".split("-", -1).size() == 2', True),
        ("(" * 5000 + "true" + ")" * 5000, True),
        ("true||" * 1500 + "false", True),
        ("false||" * 1400 + "true", True),
        ("true&&" * 1500 + "true", True),
        ("!" * 9999 + "true", False),
        ("!" * 9998 + "true", True),
        ("!(" * 3000 + "true" + ")" * 3000, True),
        ("-" * 9000 + "1 == 1", True),
        ("true?true:" * 1000 + "false", True),
        ("1" + "+1" * 5000 + " == 5001", True),
        ("[" * 4000 + "]" * 4000 + " == []", False),
        ("[" * 2000 + "]" * 2000 + " == " + "[" * 2000 + "]" * 2000, True),
        ("-9223372036854775808 < 0", True),
        (bindings("[1]", "[{0}]", 200, "{0}.size() == 1"), True),
    ],
)
def test_depth_is_bounded_by_length_alone(expression: str, answer: bool) -> None:
    assert compile_selector(expression)(GPU) is answer


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)+$", "(.*)*x", "(a|aa)+$", "([a-z]+)*[0-9]"])
def test_patterns_take_time_in_proportion_to_the_text(pattern: str) -> None:
    assert compile_selector(f'"{"a" * 5000}!".matches("{pattern}")')(GPU) is False


@pytest.mark.parametrize(
    "expression",
    [
        "[1,2,3,4,5,6,7,8,9,0].all(x, " * 8 + "true" + ")" * 8,
        bindings('"xx"', "{0} + {0}", 300, "{0}.size() > 0"),
        bindings("[1]", "{0} + {0}", 300, "{0}.size() > 0"),
        bindings("[1]", "[{0}, {0}]", 300, "{0} == {0}"),
        '"aaaaaaaaaa"' + '.replace("", "bbbbbbbbbb")' * 12 + ".size() > 0",
        f'"{"a" * 4000}".matches("{"(a{100}){10}" * 20}")',
        f"[{','.join('1' * 1000)}].all(x, [{','.join('1' * 2000)}].all(y, y == 1))",
        "[1,2,3,4,5,6,7,8,9,0].all(x, " * 8 + "true" + ")" * 8 + " || true",
    ],
)
def test_expensive_expressions_end(expression: str) -> None:
    meter = Meter()
    with pytest.raises(CelCostError, match="costs more than 1000000 steps"):
        compile_selector(expression)(GPU, meter)
    assert meter.spent > LIMIT


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("{[1]: 1}.size() == 1", "unsupported key type: list"),
        ("device.attributes[[1]].size() == 0", "no such overload"),
        ("device.attributes[1.5].size() == 0", "no such overload"),
        ("cel.bind(d, device, d.name == 'x')", "device has no field 'name'"),
        (f'quantity("{"1" * 5000}") == quantity("1")', "5000 characters"),
        (f'semver("{"1" * 5000}.0.0") == semver("1.0.0")', "is not a semantic version"),
        (f'int("{"1" * 5000}") == 1', "int: cannot convert"),
        (f'double("{"1" * 5000}") == 1.0', "double: cannot convert"),
        ('double("1_0") == 10.0', "double: cannot convert"),
        ("-(-9223372036854775807 - 1) > 0", "integer overflow"),
    ],
)
def test_failures_are_the_evaluators_own(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError, match=message):
        compile_selector(expression)(GPU)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1" * 5000 + " == 1", "does not fit into 64 bits"),
        ("9223372036854775808 > 0", "does not fit into 64 bits"),
        ("--9223372036854775808 > 0", "does not fit into 64 bits"),
        ("0x" + "f" * 5000 + " > 0", "does not fit into 64 bits"),
        ('"\\U00110000" == ""', "is not a character"),
        ('"\\uD800" == ""', "is not a character"),
        ("true" + " " * 10240, "10244 characters, expected at most 10240"),
        ("true ? true ? true : true : true", "expected ':'"),
        ("[1, 2", r"expected '\]'"),
        ("{1: 2, 3}.size() > 0", "expected ':'"),
        ("true ? 1", "expected ':'"),
        ("f(1,,2)", "expected a value"),
        ("(1]", r"expected '\)'"),
        ("true)", "expected an operator or the end"),
        ("(" * 5000, "expected a value"),
    ],
)
def test_unusable_texts_are_refused_when_read(expression: str, message: str) -> None:
    for _ in range(2):  # the second time from the cache
        with pytest.raises(CelError, match=message):
            compile_selector(expression)


def test_messages_stay_short() -> None:
    with pytest.raises(CelError) as caught:
        compile_selector("!" * 10000)
    assert len(str(caught.value)) < 400
