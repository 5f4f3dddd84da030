"""Functions and operators of device expressions, with CEL's rules: no silent conversions, 64-bit integers, errors."""

from __future__ import annotations

import math
import operator as python
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from navarch.model.label_syntax import parse_int64
from navarch.plugins.predicates.devices.cel.values import Amount, CelError, CelRuntimeError, Device, Semver

Value: TypeAlias = Any
_INT64: Final = range(-(1 << 63), 1 << 63)


def type_name(value: Value) -> str:
    """How CEL calls the type of a value."""
    names = {bool: "bool", int: "int", float: "double", str: "string", list: "list", type(None): "null_type"}
    if isinstance(value, Mapping):
        return "map"
    ours: dict[type, str] = {Amount: "quantity", Semver: "semver", Device: "device"}
    return names.get(type(value)) or ours[type(value)]


def no_overload(function: str, *values: Value) -> CelRuntimeError:
    return CelRuntimeError(f"no such overload: {function}({', '.join(type_name(value) for value in values)})")


def _number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Value, right: Value) -> bool:
    """Numbers compare across int and double; any other two types are simply not equal."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if _number(left) and _number(right):
        return bool(left == right)
    return type(left) is type(right) and bool(left == right)


def contained(item: Value, container: Value) -> bool:
    if isinstance(container, list):
        return any(equal(item, entry) for entry in container)
    if isinstance(container, Mapping):
        return isinstance(item, str | int | bool) and item in container
    raise no_overload("in", item, container)


def _ordered(symbol: str, test: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def compare(left: Value, right: Value) -> bool:
        if (_number(left) and _number(right)) or (type(left) is type(right) and isinstance(left, str | bool)):
            return test(left, right)
        raise no_overload(f"_{symbol}_", left, right)

    return compare


def _whole(value: int) -> int:
    if value not in _INT64:
        raise CelRuntimeError("integer overflow")
    return value


def _truncated(left: int, right: int) -> int:
    if right == 0:
        raise CelRuntimeError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    return left - right * _truncated(left, right)


def arithmetic(symbol: str, left: Value, right: Value) -> Value:
    if _number(left) and type(left) is type(right):
        if isinstance(left, int):
            integer = {"+": python.add, "-": python.sub, "*": python.mul, "/": _truncated, "%": _remainder}
            return _whole(integer[symbol](left, right))
        if symbol == "/" and right == 0.0:
            return float("nan") if left == 0.0 or left != left else float("inf") * (1 if left > 0 else -1)
        if symbol != "%":
            floating = {"+": python.add, "-": python.sub, "*": python.mul, "/": python.truediv}
            return floating[symbol](left, right)
    if symbol == "+" and type(left) is type(right) and isinstance(left, str | list):
        return left + right
    raise no_overload(f"_{symbol}_", left, right)


COMPARISONS: Final[dict[str, Callable[[Value, Value], bool]]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": _ordered("<", python.lt),
    "<=": _ordered("<=", python.le),
    ">": _ordered(">", python.gt),
    ">=": _ordered(">=", python.ge),
    "in": contained,
}


def _size(value: Value) -> int:
    if isinstance(value, str | list | Mapping):
        return len(value)
    raise no_overload("size", value)


def _quantity(value: Value) -> Amount:
    if isinstance(value, str):
        return Amount.parse(value)
    raise no_overload("quantity", value)


def _semver(value: Value, normalise: Value = False) -> Semver:
    if isinstance(value, str) and isinstance(normalise, bool):
        return Semver.parse(value, normalise=normalise)
    raise no_overload("semver", value, normalise)


def _parses(parser: Callable[..., object]) -> Callable[..., bool]:
    def test(*values: Value) -> bool:
        if not isinstance(values[0], str):
            raise no_overload(f"is{parser.__name__.removeprefix('_').title()}", *values)
        try:
            parser(*values)
        except CelRuntimeError:
            return False
        return True

    return test


def _int(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise no_overload("int", value)
    if isinstance(value, str):
        number = parse_int64(value)
    else:
        number = int(value) if math.isfinite(value) and int(value) in _INT64 else None
    if number is None:
        raise CelRuntimeError(f"int: cannot convert {value!r}")
    return number


def _double(value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise no_overload("double", value)
    try:
        return float(value)
    except ValueError as error:
        raise CelRuntimeError(f"double: cannot convert {value!r}") from error


def _string(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise no_overload("string", value)


FUNCTIONS: Final[dict[str, tuple[Callable[..., Value], tuple[int, ...]]]] = {
    "size": (_size, (1,)),
    "quantity": (_quantity, (1,)),
    "isQuantity": (_parses(_quantity), (1,)),
    "semver": (_semver, (1, 2)),
    "isSemver": (_parses(_semver), (1, 2)),
    "int": (_int, (1,)),
    "double": (_double, (1,)),
    "string": (_string, (1,)),
}


def _matches(text: str, pattern: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise CelRuntimeError(f"matches: {pattern!r} is not a pattern: {error}") from error


def _lower(text: str) -> str:
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def _upper(text: str) -> str:
    return "".join(chr(ord(c) - 32) if "a" <= c <= "z" else c for c in text)


def _character(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelRuntimeError(f"charAt: index {at} out of range")
    return text[at : at + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise CelRuntimeError(f"substring: [{start}, {end}) out of range")
    return text[start:end]


def _join(items: list[Value], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise no_overload("join", items)
    return separator.join(items)


def _as_integer(amount: Amount) -> int:
    if not amount.whole:
        raise CelRuntimeError(f"asInteger: {amount} is not a whole number")
    return _whole(amount.nano // 10**9)


def _three_way(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


_COMPARING: Final[dict[str, tuple[Callable[..., Value], tuple[tuple[type, ...], ...]]]] = {}
for _kind in (Amount, Semver):
    _COMPARING[f"{_kind.__name__}.compareTo"] = (_three_way, ((_kind,),))
    _COMPARING[f"{_kind.__name__}.isGreaterThan"] = (python.gt, ((_kind,),))
    _COMPARING[f"{_kind.__name__}.isLessThan"] = (python.lt, ((_kind,),))

METHODS: Final[dict[str, tuple[Callable[..., Value], tuple[tuple[type, ...], ...]]]] = {
    "str.startsWith": (str.startswith, ((str,),)),
    "str.endsWith": (str.endswith, ((str,),)),
    "str.contains": (python.contains, ((str,),)),
    "str.matches": (_matches, ((str,),)),
    "str.size": (len, ((),)),
    "str.lowerAscii": (_lower, ((),)),
    "str.upperAscii": (_upper, ((),)),
    "str.trim": (str.strip, ((),)),
    "str.charAt": (_character, ((int,),)),
    "str.indexOf": (str.find, ((str,),)),
    "str.lastIndexOf": (str.rfind, ((str,),)),
    "str.replace": (str.replace, ((str, str), (str, str, int))),
    "str.split": (str.split, ((str,),)),
    "str.substring": (_substring, ((int,), (int, int))),
    "list.size": (len, ((),)),
    "list.join": (_join, ((), (str,))),
    "map.size": (len, ((),)),
    "Semver.major": (lambda version: version.major, ((),)),
    "Semver.minor": (lambda version: version.minor, ((),)),
    "Semver.patch": (lambda version: version.patch, ((),)),
    "Amount.add": (lambda left, right: Amount(left.nano + right.nano), ((Amount,),)),
    "Amount.sub": (lambda left, right: Amount(left.nano - right.nano), ((Amount,),)),
    "Amount.sign": (lambda amount: _three_way(amount.nano, 0), ((),)),
    "Amount.isInteger": (lambda amount: amount.whole, ((),)),
    "Amount.asInteger": (_as_integer, ((),)),
    "Amount.asApproximateFloat": (lambda amount: amount.nano / 1e9, ((),)),
    **_COMPARING,
}
METHOD_NAMES: Final = frozenset(name.partition(".")[2] for name in METHODS)


def call_method(name: str, target: Value, arguments: list[Value]) -> Value:
    owner = "map" if isinstance(target, Mapping) else type(target).__name__
    entry = METHODS.get(f"{owner}.{name}")
    if entry is not None:
        function, overloads = entry
        if any(tuple(map(type, arguments)) == overload for overload in overloads):
            return function(target, *arguments)
    raise no_overload(f"{type_name(target)}.{name}", *arguments)


def call_function(name: str, arguments: list[Value]) -> Value:
    return FUNCTIONS[name][0](*arguments)


def check_function(name: str, count: int, source: str) -> None:
    if name not in FUNCTIONS:
        raise CelError(f"expression {source!r}: function {name}() is not supported")
    if count not in FUNCTIONS[name][1]:
        raise CelError(f"expression {source!r}: {name}() was given {count} arguments")
