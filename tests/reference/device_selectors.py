"""Device selectors, as CEL's specification has them: a small evaluation of their own, for the expressions that tests write.

It knows `device.driver`, `device.attributes["domain"].name`, literals of text, integers and booleans, comparisons, `in` a list,
`!`, `&&`, `||` and parentheses. An operator that fails gives `Error`; `&&` and `||` pass over a failed side where the other side
settles the answer.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from tests.reference.cluster import Object

TOKEN = re.compile(r"""\s*("[^"]*"|'[^']*'|-?\d+|[A-Za-z_]\w*|&&|\|\||[=!<>]=|[<>!().,\[\]])""")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Error(Exception):
    """The expression has no value for this device."""


class _Reader:
    def __init__(self, expression: str, driver: str, device: Object) -> None:
        self.tokens: list[str] = []
        end = 0
        while expression[end:].strip():
            match = TOKEN.match(expression, end)
            if match is None:
                raise ValueError(f"cannot read {expression[end:]!r}")
            self.tokens.append(match[0].strip())
            end = match.end()
        self.place = 0
        self.driver = driver
        self.attributes: dict[tuple[str, str], object] = {}
        for name, entry in ((device.get("basic") or device).get("attributes") or {}).items():
            domain, _, short = name.rpartition("/")
            (self.attributes[domain or driver, short],) = entry.values()

    def next_is(self, *signs: str) -> str:
        found = self.tokens[self.place] if self.place < len(self.tokens) else ""
        if found in signs:
            self.place += 1
            return found
        return ""

    def expect(self, sign: str) -> None:
        if not self.next_is(sign):
            raise ValueError(f"expected {sign!r} at {self.tokens[self.place :]}")

    # Each level gives a value, or Error as a value: what follows has to be read all the same.

    def either(self) -> object:
        return self._joined("||", self.both, settles=True)

    def both(self) -> object:
        return self._joined("&&", self.compared, settles=False)

    def _joined(self, sign: str, inner: Callable[[], object], *, settles: bool) -> object:
        value = inner()
        while self.next_is(sign):
            other = inner()
            if value is settles or other is settles:
                value = settles
            elif not (isinstance(value, bool) and isinstance(other, bool)):
                value = Error()
        return value

    def compared(self) -> object:
        left = self.unary()
        while sign := self.next_is("==", "!=", "in", *COMPARE):
            left = self._compare(left, sign, self.unary())
        return left

    def _compare(self, left: object, sign: str, right: object) -> object:
        if isinstance(left, Error) or isinstance(right, Error):
            return Error()
        if sign == "in":
            return any(_equal(left, each) for each in right) if isinstance(right, list) else Error()
        if sign in ("==", "!="):
            return _equal(left, right) == (sign == "==")
        return COMPARE[sign](left, right) if type(left) is type(right) and not isinstance(left, list) else Error()

    def unary(self) -> object:
        if self.next_is("!"):
            value = self.unary()
            return not value if isinstance(value, bool) else Error()
        if self.next_is("("):
            value = self.either()
            self.expect(")")
            return value
        if self.next_is("["):
            items: list[object] = []
            while not self.next_is("]"):
                items.append(self.either())
                self.next_is(",")
            return Error() if any(isinstance(each, Error) for each in items) else items
        return self._operand()

    def _operand(self) -> object:
        token = self.tokens[self.place]
        self.place += 1
        if token[0] in "\"'":
            return token[1:-1]
        if token in ("true", "false"):
            return token == "true"
        if token != "device":
            return int(token)
        self.expect(".")
        if self.next_is("driver"):
            return self.driver
        self.expect("attributes")
        self.expect("[")
        domain = self.tokens[self.place][1:-1]
        self.place += 1
        self.expect("]")
        self.expect(".")
        name = self.tokens[self.place]
        self.place += 1
        return self.attributes.get((domain, name), Error())


def _equal(left: object, right: object) -> bool:
    """Values of different kinds differ: true is not 1."""
    return type(left) is type(right) and left == right


def selects(expression: str, driver: str, device: Object) -> bool:
    """Whether the expression holds for a device of a ResourceSlice; Error where it has no value or none that is true or false."""
    reader = _Reader(expression, driver, device)
    value = reader.either()
    if reader.place != len(reader.tokens):
        raise ValueError(f"{expression!r} goes on at {reader.tokens[reader.place :]}")
    if not isinstance(value, bool):
        raise Error(expression)
    return value
