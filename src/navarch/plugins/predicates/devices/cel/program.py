"""Device selectors: the part of CEL that drivers' selectors use, compiled to Python closures.

A selector is read once and then asked of every device. `device.driver`, `device.attributes[domain].name`,
`device.capacity[domain].name` and `device.allowMultipleAllocations` are known; so are comparisons, boolean operators,
`in`, `has`, `? :`, arithmetic, the string functions, `quantity()`, `semver()`, `cel.bind` and the list macros `all`,
`exists`, `exists_one`, `filter` and `map`. What is not known is refused when the expression is read.

>>> test = compile_selector('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0')
>>> test(Device.read("gpu.example.com", {"capacity": {"memory": {"value": "80Gi"}}}))
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from navarch.plugins.predicates.devices.cel import functions
from navarch.plugins.predicates.devices.cel.syntax import (
    Binary,
    Call,
    Conditional,
    Entries,
    Index,
    Literal,
    Name,
    Select,
    Sequence,
    Tree,
    Unary,
    parse,
)
from navarch.plugins.predicates.devices.cel.values import CelError, CelRuntimeError, Device, Domains

__all__ = ["CelError", "CelRuntimeError", "Device", "compile_selector"]

Environment: TypeAlias = Mapping[str, Any]
Evaluator: TypeAlias = Callable[[Environment], Any]

_DEVICE_FIELDS: Final[dict[str, Callable[[Device], Any]]] = {
    "driver": lambda device: device.driver,
    "attributes": lambda device: device.attributes,
    "capacity": lambda device: device.capacity,
    "allowMultipleAllocations": lambda device: device.allow_multiple,
}
_MACROS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})


@lru_cache(maxsize=4096)
def compile_selector(source: str) -> Callable[[Device], bool]:
    """A test of one device. CelError now if the text is unusable; CelRuntimeError later if a device lacks a field."""
    evaluate = _Compiler(source).build(parse(source), frozenset({"device"}))

    def test(device: Device) -> bool:
        return _truth(evaluate({"device": device}), "the expression")

    return test


def _truth(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise CelRuntimeError(f"{what} must give a bool, found {functions.type_name(value)}")
    return value


def _field(value: Any, name: str) -> Any:
    if isinstance(value, Device):
        return _DEVICE_FIELDS[name](value)
    if not isinstance(value, Mapping):
        raise CelRuntimeError(f"{functions.type_name(value)} has no field {name!r}")
    if name not in value and not isinstance(value, Domains):
        raise CelRuntimeError(f"no such key: {name}")
    return value[name]


def _item(value: Any, key: Any) -> Any:
    if isinstance(value, list):
        if isinstance(key, bool) or not isinstance(key, int):
            raise functions.no_overload("_[_]", value, key)
        if not 0 <= key < len(value):
            raise CelRuntimeError(f"index {key} out of range")
        return value[key]
    if not isinstance(value, Mapping):
        raise functions.no_overload("_[_]", value, key)
    if not functions.contained(key, value) and not isinstance(value, Domains):
        raise CelRuntimeError(f"no such key: {key}")
    return value[key]


class _Compiler:
    def __init__(self, source: str) -> None:
        self.source = source

    def fail(self, what: str) -> CelError:
        return CelError(f"expression {self.source!r}: {what}")

    def build(self, tree: Tree, names: frozenset[str]) -> Evaluator:
        match tree:
            case Literal(value):
                return lambda _: value
            case Name(name):
                if name not in names:
                    raise self.fail(f"undeclared name {name!r}")
                return lambda environment: environment[name]
            case Select(operand, field):
                return self.select(operand, field, names)
            case Index(operand, key):
                value_of, key_of = self.build(operand, names), self.build(key, names)
                return lambda environment: _item(value_of(environment), key_of(environment))
            case Unary(operator, operand):
                return self.unary(operator, self.build(operand, names))
            case Binary(operator, left, right):
                return self.binary(operator, self.build(left, names), self.build(right, names))
            case Conditional(test, then, otherwise):
                decide, yes, no = (self.build(part, names) for part in (test, then, otherwise))
                return lambda environment: (yes if _truth(decide(environment), "? :") else no)(environment)
            case Sequence(items):
                parts = [self.build(item, names) for item in items]
                return lambda environment: [part(environment) for part in parts]
            case Entries(pairs):
                built = [(self.build(key, names), self.build(value, names)) for key, value in pairs]
                return lambda environment: {key(environment): value(environment) for key, value in built}
            case Call(target, function, arguments):
                return self.call(target, function, arguments, names)

    def select(self, operand: Tree, field: str, names: frozenset[str]) -> Evaluator:
        if operand == Name("device") and field not in _DEVICE_FIELDS:
            raise self.fail(f"device has no field {field!r}; it has {', '.join(_DEVICE_FIELDS)}")
        value_of = self.build(operand, names)
        return lambda environment: _field(value_of(environment), field)

    def unary(self, operator: str, value_of: Evaluator) -> Evaluator:
        if operator == "!":
            return lambda environment: not _truth(value_of(environment), "operand of !")

        def negate(environment: Environment) -> Any:
            value = value_of(environment)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise functions.no_overload("-_", value)
            return -value

        return negate

    def binary(self, operator: str, left: Evaluator, right: Evaluator) -> Evaluator:
        if operator in ("&&", "||"):
            return self.logical(operator, left, right)
        if operator in functions.COMPARISONS:
            compare = functions.COMPARISONS[operator]
            return lambda environment: compare(left(environment), right(environment))
        return lambda environment: functions.arithmetic(operator, left(environment), right(environment))

    def logical(self, operator: str, left: Evaluator, right: Evaluator) -> Evaluator:
        """Either side may settle it, even if the other one fails."""
        settles = operator == "||"
        what = f"operand of {operator}"

        def decide(environment: Environment) -> bool:
            try:
                if _truth(left(environment), what) is settles:
                    return settles
            except CelRuntimeError:
                if _truth(right(environment), what) is settles:
                    return settles
                raise
            return _truth(right(environment), what)

        return decide

    def call(self, target: Tree | None, function: str, arguments: tuple[Tree, ...], names: frozenset[str]) -> Evaluator:
        if target is None and function == "has":
            return self.has(arguments, names)
        if target == Name("cel") and "cel" not in names:
            return self.bind(function, arguments, names)
        if target is not None and function in _MACROS and len(arguments) == 2:
            return self.macro(target, function, arguments, names)
        parts = [self.build(argument, names) for argument in arguments]
        if target is None:
            functions.check_function(function, len(parts), self.source)
            return lambda environment: functions.call_function(function, [part(environment) for part in parts])
        if function not in functions.METHOD_NAMES:
            raise self.fail(f"method .{function}() is not supported")
        value_of = self.build(target, names)
        return lambda environment: functions.call_method(function, value_of(environment), [part(environment) for part in parts])

    def has(self, arguments: tuple[Tree, ...], names: frozenset[str]) -> Evaluator:
        if len(arguments) != 1 or not isinstance(arguments[0], Select):
            raise self.fail("has() takes one field selection")
        field = arguments[0].field
        value_of = self.build(arguments[0].operand, names)

        def present(environment: Environment) -> bool:
            value = value_of(environment)
            return isinstance(value, Device) if not isinstance(value, Mapping) else field in value

        return present

    def bind(self, function: str, arguments: tuple[Tree, ...], names: frozenset[str]) -> Evaluator:
        if function != "bind" or len(arguments) != 3 or not isinstance(arguments[0], Name):
            raise self.fail("of cel. only cel.bind(name, value, expression) is supported")
        name = arguments[0].name
        value_of, body = self.build(arguments[1], names), self.build(arguments[2], names | {name})
        return lambda environment: body({**environment, name: value_of(environment)})

    def macro(self, target: Tree, function: str, arguments: tuple[Tree, ...], names: frozenset[str]) -> Evaluator:
        if not isinstance(arguments[0], Name):
            raise self.fail(f".{function}() takes a name and an expression")
        name = arguments[0].name
        items_of, body = self.build(target, names), self.build(arguments[1], names | {name})

        def run(environment: Environment) -> Any:
            items = items_of(environment)
            if not isinstance(items, list | Mapping):
                raise functions.no_overload(function, items)
            if function == "map":
                return [body({**environment, name: item}) for item in items]
            return _quantified(function, list(items), lambda item: body({**environment, name: item}))

        return run


def _quantified(function: str, items: list[Any], test: Evaluator) -> Any:
    if function == "filter":
        return [item for item in items if _truth(test(item), "filter")]
    if function in ("exists_one", "existsOne"):
        return sum(_truth(test(item), function) for item in items) == 1
    settles = function == "exists"
    failure: CelRuntimeError | None = None
    for item in items:
        try:
            if _truth(test(item), function) is settles:
                return settles
        except CelRuntimeError as error:
            failure = error
    if failure is not None:
        raise failure
    return not settles
