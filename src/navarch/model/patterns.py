"""Regular expressions that come from objects, on an engine that runs in linear time.

Every user who may create an object may put a pattern into it. Python's `re` backtracks: `(a+)+$` on thirty letters takes minutes. RE2
has the syntax of Go's regexp package, which the API and Volcano use, and its time is bounded by text times program.
The library is imported with the first pattern: most clusters have none, and the import takes about 15 ms.

>>> compile_pattern("^rack-[0-9]+$").search("rack-12")
True
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_MEMORY = 512 << 10
"""Bytes that a compiled pattern may take, with the states that its searches add. RE2 refuses a pattern whose program is larger. With
RE2's default of 8 MiB the patterns of one namespace took more memory than the scheduler has; no search became slower."""
_KEPT = 128
"""Patterns that are kept compiled: 64 MiB at most. Compiling one anew takes about 50 us."""


class PatternError(ValueError):
    """A text that is not a regular expression; says why."""


class Pattern:
    """A compiled pattern. `size` is the number of its instructions: a search takes at most size times length steps."""

    __slots__ = ("_compiled", "size")

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.size: int = compiled.programsize

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self._compiled.search(text.encode("utf-8", "replace")) is not None


@lru_cache(maxsize=_KEPT)
def compile_pattern(text: str) -> Pattern:
    import re2

    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = True
    try:
        return Pattern(re2.compile(text.encode(), options))
    except UnicodeEncodeError:
        raise PatternError("it is not valid Unicode") from None
    except re2.error as error:
        raise PatternError(error.args[0].decode(errors="replace") if error.args else "it cannot be compiled") from None
