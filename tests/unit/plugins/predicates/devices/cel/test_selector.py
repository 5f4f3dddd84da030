"""Device selectors: what drivers write, what it answers, and how the rest is refused."""

from __future__ import annotations

import operator

import pytest

from navarch.plugins.predicates.devices.cel.selector import CelError, CelRuntimeError, Device, compile_selector
from navarch.plugins.predicates.devices.cel.values import Amount, Semver

GPU = Device.read(
    "gpu.example.com",
    {
        "name": "gpu-0",
        "attributes": {
            "model": {"string": "LATEST-GPU-MODEL"},
            "index": {"int": 3},
            "healthy": {"bool": True},
            "driverVersion": {"version": "1.12.0-rc.1"},
            "other.example.com/rack": {"string": "r1"},
        },
        "capacity": {"memory": {"value": "80Gi"}, "other.example.com/slots": {"value": "7"}},
    },
)


@pytest.mark.parametrize(
    "expression",
    [
        "device.driver == 'gpu.example.com'",
        'device.attributes["gpu.example.com"].healthy',
        "device.attributes['gpu.example.com']['model'] == \"LATEST-GPU-MODEL\"",
        'device.attributes["gpu.example.com"].model.lowerAscii().matches("^latest-.*model$")',
        'device.attributes["gpu.example.com"].model.startsWith("LATEST") && !device.allowMultipleAllocations',
        'device.attributes["gpu.example.com"].index in [1, 3]',
        'device.attributes["gpu.example.com"].index % 2 == 1 && -7 / 2 == -3 && -7 % 2 == -1',
        'device.attributes["other.example.com"].rack == "r1"',
        '"rack" in device.attributes["other.example.com"]',
        '!("nobody.example.com" in device.attributes)',
        '!("x" in device.attributes["nobody.example.com"])',
        '!has(device.attributes["nobody.example.com"].x) && has(device.attributes["gpu.example.com"].model)',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) == 0',
        'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))',
        'device.capacity["gpu.example.com"].memory == quantity("81920Mi")',
        'quantity("1500m").isInteger() == false && quantity("2k").asInteger() == 2000',
        'quantity("1").add(quantity("500m")).sub(quantity("1500m")).sign() == 0',
        'device.attributes["gpu.example.com"].driverVersion.isLessThan(semver("1.12.0"))',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.12.0-alpha"))',
        'semver("v1.2", true).compareTo(semver("1.2.0")) == 0 && semver("1.2.3").minor() == 2',
        'isSemver("1.0.0") && !isSemver("1.0") && isQuantity("1Ki") && !isQuantity("1ki")',
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.healthy && gpu.index > 2)',
        "[1, 2, 3].exists(x, x == 2) && [1, 2].all(x, x > 0) && [1, 2].exists_one(x, x > 1)",
        '["a", "b"].map(x, x + "!") == ["a!", "b!"] && [1, 2, 3].filter(x, x > 1).size() == 2',
        '(device.driver == "x" ? "no" : "yes") == "yes"',
        '{"a": 1}["a"] == 1 && {"a": 1}.size() == 1 && size("abc") == 3',
        '"a,b".split(",").join("-") == "a-b" && "abc".substring(1, 2) == "b" && "abc".indexOf("c") == 2',
        "1 == 1.0 && 1 != true && '1' != 1",
        'r"\\d" == "\\\\d" && "\\u0041\\x42" == "AB" && """a"b""" == "a\\"b"',
        "0x10 == 16 && 1e1 == 10.0 // sixteen, ten",
        'int("7") == 7 && double(1) == 1.0 && string(true) == "true"',
    ],
)
def test_true_of_the_device(expression: str) -> None:
    assert compile_selector(expression)(GPU) is True


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com" || device.attributes["nobody.example.com"].x',
        'device.attributes["nobody.example.com"].x || true',
        '!(device.attributes["nobody.example.com"].x && false)',
        "[0, 1].exists(x, 1 / x == 1)",
    ],
)
def test_one_side_may_settle_what_the_other_cannot_answer(expression: str) -> None:
    assert compile_selector(expression)(GPU) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('device.attributes["nobody.example.com"].x == 1', "no such key: x"),
        ('device.attributes["gpu.example.com"].gone', "no such key: gone"),
        ('device.attributes["gpu.example.com"].model', "must give a bool, found string"),
        ('device.attributes["gpu.example.com"].model > 1', r"no such overload: _>_\(string, int\)"),
        ('device.attributes["gpu.example.com"].index.startsWith("a")', "no such overload"),
        ('quantity("many") == quantity("1")', "is not a quantity"),
        ('semver("1") == semver("1.0.0")', "is not a semantic version"),
        ('int("1_0") == 10', "int: cannot convert"),
        ("1 / 0 == 1", "division by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("[1][1] == 1", "out of range"),
        ('"a".matches("(")', "is not a pattern"),
        ('true && device.attributes["nobody.example.com"].x', "no such key"),
    ],
)
def test_device_that_gives_no_answer(expression: str, message: str) -> None:
    with pytest.raises(CelRuntimeError, match=message):
        compile_selector(expression)(GPU)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("device.name == 'gpu-0'", "device has no field 'name'; it has driver, attributes"),
        ("pod.name == 'x'", "undeclared name 'pod'"),
        ("device.?driver == 'x'", "optional selection"),
        ("1u == 1u", "literal at 0 is not supported"),
        ("b'x' == b'x'", "literal at 0 is not supported"),
        ("now() > 1", r"function now\(\) is not supported"),
        ("device.driver.hash() == 1", r"method .hash\(\) is not supported"),
        ("quantity() == 1", "was given 0 arguments"),
        ("cel.block([1], true)", "only cel.bind"),
        ("has(device)", "takes one field selection"),
        ("device.driver ==", "found the end at 16, expected a value"),
        ("(true", r"expected '\)'"),
        ("true true", "expected an operator or the end"),
        ("a # b", "unexpected character '#' at 2"),
        ("", "expected a value"),
        ("'\\q' == 'q'", "unknown escape"),
    ],
)
def test_expression_that_is_refused_when_read(expression: str, message: str) -> None:
    with pytest.raises(CelError, match=message):
        compile_selector(expression)


def test_versions_are_ordered_as_semver_orders_them() -> None:
    texts = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-2.x", "1.0.0", "1.0.1", "1.10.0"]
    versions = [Semver.parse(text) for text in texts]
    assert sorted(versions, key=lambda v: v) == [versions[3], *versions[:3], *versions[4:]]
    assert Semver.parse("1.0.0+a") == Semver.parse("1.0.0+b")
    assert operator.ne(Semver.parse("1.0.0+a"), Semver.parse("1.0.0+b")) is False
    assert versions[0] <= versions[1] and versions[1] >= versions[0] and versions[1] > versions[0]
    assert len({Semver.parse("1.0.0+a"), Semver.parse("1.0.0+b")}) == 1


def test_older_slices_wrap_the_device() -> None:
    device = Device.read("d", {"name": "x", "basic": {"attributes": {"a": {"bool": False}}, "capacity": {"m": "1Gi"}}})
    assert device.attributes == {"d": {"a": False}}
    assert device.capacity == {"d": {"m": Amount.parse("1Gi")}}


def test_attribute_without_a_value_is_named() -> None:
    with pytest.raises(CelError, match=r"attribute 'a': found \{\}, expected one of"):
        Device.read("d", {"attributes": {"a": {}}})
