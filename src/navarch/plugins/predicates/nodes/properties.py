"""Node properties as columns: labels, names, taints and images interned to small numbers.

A rule that reads labels costs a few comparisons of integer arrays. A column is made when a rule first reads its key, and cached in
the snapshot's memo while the nodes' version is the same, so across cycles too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from msgspec import Struct

from navarch.engine.figures import Rows
from navarch.model.label_syntax import parse_int64
from navarch.model.memo import memoised
from navarch.model.resources import BoolArray, IntArray
from navarch.model.selectors import NODE_NAME_FIELD, term_usable
from navarch.model.snapshot import Snapshot
from navarch.model.spec import LabelSelector, NodeSpec, NodeTerm, Requirement, Taint

V = TypeVar("V")


class LabelColumn(Struct, eq=False):
    """One label key over all nodes: `codes` index `values`; nodes without the label have the code `len(values)`."""

    codes: Rows
    values: list[str]
    number: dict[str, int]

    @property
    def absent(self) -> int:
        return len(self.values)

    def present(self) -> BoolArray:
        out: BoolArray = self.codes != len(self.values)
        return out

    def equals(self, values: Iterable[str]) -> BoolArray:
        wanted = [self.number[value] for value in dict.fromkeys(values) if value in self.number]
        flags = np.zeros(len(self.values) + 1, dtype=bool)
        flags[wanted] = True
        return flags[self.codes]

    def where(self, test: Callable[[str], bool]) -> BoolArray:
        """Nodes whose value passes; nodes without the label do not."""
        return np.array([*map(test, self.values), False], dtype=bool)[self.codes]


def column_of(values: Iterable[str | None]) -> LabelColumn:
    number: dict[str, int] = {}
    codes = [-1 if value is None else number.setdefault(value, len(number)) for value in values]
    array = np.array(codes, dtype=np.intp)
    array[array < 0] = len(number)
    return LabelColumn(array, list(number), number)


class NodeProperties:
    """Columns of one version of the nodes, made as rules ask for them."""

    def __init__(self, names: list[str], specs: list[NodeSpec]) -> None:
        self.names = names
        self.specs = specs
        self._labels: dict[str, LabelColumn] = {}
        self._name_row: dict[str, int] | None = None
        self._taints: tuple[Rows, list[tuple[Taint, ...]]] | None = None
        self._unschedulable: BoolArray | None = None
        self._declaring: dict[tuple[str, ...], BoolArray] = {}

    def __len__(self) -> int:
        return len(self.specs)

    def label(self, key: str) -> LabelColumn:
        found = self._labels.get(key)
        if found is None:
            found = self._labels[key] = column_of([spec.labels.get(key) for spec in self.specs])
        return found

    @property
    def unschedulable(self) -> BoolArray:
        if self._unschedulable is None:
            self._unschedulable = np.array([spec.unschedulable for spec in self.specs], dtype=bool)
        return self._unschedulable

    def declares(self, features: tuple[str, ...]) -> BoolArray:
        """Nodes that declare all of these features."""
        found = self._declaring.get(features)
        if found is None:
            wanted = set(features)
            found = np.array([wanted.issubset(spec.declared_features) for spec in self.specs], dtype=bool)
            self._declaring[features] = found
        return found

    @property
    def taints(self) -> tuple[Rows, list[tuple[Taint, ...]]]:
        """(number of each node's taint list, the lists)."""
        if self._taints is None:
            number: dict[tuple[Taint, ...], int] = {}
            codes = [number.setdefault(spec.taints, len(number)) for spec in self.specs]
            self._taints = np.array(codes, dtype=np.intp), list(number)
        return self._taints

    def named(self, names: Iterable[str]) -> BoolArray:
        if self._name_row is None:
            self._name_row = {name: row for row, name in enumerate(self.names)}
        out = np.zeros(len(self.names), dtype=bool)
        out[[self._name_row[name] for name in dict.fromkeys(names) if name in self._name_row]] = True
        return out

    # selectors

    def requirement(self, requirement: Requirement) -> BoolArray:
        """As `selectors.requirement_matches`, over all nodes."""
        column = self.label(requirement.key)
        match requirement.operator:
            case "In":
                return column.equals(requirement.values)
            case "NotIn":
                return ~column.equals(requirement.values)
            case "Exists":
                return column.present()
            case "DoesNotExist":
                return ~column.present()
            case "Gt" | "Lt" if len(requirement.values) == 1:
                bound, greater = parse_int64(requirement.values[0]), requirement.operator == "Gt"

                def beyond(value: str) -> bool:
                    number = parse_int64(value)
                    return number is not None and bound is not None and (number > bound if greater else number < bound)

                return column.where(beyond)
        return np.zeros(len(self), dtype=bool)

    def selector(self, selector: LabelSelector | None) -> BoolArray:
        if selector is None:
            return np.zeros(len(self), dtype=bool)
        out = np.ones(len(self), dtype=bool)
        for requirement in selector.requirements:
            out &= self.requirement(requirement)
        return out

    def term(self, term: NodeTerm, *, names: bool = True) -> BoolArray:
        """Nodes that fit a usable term. `names` False: nodes are looked at without their name (volumes do)."""
        out = np.ones(len(self), dtype=bool)
        for requirement in term.expressions:
            out &= self.requirement(requirement)
        for field in term.fields:
            if field.key == NODE_NAME_FIELD and names:
                inside = self.named(field.values)
            else:
                inside = np.full(len(self), "" in field.values)
            out &= inside if field.operator == "In" else ~inside
        return out

    def terms(self, terms: Iterable[NodeTerm], *, names: bool = True) -> BoolArray:
        """Nodes that fit any usable term; malformed and empty ones are passed over."""
        out = np.zeros(len(self), dtype=bool)
        for term in terms:
            if term_usable(term):
                out |= self.term(term, names=names)
        return out

    def per_taints(self, value: Callable[[tuple[Taint, ...]], int]) -> IntArray:
        """A number for each node that depends on its taints alone."""
        codes, lists = self.taints
        return np.array([value(taints) for taints in lists], dtype=np.int64)[codes]


def node_properties(snapshot: Snapshot) -> NodeProperties:
    """The columns for a snapshot's nodes."""
    nodes = snapshot.nodes
    return memoised(snapshot, "node columns", nodes.version, lambda: NodeProperties(nodes.names, nodes.specs))
