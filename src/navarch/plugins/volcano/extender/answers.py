"""Answers of a Volcano extender, decoded and checked. A server may answer anything: what cannot be read is a failure.

Extenders exist that were written against Volcano's reader, so answers are read as it reads them: names of fields in any case, `null`
for what is absent, and nothing behind the first JSON value.
"""

from __future__ import annotations

import json
import math
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from navarch.engine.points.conversation import Answer


class PredicateAnswer(Struct, frozen=True):
    """`status` is the message of a refusal. Codes: 1 error, 2 unschedulable, 3 no eviction can help."""

    status: str | None = None
    code: int | None = None


class PrioritizeAnswer(Struct, frozen=True, rename="camel"):
    node_score: dict[str, float | None] | None = None
    error_message: str | None = None


class VictimsAnswer(Struct, frozen=True):
    """`status`: -1 rejects, 0 has no opinion, 1 permits the victims."""

    status: int | None = None
    victims: list[dict[str, Any]] | None = None

    @property
    def uids(self) -> set[str]:
        return {str(value) for victim in self.victims or () for name, value in victim.items() if name.lower() == "uid"}


class VoteAnswer(Struct, frozen=True):
    status: int | None = None


class OverusedAnswer(Struct, frozen=True):
    overused: bool | None = None


class ReadyAnswer(Struct, frozen=True):
    status: bool | None = None


class EventAnswer(Struct, frozen=True, rename="camel"):
    error_message: str | None = None


A = TypeVar("A")
LONGEST = 300
"""Characters of a server's message that are told on."""


def read(answer: Answer, kind: type[A]) -> A | str:
    """The answer, or why it is none."""
    if answer.error:
        return answer.error[:LONGEST]
    try:
        found = msgspec.convert(_named(_first_value(answer.body), kind), kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return f"found {answer.body[:40]!r}, expected a JSON answer ({error})"[:LONGEST]
    if isinstance(found, PrioritizeAnswer) and not all(math.isfinite(score or 0) for score in (found.node_score or {}).values()):
        return "found a score that is no number"
    return found


def _first_value(body: str) -> Any:
    """The first JSON value of the body; what follows it is not read."""
    try:
        return msgspec.json.decode(body.encode())
    except msgspec.DecodeError:
        value, _ = json.JSONDecoder().raw_decode(body.lstrip())
        return value


def _named(value: Any, kind: type[Any]) -> Any:
    """The value with the names of the kind's fields, whatever case the server wrote them in. `null` says nothing."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        return value
    names = {name.lower(): name for name in kind.__struct_encode_fields__}
    return {names[name.lower()]: each for name, each in value.items() if each is not None and name.lower() in names}
