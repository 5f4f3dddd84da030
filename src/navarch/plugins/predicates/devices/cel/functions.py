"""Functions and operators of device expressions, with CEL's rules: no silent conversions, 64-bit integers, errors.

Each one pays the meter for what it reads and writes before it does so: neither time nor memory can outgrow the budget.
"""

from __future__ import annotations

import math
import operator as python
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from navarch.model.label_syntax import parse_int64
from navarch.model.patterns import PatternError, compile_pattern
from navarch.plugins.predicates.devices.cel.cost import Meter
from navarch.plugins.predicates.devices.cel.values import Amount, CelError, CelRuntimeError, Device, Semver, shortened

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


# operators


def equal(meter: Meter, left: Value, right: Value) -> bool:
    """Numbers compare across int and double; any other two types are simply not equal."""
    pairs = [(left, right)]
    while pairs:
        left, right = pairs.pop()
        meter.spend(1)
        if isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pairs += zip(left, right)
        elif isinstance(left, Mapping) and isinstance(right, Mapping):
            meter.spend(len(left))
            if left.keys() != right.keys():
                return False
            pairs += [(left[key], right[key]) for key in left]
        elif _number(left) and _number(right):
            if left != right:
                return False
        elif type(left) is not type(right):
            return False
        else:
            if isinstance(left, str):
                meter.read(min(len(left), len(right)))
            if left != right:
                return False
    return True


def different(meter: Meter, left: Value, right: Value) -> bool:
    return not equal(meter, left, right)


def is_key(value: Value) -> bool:
    """Whether maps may have such a key."""
    return isinstance(value, str | int)


def contained(meter: Meter, item: Value, container: Value) -> bool:
    if isinstance(container, list):
        return any(equal(meter, item, entry) for entry in container)
    if isinstance(container, Mapping):
        return is_key(item) and item in container
    raise no_overload("in", item, container)


def _ordered(symbol: str, test: Callable[[Any, Any], bool]) -> Callable[[Meter, Value, Value], bool]:
    def compare(meter: Meter, left: Value, right: Value) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            meter.read(min(len(left), len(right)))
            return test(left, right)
        if (_number(left) and _number(right)) or (isinstance(left, bool) and isinstance(right, bool)):
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


def _divided(left: float, right: float) -> float:
    if right != 0.0:
        return left / right
    return math.nan if left == 0.0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1.0, right)


_INTEGER: Final[dict[str, Callable[[int, int], int]]] = {
    "+": python.add,
    "-": python.sub,
    "*": python.mul,
    "/": _truncated,
    "%": _remainder,
}
_FLOATING: Final[dict[str, Callable[[float, float], float]]] = {
    "+": python.add,
    "-": python.sub,
    "*": python.mul,
    "/": _divided,
}


def _arithmetic(symbol: str) -> Callable[[Meter, Value, Value], Value]:
    integer, floating = _INTEGER[symbol], _FLOATING.get(symbol)

    def compute(meter: Meter, left: Value, right: Value) -> Value:
        kind = type(left)
        if kind is type(right):
            if kind is int:
                return _whole(integer(left, right))
            if kind is float and floating is not None:
                return floating(left, right)
            if symbol == "+" and kind is str:
                meter.read(len(left) + len(right))
                return left + right
            if symbol == "+" and kind is list:
                meter.spend(len(left) + len(right))
                return left + right
        raise no_overload(f"_{symbol}_", left, right)

    return compute


OPERATORS: Final[dict[str, Callable[[Meter, Value, Value], Value]]] = {
    "==": equal,
    "!=": different,
    "<": _ordered("<", python.lt),
    "<=": _ordered("<=", python.le),
    ">": _ordered(">", python.gt),
    ">=": _ordered(">=", python.ge),
    "in": contained,
    **{symbol: _arithmetic(symbol) for symbol in _INTEGER},
}


def negate(_: Meter, value: Value) -> Value:
    if isinstance(value, float):
        return -value
    if isinstance(value, bool) or not isinstance(value, int):
        raise no_overload("-_", value)
    return _whole(-value)


# functions


def _size(_: Meter, value: Value) -> int:
    if isinstance(value, str | list | Mapping):
        return len(value)
    raise no_overload("size", value)


