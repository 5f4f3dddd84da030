"""From the text of an expression to a tree. The grammar is CEL's; what it leaves out is refused by name.

The parser keeps its own stack of what is open: an expression may nest as deeply as its length allows. Chains of `!` and `-` become
one operator or none, as in CEL's own parser.

Left out: unsigned and bytes literals, optional chaining and message construction. No driver's published selectors use
them; an expression that does is an error at the time it is read, not a wrong answer later.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from navarch.plugins.predicates.devices.cel.cost import MOST_CHARACTERS
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
_LEVELS: Final = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
_LEVEL: Final = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_CLOSES: Final = {"(": ")", "[": "]", "{": "}", "call": ")", "list": "]", "?": ":"}
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
_INT_LIMIT: Final = 1 << 63


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


class Open(Struct):
    """Something that waits for the operand to its right: an operator, a bracket, a call, or either half of `? :`.

    `kind` is "prefix", "binary", "?", ":", "(" (a group), "[" (an index), "list", "{" or "call"."""

    kind: str
    word: str = ""
    """The operator, or the name of the function."""
    level: int = len(_LEVELS)
    """How tightly an operator binds."""
    times: int = 1
    """How often a prefix stands in a row."""
    target: Tree | None = None
    """What is called or indexed; of `? :` the test."""
    then: Tree | None = None
    """Of `? :` the answer if the test holds; of a map the key that waits for its value."""
    items: list[Tree] = field(default_factory=list)


def quoted(source: str) -> str:
    """An expression as messages show it: one of 10 KiB would fill a condition."""
    return repr(source) if len(source) <= 200 else f"{source[:200]!r}..."


def parse(source: str) -> Tree:
    """The tree of an expression, or CelError saying where it stops making sense."""
    if len(source) > MOST_CHARACTERS:
        raise CelError(f"expression {quoted(source)}: found {len(source)} characters, expected at most {MOST_CHARACTERS}")
    return _Parser(source).whole()


def _tokens(source: str) -> list[Token]:
    found = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise CelError(f"expression {quoted(source)}: unexpected character {source[at]!r} at {at}")
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match.group(), at))
        at = match.end()
    found.append(Token("end", "", at))
    return found


def _unescape(match: re.Match[str]) -> str:
    *codes, octal, simple = match.groups()
    for code in codes:
        if code is not None:
            return _character(int(code, 16), match.group())
    if octal is not None:
        return chr(int(octal, 8))
    if simple not in _SIMPLE:
        raise CelError(f"unknown escape \\{simple} in a string")
    return _SIMPLE[simple]


def _character(code: int, text: str) -> str:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise CelError(f"{text} in a string is not a character")
    return chr(code)


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
        self.done: list[Tree] = []
        """Operands that are complete, outermost first."""
        self.open: list[Open] = []

    @property
    def here(self) -> Token:
        return self.tokens[self.at]

    def refuse(self, what: str) -> CelError:
        return CelError(f"expression {quoted(self.source)}: {what}")

    def fail(self, expected: str) -> CelError:
        found = repr(self.here.text) if self.here.text else "the end"
        return self.refuse(f"found {found} at {self.here.at}, expected {expected}")

    def accept(self, *texts: str) -> str | None:
        if self.here.kind in ("sign", "name") and self.here.text in texts:
            self.at += 1
            return self.tokens[self.at - 1].text
        return None

    def whole(self) -> Tree:
        """Operand, operators after it, operand, ... until an operand is followed by the end."""
        while True:
            self.operand()
            if self.after_operand():
                return self.done.pop()

    # where an operand is expected

    def operand(self) -> None:
        while True:
            if (sign := self.accept("!", "-")) is not None:
                self.prefix(sign)
            elif self.accept("("):
                self.open.append(Open("("))
            elif self.accept("["):
                self.open.append(Open("list"))
            elif self.accept("{"):
                self.open.append(Open("{"))
            elif not self.primary():
                continue
            else:
                return
            if self.open[-1].kind in ("list", "{") and self.here.text == _CLOSES[self.open[-1].kind]:
                return self.close()

    def prefix(self, sign: str) -> None:
        last = self.open[-1] if self.open else None
        if last is not None and last.kind == "prefix" and last.word == sign:
            last.times += 1
        else:
            self.open.append(Open("prefix", sign))

    def primary(self) -> bool:
        """A literal, a name or the start of a call; False: its first argument comes next."""
        token = self.here
        if token.kind in ("text", "int", "float"):
            self.at += 1
            self.done.append(Literal(self.literal(token)))
            return True
        if token.kind != "name" or token.text == "in":
            raise self.fail("a value")
        self.at += 1
        if token.text in _WORDS:
            self.done.append(Literal(_WORDS[token.text]))
            return True
        self.no_suffix(token, "text")
        if self.accept("("):
            return self.call(None, token.text)
        self.done.append(Name(token.text))
        return True

    def no_suffix(self, token: Token, kind: str) -> None:
        """1u, b"x": a literal with a letter beside it."""
        if self.here.kind == kind and self.here.at == token.at + len(token.text):
            raise self.refuse(f"the literal at {token.at} is not supported")

    def literal(self, token: Token) -> Any:
        if token.kind == "text":
            return _string(token.text)
        self.no_suffix(token, "name")
        if token.kind == "float":
            return float(token.text)
        hexadecimal = token.text[:2].lower() == "0x"
        digits = token.text[2:].lstrip("0") if hexadecimal else token.text.lstrip("0")
        number = int(digits or "0", 16 if hexadecimal else 10) if len(digits) <= 20 else _INT_LIMIT + 1
        last = self.open[-1] if self.open else None
        negative = last is not None and last.kind == "prefix" and last.word == "-" and last.times % 2 == 1
        if number >= _INT_LIMIT + negative:
            raise self.refuse(f"the integer at {token.at} does not fit into 64 bits")
        return number

    def call(self, target: Tree | None, function: str) -> bool:
        self.open.append(Open("call", function, target=target))
        if self.here.text == ")":
            self.close()
            return True
        return False

    # where an operator is expected

    def after_operand(self) -> bool:
        """Reads on to the place where the next operand begins; True: the expression ends instead."""
        while True:
            text = self.here.text if self.here.kind in ("sign", "name", "end") else None
            if text == ".":
                self.at += 1
                if not self.selection():
                    return False
            elif text == "[":
                self.at += 1
                self.open.append(Open("[", target=self.done.pop()))
                return False
            elif text in _LEVEL:
                self.at += 1
                self.reduce(_LEVEL[text])
                self.open.append(Open("binary", text, _LEVEL[text]))
                return False
            elif text == "?":
                self.reduce(0)
                if self.open and self.open[-1].kind == "?":
                    raise self.fail("':'")
                self.at += 1
                self.open.append(Open("?", target=self.done.pop()))
                return False
            elif text == ":":
                self.colon()
                return False
            elif text == ",":
                if self.comma():
                    return False
            elif text in (")", "]", "}"):
                self.finish_conditionals()
                self.add_item()
                self.close()
            elif text == "":
                self.finish_conditionals()
                if self.open:
                    raise self.fail(repr(_CLOSES[self.open[-1].kind]))
                return True
            else:
                raise self.expected_here()

    def expected_here(self) -> CelError:
        self.reduce(0)
        waiting = next((each for each in reversed(self.open) if each.kind != ":"), None)
        return self.fail("an operator or the end" if waiting is None else repr(_CLOSES[waiting.kind]))

    def selection(self) -> bool:
        """After a dot: a field, or a method; False: the method's first argument comes next."""
        if self.here.text == "?":
            raise self.refuse("optional selection (.?) is not supported")
        if self.here.kind != "name":
            raise self.fail("a field name")
        name = self.here.text
        self.at += 1
        target = self.done.pop()
        if self.accept("("):
            return self.call(target, name)
        self.done.append(Select(target, name))
        return True

    def colon(self) -> None:
        self.reduce(0)
        last = self.open[-1] if self.open else None
        if last is not None and last.kind == "?":
            last.kind, last.then = ":", self.done.pop()
        else:
            self.finish_conditionals()
            last = self.open[-1] if self.open else None
            if last is None or last.kind != "{" or last.then is not None:
                raise self.expected_here()
            last.then = self.done.pop()
        self.at += 1

    def comma(self) -> bool:
        """True: another item follows; False: the list ended with the comma."""
        self.finish_conditionals()
        if not self.open or self.open[-1].kind not in ("call", "list", "{"):
            raise self.expected_here()
        self.add_item()
        self.at += 1
        if self.here.text != _CLOSES[self.open[-1].kind]:
            return True
        self.close()
        return False

    # building

    def reduce(self, level: int) -> None:
        """Operators that bind at least as tightly as this level take their operands."""
        while self.open and self.open[-1].kind in ("prefix", "binary") and self.open[-1].level >= level:
            operator = self.open.pop()
            right = self.done.pop()
            if operator.kind == "binary":
                right = Binary(operator.word, self.done.pop(), right)
            elif operator.times % 2 == 1:
                right = Unary(operator.word, right)
            self.done.append(right)

    def finish_conditionals(self) -> None:
        """Everything up to the innermost bracket becomes one operand."""
        self.reduce(0)
        while self.open and self.open[-1].kind == ":":
            found = self.open.pop()
            assert found.target is not None and found.then is not None
            self.done.append(Conditional(found.target, found.then, self.done.pop()))

    def add_item(self) -> None:
        """The operand that is complete belongs to the innermost bracket."""
        last = self.open[-1] if self.open else None
        if last is None or last.kind == "?" or (last.kind == "{" and last.then is None):
            expected = "an operator or the end" if last is None else "':'"
            raise self.fail(expected)
        if last.kind == "{":
            assert last.then is not None
            last.items += (last.then, self.done.pop())
            last.then = None
        else:
            last.items.append(self.done.pop())

    def close(self) -> None:
        last = self.open[-1]
        if self.accept(_CLOSES[last.kind]) is None:
            raise self.fail(repr(_CLOSES[last.kind]))
        self.open.pop()
        self.done.append(_built(last))


def _built(found: Open) -> Tree:
    if found.kind == "(":
        return found.items[0]
    if found.kind == "list":
        return Sequence(tuple(found.items))
    if found.kind == "{":
        return Entries(tuple(zip(found.items[::2], found.items[1::2], strict=True)))
    if found.kind == "[":
        assert found.target is not None
        return Index(found.target, found.items[0])
    return Call(found.target, found.word, tuple(found.items))
