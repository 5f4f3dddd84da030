"""Label and field selectors of list and watch requests.

    labelSelector=app=web,tier in (a, b),!canary      fieldSelector=spec.nodeName=n1,status.phase!=Failed

A parsed selector is a function on a stored record; it looks at the record's labels and indexed fields only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from navarch.embedded.api.errors import bad_request
from navarch.embedded.storage.record import Record
from navarch.model.label_syntax import parse_int64

Labels = Mapping[str, str]
LabelTest = Callable[[Labels], bool]

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_TOKEN = re.compile(r"\s*(==|!=|=|!|\(|\)|,|<|>|[^\s=!(),<>]+)")


def is_label_key(key: str) -> bool:
    """Whether a text may be a label's key: an optional DNS prefix and a name of at most 63 characters."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return False
    return bool(_NAME.fullmatch(name))


def is_label_value(value: str) -> bool:
    return not value or bool(_NAME.fullmatch(value))


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelTest | None:
    """The test that a labelSelector stands for; None if it selects everything.

    >>> test = parse_labels("app in (a,b),!canary")
    >>> test({"app": "a"}), test({"app": "a", "canary": ""}), test({})
    (True, False, False)
    """
    tests = list(_requirements(text))
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda labels: all(test(labels) for test in tests)


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unparsable(f"found {text[position:]!r}")
        yield match.group(1)
        position = match.end()


def _unparsable(why: str) -> Exception:
    return bad_request(f"unable to parse requirement: {why}")


class _Reader:
    """Tokens of one selector with a look at the next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.rest = list(_tokens(text))

    def peek(self) -> str:
        return self.rest[0] if self.rest else ""

    def take(self) -> str:
        if not self.rest:
            raise _unparsable("found '', expected: ',' or ')'")
        return self.rest.pop(0)

    def word(self, what: str) -> str:
        token = self.take()
        if token in ("=", "==", "!=", "!", "(", ")", ",", "<", ">"):
            raise _unparsable(f"found {token!r}, expected {what}")
        return token


def _requirements(text: str) -> Iterator[LabelTest]:
    reader = _Reader(text)
    while reader.rest:
        yield _requirement(reader)
        if reader.rest:
            comma = reader.take()
            if comma != "," or not reader.rest:
                raise _unparsable(f"found {comma!r}, expected ',' and another requirement")


def _requirement(reader: _Reader) -> LabelTest:
    if reader.peek() == "!":
        reader.take()
        absent = _key(reader)
        return lambda labels: absent not in labels
    key = _key(reader)
    operator = reader.peek()
    if operator in ("", ","):
        return lambda labels: key in labels
    reader.take()
    if operator in ("=", "=="):
        wanted = _value(reader)
        return lambda labels: labels.get(key) == wanted
    if operator == "!=":
        unwanted = _value(reader)
        return lambda labels: labels.get(key) != unwanted
    if operator in ("in", "notin"):
        values = _values(reader)
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if operator in ("<", ">"):
        bound = reader.word("a number")
        number = parse_int64(bound)
        if number is None:
            raise _unparsable(f"found {bound[:40]!r}, expected an integer after {operator!r}")
        return lambda labels: _compare(labels.get(key), operator, number)
    raise _unparsable(f"found {operator!r}, expected in, notin, =, ==, !=, < or >")


def _compare(value: str | None, operator: str, bound: int) -> bool:
    number = None if value is None else parse_int64(value)
    if number is None:
        return False
    return number > bound if operator == ">" else number < bound


def _key(reader: _Reader) -> str:
    key = reader.word("a key")
    if not is_label_key(key):
        raise _unparsable(f"invalid label key {key!r}")
    return key


def _value(reader: _Reader) -> str:
    if reader.peek() in ("", ","):
        return ""
    value = reader.word("a value")
    if not is_label_value(value):
        raise _unparsable(f"invalid label value {value!r}")
    return value


def _values(reader: _Reader) -> frozenset[str]:
    if reader.take() != "(":
        raise _unparsable("expected '(' after in or notin")
    values: set[str] = set()
    while True:
        values.add(_value(reader) if reader.peek() not in (")",) else "")
        token = reader.take()
        if token == ")":
            return frozenset(values)
        if token != ",":
            raise _unparsable(f"found {token!r}, expected ',' or ')'")


def parse_fields(text: str) -> list[tuple[str, bool, str]]:
    """(path, equal or not, value) of each part of a fieldSelector.

    >>> parse_fields("spec.nodeName=n1,status.phase!=Failed")
    [('spec.nodeName', True, 'n1'), ('status.phase', False, 'Failed')]
    """
    found: list[tuple[str, bool, str]] = []
    for part in re.split(r"(?<!\\),", text):
        if not part.strip():
            continue
        match = re.fullmatch(r"\s*([^=!]+?)\s*(==|!=|=)(.*)", part)
        if match is None:
            raise bad_request(f"invalid field selector: found {part!r}, expected path=value or path!=value")
        path, operator, value = match.groups()
        found.append((path, operator != "!=", re.sub(r"\\([\\,=])", r"\1", value)))
    return found


def match_record(label_text: str, field_text: str, selectable: tuple[str, ...], kind: str = "") -> Callable[[Record], bool] | None:
    """The test of a request's selectors on records; None if both are empty."""
    labels = parse_labels(label_text) if label_text else None
    tests: list[Callable[[Record], bool]] = []
    if labels is not None:
        tests.append(lambda record: labels(record.labels))
    for path, equal, value in parse_fields(field_text) if field_text else ():
        tests.append(_field_test(path, equal, value, selectable, kind))
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda record: all(test(record) for test in tests)


def _field_test(path: str, equal: bool, value: str, selectable: tuple[str, ...], kind: str) -> Callable[[Record], bool]:
    if path == "metadata.name":
        return lambda record: (record.name == value) is equal
    if path == "metadata.namespace":
        return lambda record: (record.namespace == value) is equal
    if path in selectable:
        index = selectable.index(path)
        return lambda record: (record.fields[index] == value) is equal
    if kind in LABELLED or selectable:
        raise bad_request(f"field label not supported: {path}")
    said = f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    raise bad_request(said)


LABELLED = frozenset({"Pod", "Node", "Event", "Namespace", "Secret", "Service", "ReplicaSet", "Job"})
"""Kinds with selectable fields of their own, which word their refusal differently."""


def object_selector(selector: Any) -> LabelTest:
    """The test of a metav1.LabelSelector ({matchLabels, matchExpressions}); null matches nothing, {} everything."""
    if selector is None:
        return lambda labels: False
    wanted: dict[str, str] = dict(selector.get("matchLabels") or {})
    expressions = [
        (each["key"], each["operator"], frozenset(each.get("values") or ())) for each in selector.get("matchExpressions") or ()
    ]

    def test(labels: Labels) -> bool:
        if any(labels.get(key) != value for key, value in wanted.items()):
            return False
        return all(_expression(labels, *each) for each in expressions)

    return test


def _expression(labels: Labels, key: str, operator: str, values: frozenset[str]) -> bool:
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    return (key in labels) is (operator == "Exists")
