"""From the tree of an expression to instructions. Names, functions and fields that do not exist are refused here.

The tree is walked with a list of what is still to be done, because a tree may be deeper than Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from navarch.plugins.predicates.devices.cel import functions, machine
from navarch.plugins.predicates.devices.cel.cost import Meter
from navarch.plugins.predicates.devices.cel.machine import Instruction, Program
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
    quoted,
)
from navarch.plugins.predicates.devices.cel.values import CelError, CelRuntimeError, Device, Domains

_DEVICE_FIELDS: Final[dict[str, Callable[[Device], Any]]] = {
    "driver": lambda device: device.driver,
    "attributes": lambda device: device.attributes,
    "capacity": lambda device: device.capacity,
    "allowMultipleAllocations": lambda device: device.allow_multiple,
}
_MACROS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
Scope: TypeAlias = Mapping[str, int]
"""Name -> the slot that holds it."""


class _Label:
    """A place in the instructions that is known only later."""

    at: int = -1


def compile_expression(source: str) -> Program:
    """CelError if the text is unusable."""
    return _Compiler(source).whole()


# what the instructions of an expression call


def _select(field: str) -> Callable[[Meter, Any], Any]:
    def run(_: Meter, value: Any) -> Any:
        if isinstance(value, Device) and field in _DEVICE_FIELDS:
            return _DEVICE_FIELDS[field](value)
        if not isinstance(value, Mapping):
            raise CelRuntimeError(f"{functions.type_name(value)} has no field {field!r}")
        if field not in value and not isinstance(value, Domains):
            raise CelRuntimeError(f"no such key: {field}")
        return value[field]

    return run


def _present(field: str) -> Callable[[Meter, Any], bool]:
    def run(_: Meter, value: Any) -> bool:
        return field in (_DEVICE_FIELDS if isinstance(value, Device) else value if isinstance(value, Mapping) else ())

    return run


def _index(meter: Meter, value: Any, key: Any) -> Any:
    if isinstance(value, list):
        if isinstance(key, bool) or not isinstance(key, int):
            raise functions.no_overload("_[_]", value, key)
        if not 0 <= key < len(value):
            raise CelRuntimeError(f"index {key} out of range")
        return value[key]
    if not isinstance(value, Mapping) or not functions.is_key(key):
        raise functions.no_overload("_[_]", value, key)
    if key not in value and not isinstance(value, Domains):
        raise CelRuntimeError(f"no such key: {key}")
    return value[key]


def _not(_: Meter, value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelRuntimeError(f"operand of ! must give a bool, found {functions.type_name(value)}")
    return not value


def _list(meter: Meter, *items: Any) -> list[Any]:
    meter.spend(len(items))
    return list(items)


def _map(meter: Meter, *parts: Any) -> dict[Any, Any]:
    meter.spend(len(parts))
    keys = parts[::2]
    for key in keys:
        if not functions.is_key(key):
            raise CelRuntimeError(f"unsupported key type: {functions.type_name(key)}")
    return dict(zip(keys, parts[1::2], strict=True))


class _Compiler:
    def __init__(self, source: str) -> None:
        self.source = source
        self.code: list[Instruction] = []
        self.slots = 1
        self.work: list[Callable[[], object]] = []

    def fail(self, what: str) -> CelError:
        return CelError(f"expression {quoted(self.source)}: {what}")

    def whole(self) -> Program:
        self.then(partial(self.visit, parse(self.source), {"device": 0}))
        while self.work:
            self.work.pop()()
        return Program([(op, _known(first), _known(second)) for op, first, second in self.code], self.slots)

    def then(self, *steps: Callable[[], object]) -> None:
        self.work += reversed(steps)

    def emit(self, op: int, first: Any = None, second: Any = None) -> Callable[[], None]:
        return lambda: self.code.append((op, first, second))

    def place(self, label: _Label) -> Callable[[], None]:
        def run() -> None:
            label.at = len(self.code)

        return run

    def tree(self, tree: Tree, scope: Scope) -> Callable[[], None]:
        return partial(self.visit, tree, scope)

    def visit(self, tree: Tree, scope: Scope) -> None:
        match tree:
            case Literal(value):
                self.then(self.emit(machine.PUSH, value))
            case Name(name):
                if name not in scope:
                    raise self.fail(f"undeclared name {name!r}")
                self.then(self.emit(machine.LOAD, scope[name]))
            case Select(operand, field):
                self.check_field(operand, field)
                self.apply(_select(field), [operand], scope)
            case Index(operand, key):
                self.apply(_index, [operand, key], scope)
            case Unary(operator, operand):
                self.apply(_not if operator == "!" else functions.negate, [operand], scope)
            case Binary("&&" | "||" as operator, left, right):
                end, settles = _Label(), operator == "||"
                look, join = self.emit(machine.SETTLE, settles, end), self.emit(machine.JOIN, settles, operator)
                self.then(self.tree(left, scope), look, self.tree(right, scope), join, self.place(end))
            case Binary(operator, left, right):
                self.apply(functions.OPERATORS[operator], [left, right], scope)
            case Conditional(test, then, otherwise):
                other, end = _Label(), _Label()
                decide, leave = self.emit(machine.BRANCH, other, end), self.emit(machine.JUMP, end)
                yes, no = self.tree(then, scope), self.tree(otherwise, scope)
                self.then(self.tree(test, scope), decide, yes, leave, self.place(other), no, self.place(end))
            case Sequence(items):
                self.apply(_list, items, scope)
            case Entries(pairs):
                self.apply(_map, [part for pair in pairs for part in pair], scope)
            case Call(target, function, arguments):
                self.call(target, function, arguments, scope)

    def apply(self, function: Callable[..., Any], operands: list[Tree] | tuple[Tree, ...], scope: Scope) -> None:
        if not operands:
            self.then(self.emit(machine.PUSH, [] if function is _list else {}))
            return
        self.then(*(self.tree(operand, scope) for operand in operands), self.emit(machine.CALL, function, len(operands)))

    def check_field(self, operand: Tree, field: str) -> None:
        if operand == Name("device") and field not in _DEVICE_FIELDS:
            raise self.fail(f"device has no field {field!r}; it has {', '.join(_DEVICE_FIELDS)}")

    def call(self, target: Tree | None, function: str, arguments: tuple[Tree, ...], scope: Scope) -> None:
        if target is None and function == "has":
            self.has(arguments, scope)
        elif target == Name("cel") and "cel" not in scope:
            self.bind(function, arguments, scope)
        elif target is not None and function in _MACROS and len(arguments) == 2:
            self.macro(target, function, arguments, scope)
        elif target is None:
            self.apply(functions.function(function, len(arguments), quoted(self.source)), arguments, scope)
        elif function not in functions.METHOD_NAMES:
            raise self.fail(f"method .{function}() is not supported")
        else:
            self.apply(functions.method(function), [target, *arguments], scope)

    def has(self, arguments: tuple[Tree, ...], scope: Scope) -> None:
        if len(arguments) != 1 or not isinstance(arguments[0], Select):
            raise self.fail("has() takes one field selection")
        self.apply(_present(arguments[0].field), [arguments[0].operand], scope)

    def slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def bind(self, function: str, arguments: tuple[Tree, ...], scope: Scope) -> None:
        if function != "bind" or len(arguments) != 3 or not isinstance(arguments[0], Name):
            raise self.fail("of cel. only cel.bind(name, value, expression) is supported")
        slot = self.slot()
        body = self.tree(arguments[2], {**scope, arguments[0].name: slot})
        self.then(self.tree(arguments[1], scope), self.emit(machine.STORE, slot), body)

    def macro(self, target: Tree, function: str, arguments: tuple[Tree, ...], scope: Scope) -> None:
        if not isinstance(arguments[0], Name):
            raise self.fail(f".{function}() takes a name and an expression")
        slot, again, end = self.slot(), _Label(), _Label()
        body = self.tree(arguments[1], {**scope, arguments[0].name: slot})
        self.then(
            self.tree(target, scope),
            self.emit(machine.BEGIN, function, end),
            self.place(again),
            self.emit(machine.NEXT, slot, end),
            body,
            self.emit(machine.TAKE, again, end),
            self.place(end),
        )


def _known(operand: Any) -> Any:
    return operand.at if isinstance(operand, _Label) else operand
