"""The rows that a user asks for: by name, by labels, sorted by a column or a field.

`jobs`, `queues` and `nodes` share these rules. They follow kubectl: NAME or KIND/NAME, `-l key=value,key in (a, b)`, `--sort-by`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Protocol, TypeVar

import click

from navarch.cli.cluster.options import ClusterOptions
from navarch.cli.tables.columns import TableForm
from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.selectors import parse_labels

Labels = Mapping[str, str]


class Row(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def titles(self) -> frozenset[str]:
        """All that a user may type for it, in lower case: NAME, KIND/NAME ..."""

    @property
    def label_sets(self) -> Sequence[Labels]:
        """Its own labels and those of its parts; a selector that one of them matches selects the row."""

    def to_dict(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=Row)


def selected(rows: Sequence[R], options: ClusterOptions) -> list[R]:
    """Raises BadParameter for a selector that cannot be read."""
    found = list(rows)
    if options.names:
        found = [row for row in found if any(name.lower() in row.titles for name in options.names)]
    if options.selector:
        try:
            test = parse_labels(options.selector)
        except ApiError as error:
            raise click.BadParameter(f"{options.selector!r}: {error.message}", param_hint="-l") from None
        if test is not None:
            found = [row for row in found if any(test(labels) for labels in row.label_sets)]
    return found


def require_names(rows: Sequence[Row], names: Sequence[str], noun: str, where: str) -> None:
    """Raises ClickException for a name that no row has, with one that is spelt alike."""
    for name in names:
        if not any(name.lower() in row.titles for row in rows):
            near = get_close_matches(name.rpartition("/")[2], sorted({row.name for row in rows}), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else " (-A looks in all)" if where else ""
            raise click.ClickException(f"there is no {noun} {name!r}{where}{hint}")


def in_order(rows: Sequence[R], form: TableForm[R], sort_by: str) -> list[R]:
    """Sorted by a column or a field; rows without a value are last. The order of equal rows is kept."""
    if not sort_by:
        return list(rows)
    wanted, reverse = sort_by.removeprefix("-"), sort_by.startswith("-")
    if wanted.startswith((".", "{")):
        path = wanted.strip("{}").strip(".").split(".")
        keyed = [(_field(row.to_dict(), path), row) for row in rows]
        if rows and all(value is None for value, _ in keyed):
            raise click.BadParameter(f"no row has the field {wanted!r}; -o json shows the fields", param_hint="--sort-by")
    else:
        column = next((each for each in form.columns if each.heading.lower() == wanted.lower()), None)
        if column is None:
            known = ", ".join(each.heading.lower() for each in form.columns)
            raise click.BadParameter(f"{wanted!r} is no column; these are: {known}", param_hint="--sort-by")
        value = column.value or column.cell
        keyed = [(value(row), row) for row in rows]
    known_rows = [each for each in keyed if each[0] is not None]
    known_rows.sort(key=lambda each: _comparable(each[0]), reverse=reverse)
    return [row for _, row in known_rows] + [row for value, row in keyed if value is None]


def _comparable(value: Any) -> tuple[int, Any]:
    """Numbers before texts, so that a column of both has an order."""
    return (0, value) if isinstance(value, (int, float)) else (1, value) if isinstance(value, tuple) else (2, str(value))


def _field(found: Any, path: Sequence[str]) -> Any:
    for part in path:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
