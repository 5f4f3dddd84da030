"""Which jobs a viewer asks for: filters, order and part of the list, from the query of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from multidict import MultiMapping

from navarch.model.spec import Labels, QueueSpec
from navarch.views.queues import ancestors
from navarch.web.errors import invalid
from navarch.web.tables.jobs import CAUSE, ID, NAME, NAMESPACE, NUMBER, QUEUE, STATE, STATES, Row

MOST_TEXT: Final = 200
LabelsOf = Callable[[str], Sequence[Labels]]
"""Key of a job -> labels of its group and of its pods."""


@dataclass(frozen=True)
class JobFilter:
    namespaces: frozenset[str] = frozenset()
    queue: str = ""
    states: frozenset[str] = frozenset()
    text: str = ""
    labels: tuple[tuple[str, str | None], ...] = ()
    """Key and value; without value: the label exists."""

    def matches(self, row: Row, queues: Mapping[str, QueueSpec], labels_of: LabelsOf) -> bool:
        if self.namespaces and row[NAMESPACE] not in self.namespaces:
            return False
        if self.states and row[STATE] not in self.states:
            return False
        if self.queue and row[QUEUE] != self.queue and self.queue not in ancestors(queues, row[QUEUE]):
            return False
        if self.text:
            if not any(self.text in each.lower() for each in (f"{row[NAMESPACE]}/{row[NAME]}", row[QUEUE], row[CAUSE])):
                return False
        if self.labels:
            found = labels_of(row[ID])
            return all(any(key in each and value in (None, each[key]) for each in found) for key, value in self.labels)
        return True

    def __bool__(self) -> bool:
        return self != JobFilter()


def read_filter(query: MultiMapping[str]) -> JobFilter:
    states = frozenset(query.getall("state", ()))
    if states - set(STATES):
        raise invalid(f"state: expected one of {', '.join(STATES)}, found {min(states - set(STATES))!r}")
    text = query.get("text", "")
    if len(text) > MOST_TEXT:
        raise invalid(f"text: expected at most {MOST_TEXT} characters, found {len(text)}")
    labels = []
    for each in query.getall("label", ()):
        key, found, value = each.partition("=")
        if not key:
            raise invalid(f"label: expected KEY or KEY=VALUE, found {each!r}")
        labels.append((key, value if found else None))
    return JobFilter(frozenset(query.getall("namespace", ())), query.get("queue", ""), states, text.lower(), tuple(labels))


@dataclass(frozen=True)
class Part:
    """The order of a list, and the part of it that is asked for."""

    column: int = ID
    descending: bool = False
    offset: int = 0
    limit: int | None = None

    def of(self, rows: Iterable[Row]) -> list[Row]:
        """Sorted, equal rows by id; rows without a value last."""
        found = sorted(rows, key=lambda row: row[ID])
        if self.column != ID or self.descending:
            with_value = [row for row in found if row[self.column] is not None]
            # A reverse sort keeps equal rows in their order, so ids ascend among them.
            with_value.sort(key=lambda row: row[self.column], reverse=self.descending)
            found = with_value + [row for row in found if row[self.column] is None]
        end = None if self.limit is None else self.offset + self.limit
        return found[self.offset : end]


def read_part(query: MultiMapping[str]) -> Part:
    sort = query.get("sort", "id")
    name = sort.removeprefix("-")
    if name not in NUMBER:
        raise invalid(f"sort: expected a column such as created or -created, found {sort!r}")
    offset, limit = _count(query, "offset"), _count(query, "limit")
    return Part(NUMBER[name], sort.startswith("-"), offset or 0, limit)


def _count(query: MultiMapping[str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise invalid(f"{name}: expected a number, found {text!r}")
    return int(text)