def _quantity(_: Meter, value: Value) -> Amount:
    if isinstance(value, str):
        return Amount.parse(value)
    raise no_overload("quantity", value)


def _semver(_: Meter, value: Value, normalise: Value = False) -> Semver:
    if isinstance(value, str) and isinstance(normalise, bool):
        return Semver.parse(value, normalise=normalise)
    raise no_overload("semver", value, normalise)


def _parses(name: str, parser: Callable[..., object]) -> Callable[..., bool]:
    def test(meter: Meter, *values: Value) -> bool:
        if not isinstance(values[0], str):
            raise no_overload(name, *values)
        try:
            parser(meter, *values)
        except CelRuntimeError:
            return False
        return True

    return test


def _int(_: Meter, value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise no_overload("int", value)
    if isinstance(value, str):
        number = parse_int64(value) if len(value) <= _LONGEST_NUMBER else None
    else:
        number = int(value) if math.isfinite(value) and int(value) in _INT64 else None
    if number is None:
        raise CelRuntimeError(f"int: cannot convert {_shown(value)}")
    return number


def _double(_: Meter, value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise no_overload("double", value)
    if isinstance(value, str) and (len(value) > _LONGEST_NUMBER or "_" in value):
        raise CelRuntimeError(f"double: cannot convert {shortened(value)}")
    try:
        return float(value)
    except ValueError as error:
        raise CelRuntimeError(f"double: cannot convert {_shown(value)}") from error


def _string(_: Meter, value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise no_overload("string", value)


def _shown(value: Value) -> str:
    return shortened(value) if isinstance(value, str) else repr(value)


_LONGEST_NUMBER: Final = 400
FUNCTIONS: Final[dict[str, tuple[Callable[..., Value], tuple[int, ...]]]] = {
    "size": (_size, (1,)),
    "quantity": (_quantity, (1,)),
    "isQuantity": (_parses("isQuantity", _quantity), (1,)),
    "semver": (_semver, (1, 2)),
    "isSemver": (_parses("isSemver", _semver), (1, 2)),
    "int": (_int, (1,)),
    "double": (_double, (1,)),
    "string": (_string, (1,)),
}


# methods

_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _matches(meter: Meter, text: str, pattern: str) -> bool:
    meter.read(len(pattern))
    try:
        compiled = compile_pattern(pattern)
    except PatternError as error:
        raise CelRuntimeError(f"matches: {shortened(pattern)} is not a pattern: {error}") from None
    meter.spend((1 + len(text) // 10) * (1 + compiled.size // 4))
    return compiled.search(text)


def _reading(function: Callable[..., Value]) -> Callable[..., Value]:
    """A function of strings that reads each of them once."""

    def run(meter: Meter, text: str, *arguments: Value) -> Value:
        meter.read(len(text))
        return function(text, *arguments)

    return run


def _character(_: Meter, text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelRuntimeError(f"charAt: index {at} out of range")
    return text[at : at + 1]


def _substring(meter: Meter, text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise CelRuntimeError(f"substring: [{start}, {end}) out of range")
    meter.read(end - start)
    return text[start:end]


def _searching(function: Callable[..., int]) -> Callable[..., int]:
    """Where one string stands in another; the price is the product, the worst that a search can cost."""

    def run(meter: Meter, text: str, part: str) -> Value:
        meter.spend((1 + len(text) // 10) * (1 + len(part) // 10))
        return function(text, part)

    return run


def _replace(meter: Meter, text: str, old: str, new: str, most: int = -1) -> str:
    meter.spend((1 + len(text) // 10) * (1 + len(old) // 10))
    times = text.count(old) if most < 0 else min(text.count(old), most)
    meter.read(len(text) + times * len(new))
    return text.replace(old, new, most)


def _split(meter: Meter, text: str, separator: str, most: int = -1) -> list[str]:
    """An empty separator splits between characters; `most` is the number of parts, negative for all."""
    meter.spend((1 + len(text) // 10) * (1 + len(separator) // 10))
    meter.spend(text.count(separator))
    if most == 0:
        return []
    if separator:
        return text.split(separator, most - 1 if most > 0 else -1)
    if most < 0 or most >= len(text):
        return list(text)
    return [*text[: most - 1], text[most - 1 :]]


def _join(meter: Meter, items: list[Value], separator: str = "") -> str:
    meter.spend(len(items))
    if not all(isinstance(item, str) for item in items):
        raise no_overload("join", items)
    meter.read(sum(map(len, items)) + len(items) * len(separator))
    return separator.join(items)


def _as_integer(_: Meter, amount: Amount) -> int:
    if not amount.whole:
        raise CelRuntimeError(f"asInteger: {amount} is not a whole number")
    return _whole(amount.nano // 10**9)


def _three_way(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _free(function: Callable[..., Value]) -> Callable[..., Value]:
    """A function whose price is the instruction alone."""
    return lambda _, *values: function(*values)


Overloads: TypeAlias = tuple[tuple[type, ...], ...]
_COMPARING: Final[dict[str, tuple[Callable[..., Value], Overloads]]] = {}
for _kind in (Amount, Semver):
    _COMPARING[f"{_kind.__name__}.compareTo"] = (_free(_three_way), ((_kind,),))
    _COMPARING[f"{_kind.__name__}.isGreaterThan"] = (_free(python.gt), ((_kind,),))
    _COMPARING[f"{_kind.__name__}.isLessThan"] = (_free(python.lt), ((_kind,),))

METHODS: Final[dict[str, tuple[Callable[..., Value], Overloads]]] = {
    "str.startsWith": (_reading(str.startswith), ((str,),)),
    "str.endsWith": (_reading(str.endswith), ((str,),)),
    "str.contains": (_searching(python.contains), ((str,),)),
    "str.matches": (_matches, ((str,),)),
    "str.size": (_free(len), ((),)),
    "str.lowerAscii": (_reading(lambda text: text.translate(_LOWER)), ((),)),
    "str.upperAscii": (_reading(lambda text: text.translate(_UPPER)), ((),)),
    "str.trim": (_reading(str.strip), ((),)),
    "str.charAt": (_character, ((int,),)),
    "str.indexOf": (_searching(str.find), ((str,),)),
    "str.lastIndexOf": (_searching(str.rfind), ((str,),)),
    "str.replace": (_replace, ((str, str), (str, str, int))),
    "str.split": (_split, ((str,), (str, int))),
    "str.substring": (_substring, ((int,), (int, int))),
    "list.size": (_free(len), ((),)),
    "list.join": (_join, ((), (str,))),
    "map.size": (_free(len), ((),)),
    "Semver.major": (_free(lambda version: version.major), ((),)),
    "Semver.minor": (_free(lambda version: version.minor), ((),)),
    "Semver.patch": (_free(lambda version: version.patch), ((),)),
    "Amount.add": (_free(lambda left, right: Amount(left.nano + right.nano)), ((Amount,),)),
    "Amount.sub": (_free(lambda left, right: Amount(left.nano - right.nano)), ((Amount,),)),
    "Amount.sign": (_free(lambda amount: _three_way(amount.nano, 0)), ((),)),
    "Amount.isInteger": (_free(lambda amount: amount.whole), ((),)),
    "Amount.asInteger": (_as_integer, ((),)),
    "Amount.asApproximateFloat": (_free(lambda amount: amount.nano / 1e9), ((),)),
    **_COMPARING,
}
METHOD_NAMES: Final = frozenset(name.partition(".")[2] for name in METHODS)


def method(name: str) -> Callable[..., Value]:
    """The method of this name, whatever it is called on; the types decide when it runs."""

    def run(meter: Meter, target: Value, *arguments: Value) -> Value:
        owner = "map" if isinstance(target, Mapping) else type(target).__name__
        entry = METHODS.get(f"{owner}.{name}")
        if entry is not None and tuple(map(type, arguments)) in entry[1]:
            return entry[0](meter, target, *arguments)
        raise no_overload(f"{type_name(target)}.{name}", *arguments)

    return run


def function(name: str, count: int, source: str) -> Callable[..., Value]:
    """The function of this name with so many arguments; CelError if there is none."""
    if name not in FUNCTIONS:
        raise CelError(f"expression {source}: function {name}() is not supported")
    if count not in FUNCTIONS[name][1]:
        raise CelError(f"expression {source}: {name}() was given {count} arguments")
    return FUNCTIONS[name][0]
