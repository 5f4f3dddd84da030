"""From the text of an expression to a tree. The grammar is CEL's; what it leaves out is refused by name.

Left out: unsigned and bytes literals, optional chaining and message construction. No driver's published selectors use
them; an expression that does is an error at the time it is read, not a wrong answer later.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

from msgspec import Struct

from navarch.plugins.predicates.devices.cel.values import CelError

_TOKEN: Final = re.compile(
    r"""
    (?P<space>(?:\s+|//[^\n]*)+)
  | (?P<text>[rR]?(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
  | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<int>0[xX][0-9a-fA-F]+|[0-9]+)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_SIMPLE: Final = dict(zip("abfnrtv\\\"'`?", "\a\b\f\n\r\t\v\\\"'`?", strict=True))
_BINDING: Final = (
    ("||",),
    ("&&",),
    ("==", "!=", "<", "<=", ">", ">=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)


class Literal(Struct, frozen=True):
    value: Any


class Name(Struct, frozen=True):
    name: str


class Select(Struct, frozen=True):
    operand: Tree
    field: str


class Index(Struct, frozen=True):
    operand: Tree
    key: Tree


class Call(Struct, frozen=True):
    target: Tree | None
    function: str
    arguments: tuple[Tree, ...]


class Unary(Struct, frozen=True):
    operator: str
    operand: Tree


class Binary(Struct, frozen=True):
    operator: str
    left: Tree
    right: Tree


class Conditional(Struct, frozen=True):
    test: Tree
    then: Tree
    otherwise: Tree


class Sequence(Struct, frozen=True):
    items: tuple[Tree, ...]


class Entries(Struct, frozen=True):
    pairs: tuple[tuple[Tree, Tree], ...]


Tree: TypeAlias = Literal | Name | Select | Index | Call | Unary | Binary | Conditional | Sequence | Entries


class Token(Struct, frozen=True):
    kind: str
    text: str
    at: int


def _tokens(source: str) -> list[Token]:
    found = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise CelError(f"expression {source!r}: unexpected character {source[at]!r} at {at}")
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match.group(), at))
        at = match.end()
    found.append(Token("end", "", at))
    return found


def _unescape(match: re.Match[str]) -> str:
    *codes, octal, simple = match.groups()
    for code in codes:
        if code is not None:
            return chr(int(code, 16))
    if octal is not None:
        return chr(int(octal, 8))
    if simple not in _SIMPLE:
        raise CelError(f"unknown escape \\{simple} in a string")
    return _SIMPLE[simple]


def _string(text: str) -> str:
    raw = text[0] in "rR"
    body = text[1:] if raw else text
    quotes = 3 if len(body) >= 6 and body[:3] in ('"""', "'''") else 1
    body = body[quotes:-quotes]
    return body if raw else _ESCAPE.sub(_unescape, body)


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = _tokens(source)
        self.at = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.at]

    def fail(self, expected: str) -> CelError:
        found = repr(self.here.text) if self.here.text else "the end"
        return CelError(f"expression {self.source!r}: found {found} at {self.here.at}, expected {expected}")

    def accept(self, *texts: str) -> str | None:
        if self.here.kind in ("sign", "name") and self.here.text in texts:
            self.at += 1
            return self.tokens[self.at - 1].text
        return None

    def expect(self, text: str) -> None:
        if self.accept(text) is None:
            raise self.fail(repr(text))

    def whole(self) -> Tree:
        tree = self.conditional()
        if self.here.kind != "end":
            raise self.fail("an operator or the end")
        return tree

    def conditional(self) -> Tree:
        test = self.binary(0)
        if self.accept("?") is None:
            return test
        then = self.binary(0)
        self.expect(":")
        return Conditional(test, then, self.conditional())

    def binary(self, level: int) -> Tree:
        if level == len(_BINDING):
            return self.unary()
        left = self.binary(level + 1)
        while (operator := self.accept(*_BINDING[level])) is not None:
            left = Binary(operator, left, self.binary(level + 1))
        return left

    def unary(self) -> Tree:
        operator = self.accept("!", "-")
        return self.member() if operator is None else Unary(operator, self.unary())

    def member(self) -> Tree:
        tree = self.primary()
        while True:
            if self.accept("."):
                tree = self.selection(tree)
            elif self.accept("["):
                tree = Index(tree, self.conditional())
                self.expect("]")
            else:
                return tree

    def selection(self, target: Tree) -> Tree:
        if self.here.text == "?":
            raise CelError(f"expression {self.source!r}: optional selection (.?) is not supported")
        if self.here.kind != "name":
            raise self.fail("a field name")
        name = self.here.text
        self.at += 1
        return Call(target, name, self.listed(")")) if self.accept("(") else Select(target, name)

    def listed(self, close: str) -> tuple[Tree, ...]:
        items: list[Tree] = []
        while self.accept(close) is None:
            items.append(self.conditional())
            if self.accept(",") is None:
                self.expect(close)
                break
        return tuple(items)

    def primary(self) -> Tree:
        token = self.here
        if token.kind == "text":
            self.at += 1
            return Literal(_string(token.text))
        if token.kind in ("int", "float"):
            self.at += 1
            if self.here.kind == "name" and self.here.at == token.at + len(token.text):
                raise CelError(f"expression {self.source!r}: the literal at {token.at} is not supported")
            if token.kind == "float":
                return Literal(float(token.text))
            return Literal(int(token.text, 16 if token.text[:2].lower() == "0x" else 10))
        if token.kind == "name":
            self.at += 1
            return self.named(token)
        if self.accept("("):
            tree = self.conditional()
            self.expect(")")
            return tree
        if self.accept("["):
            return Sequence(self.listed("]"))
        if self.accept("{"):
            return Entries(self.entries())
        raise self.fail("a value")

    def named(self, token: Token) -> Tree:
        if token.text in ("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[token.text])
        if self.here.kind == "text" and self.here.at == token.at + len(token.text):
            raise CelError(f"expression {self.source!r}: the literal at {token.at} is not supported")
        if token.text == "in":
            self.at -= 1
            raise self.fail("a value")
        return Call(None, token.text, self.listed(")")) if self.accept("(") else Name(token.text)

    def entries(self) -> tuple[tuple[Tree, Tree], ...]:
        pairs: list[tuple[Tree, Tree]] = []
        while self.accept("}") is None:
            key = self.conditional()
            self.expect(":")
            pairs.append((key, self.conditional()))
            if self.accept(",") is None:
                self.expect("}")
                break
        return tuple(pairs)


def parse(source: str) -> Tree:
    """The tree of an expression, or CelError saying where it stops making sense."""
    return _Parser(source).whole()
