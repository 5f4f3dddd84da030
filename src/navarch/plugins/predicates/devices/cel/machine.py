"""Runs a compiled expression: a flat list of instructions over a stack, so that no expression can exhaust Python's own.

An error is a value: it goes where the answer would have gone, and every instruction that is given one hands it on. Only `||`, `&&`,
`all` and `exists` look at it, because one side may settle what the other one cannot answer. A budget that is used up is not a
value: it ends the evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct

from navarch.plugins.predicates.devices.cel import functions
from navarch.plugins.predicates.devices.cel.cost import Meter
from navarch.plugins.predicates.devices.cel.values import CelRuntimeError

# What an instruction does, and what its two operands are. Plain numbers: an enumeration made an evaluation a third slower.
PUSH: Final = 0
"""first: the value."""
LOAD: Final = 1
"""first: the slot of a variable."""
STORE: Final = 2
"""The top goes into slot `first`."""
CALL: Final = 3
"""first: a function of the meter and the values; second: how many it takes from the stack."""
SETTLE: Final = 4
"""The left side of a logical operator is on top. first: the value that settles it; second: where its right side ends."""
JOIN: Final = 5
"""Both sides are on top. first: the value that settles; second: the operator."""
BRANCH: Final = 6
"""Of `? :`, its test on top. first: where the other answer begins; second: the end of both."""
JUMP: Final = 7
"""first: where to."""
BEGIN: Final = 8
"""The items of a macro on top. first: its name; second: the instruction after the macro."""
NEXT: Final = 9
"""first: the slot that takes the next item; second: the instruction after the macro."""
TAKE: Final = 10
"""The body's answer on top. first: the NEXT of the macro; second: the instruction after the macro."""

Instruction: TypeAlias = tuple[int, Any, Any]
_UNSETTLED: Final = object()


class Program(Struct):
    instructions: Sequence[Instruction]
    slots: int

    def run(self, device: Any, meter: Meter) -> Any:
        """The value of the expression. CelRuntimeError: it has none for this device; CelCostError: it costs too much."""
        value = _run(self.instructions, [device] + [None] * (self.slots - 1), meter)
        if isinstance(value, CelRuntimeError):
            raise value
        return value


class _Loop:
    """A macro under way: what it goes over and what it has found."""

    __slots__ = ("at", "failure", "found", "function", "items")

    def __init__(self, function: str, items: list[Any]) -> None:
        self.function = function
        self.items = items
        self.at = 0
        self.found: list[Any] = []
        self.failure: CelRuntimeError | None = None

    def take(self, value: Any) -> Any:
        """The answer of the body for the last item; what the macro gives if that settles it."""
        if self.function == "map":
            if isinstance(value, CelRuntimeError):
                return value
            self.found.append(value)
            return _UNSETTLED
        answer = as_bool(value, self.function)
        if self.function in ("all", "exists"):
            if isinstance(answer, CelRuntimeError):
                self.failure = answer
            elif answer is (self.function == "exists"):
                return answer
            return _UNSETTLED
        if isinstance(answer, CelRuntimeError):
            return answer
        if answer:
            self.found.append(self.items[self.at - 1])
        return _UNSETTLED

    def ended(self) -> Any:
        if self.function in ("all", "exists"):
            return self.failure if self.failure is not None else self.function == "all"
        if self.function in ("exists_one", "existsOne"):
            return len(self.found) == 1
        return self.found


def as_bool(value: Any, what: str) -> bool | CelRuntimeError:
    if isinstance(value, bool | CelRuntimeError):
        return value
    return CelRuntimeError(f"{what} must give a bool, found {functions.type_name(value)}")


def _joined(left: Any, right: Any, settles: bool, operator: str) -> Any:
    """The left side did not settle it."""
    first, second = as_bool(left, f"operand of {operator}"), as_bool(right, f"operand of {operator}")
    if isinstance(first, CelRuntimeError) and second is not settles:
        return first
    return second


def _called(function: Callable[..., Any], values: list[Any], meter: Meter) -> Any:
    for value in values:
        if value.__class__ is CelRuntimeError:
            return value
    try:
        return function(meter, *values)
    except CelRuntimeError as error:
        return error.with_traceback(None)


def _begun(function: str, items: Any) -> _Loop | CelRuntimeError:
    if isinstance(items, CelRuntimeError):
        return items
    if not isinstance(items, list | Mapping):
        return functions.no_overload(function, items)
    return _Loop(function, list(items))


def _run(instructions: Sequence[Instruction], slots: list[Any], meter: Meter) -> Any:
    """Steps are paid for at the end and once for each turn of a loop: in between there are at most as many as the text is long."""
    stack: list[Any] = []
    loops: list[_Loop] = []
    at, end, steps = 0, len(instructions), 0
    while at < end:
        op, first, second = instructions[at]
        at += 1
        steps += 1
        if op == PUSH:
            stack.append(first)
        elif op == LOAD:
            stack.append(slots[first])
        elif op == CALL:
            values = stack[-second:]
            del stack[-second:]
            stack.append(_called(first, values, meter))
        elif op == SETTLE:
            if stack[-1] is first:
                at = second
        elif op == JOIN:
            right = stack.pop()
            stack[-1] = _joined(stack[-1], right, first, second)
        elif op == BRANCH:
            test = as_bool(stack.pop(), "? :")
            if isinstance(test, CelRuntimeError):
                stack.append(test)
                at = second
            elif not test:
                at = first
        elif op == JUMP:
            at = first
        elif op == STORE:
            slots[first] = stack.pop()
        elif op == BEGIN:
            begun = _begun(first, stack.pop())
            if isinstance(begun, CelRuntimeError):
                stack.append(begun)
                at = second
            else:
                meter.spend(len(begun.items))
                loops.append(begun)
        elif op == NEXT:
            meter.spend(steps)
            steps = 0
            loop = loops[-1]
            if loop.at == len(loop.items):
                stack.append(loops.pop().ended())
                at = second
            else:
                slots[first] = loop.items[loop.at]
                loop.at += 1
        else:
            settled = loops[-1].take(stack.pop())
            at = first
            if settled is not _UNSETTLED:
                loops.pop()
                stack.append(settled)
                at = second
    meter.spend(steps)
    return stack.pop()
