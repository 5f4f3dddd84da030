"""What the Python functions accept: objects, moments and directories in the forms that people have at hand.

`plan`, `explain` and the command line read them here, so that all mean the same by the same value, and a wrong value gets one line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import UnionType
from typing import Any

from navarch.apis.errors import ObjectError
from navarch.offline.manifests import Document, objects_in, read_paths, read_text

Objects = str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any] | Document | str | Path]
"""A file or directory, YAML or JSON text, one decoded manifest (also a List), or any number of these."""
Moment = float | str | datetime
"""Seconds since the epoch, a time such as 2026-01-01T12:00:00Z, or a datetime. UTC where no zone is given."""


def read_objects(objects: Objects) -> tuple[list[Document], list[ObjectError]]:
    """The single objects, with the items of lists as objects, and the mistakes."""
    documents: list[Document] = []
    mistakes: list[ObjectError] = []
    if isinstance(objects, str | Path | Mapping):
        objects = [objects]
    elif not isinstance(objects, Iterable):
        raise ValueError(f"objects: found {objects!r}, expected a file, a text, a manifest, or any number of these")
    for each in objects:
        found: Iterable[Document | ObjectError]
        if isinstance(each, Document):
            found = (each,)
        elif isinstance(each, Path) or (isinstance(each, str) and not _is_text(each)):
            read, unread = read_paths([each])
            found = [*read, *unread]
        elif isinstance(each, str):
            found = read_text(each, "text")
        else:
            found = objects_in(each)
        for one in found:
            if isinstance(one, ObjectError):
                mistakes.append(one)
            else:
                documents.append(one)
    return documents, mistakes


def _is_text(value: str) -> bool:
    """Whether text is YAML or JSON itself, and not the name of a file."""
    return "\n" in value or value.lstrip().startswith(("{", "[")) or ": " in value


def read_moment(value: Moment, argument: str = "now") -> float:
    """Seconds since the epoch. `argument` begins the message of an error."""
    seconds = math.nan
    try:
        if isinstance(value, str):
            try:
                seconds = float(value)
            except ValueError:
                value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            seconds = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        elif not isinstance(value, str):
            seconds = float(value)
    except (ValueError, OverflowError, TypeError):
        pass
    if not math.isfinite(seconds):
        expected = "seconds since the epoch, a datetime or a time such as 2026-01-01T12:00:00Z"
        raise ValueError(f"{argument}: found {value!r}, expected {expected}")
    return seconds


def read_count(value: object, argument: str, *, least: int = 1) -> int:
    """A whole number that is at least `least`.

    >>> read_count(3, "cycles")
    3
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{argument}: found {value!r}, expected a whole number, at least {least}")
    return value


def read_amount(value: object, argument: str, *, zero: bool = False) -> float:
    """A number above zero, or `zero` itself.

    >>> read_amount(0, "seconds", zero=True)
    0.0
    """
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not (number > 0 or (zero and number == 0)) or math.isinf(number):
        raise ValueError(f"{argument}: found {value!r}, expected a number, {'0 or more' if zero else 'above 0'}")
    return number


def read_directories(value: str | Path | Iterable[str | Path]) -> tuple[Path, ...]:
    """Directories of plugins; each must exist."""
    directories = tuple(map(Path, _several(value, str | Path, "plugin_dirs", "a directory or directories")))
    for each in directories:
        if not each.is_dir():
            raise ValueError(f"plugin_dirs: found {str(each)!r}, expected a directory that exists")
    return directories


def _several(value: Any, kind: type | UnionType, argument: str, expected: str) -> tuple[Any, ...]:
    """One value of this kind, or any number of them."""
    given = (value,) if isinstance(value, kind) else tuple(value) if isinstance(value, Iterable) else None
    if given is None or not all(isinstance(each, kind) for each in given):
        raise ValueError(f"{argument}: found {value!r}, expected {expected}")
    return given
