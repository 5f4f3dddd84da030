"""Answers of a Volcano extender, decoded and checked. A server may answer anything: what cannot be read is a failure."""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from navarch.engine.points.conversation import Answer


class PredicateAnswer(Struct, frozen=True):
    """`status` is the message of a refusal. Codes: 1 error, 2 unschedulable, 3 no eviction can help."""

    status: str | None = None
    code: int | None = None


class PrioritizeAnswer(Struct, frozen=True, rename="camel"):
    node_score: dict[str, float] | None = None
    error_message: str | None = None


class Victim(Struct, frozen=True):
    uid: str = field(default="", name="UID")


class VictimsAnswer(Struct, frozen=True):
    """`status`: -1 rejects, 0 has no opinion, 1 permits the victims."""

    status: int | None = None
    victims: list[Victim] | None = None


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
        found = msgspec.json.decode(answer.body.encode(), type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"found {answer.body[:40]!r}, expected a JSON answer ({error})"[:LONGEST]
    if isinstance(found, PrioritizeAnswer) and not all(math.isfinite(score) for score in (found.node_score or {}).values()):
        return "found a score that is no number"
    return found
