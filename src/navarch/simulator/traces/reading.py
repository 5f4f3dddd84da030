"""What readers of traces share: the window of time, rows with their lines, and mistakes that name line and field."""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path

from msgspec import Struct, field

from navarch.simulator.jobs import TraceJob

MOST_SHOWN = 20
GZIP = b"\x1f\x8b"
"""The first bytes of a file that gzip wrote."""
LAST_MOMENT = 253402300799.0
"""The last second of the year 9999. A larger number is most often a time in milliseconds."""
LONGEST = 1e10
"""Seconds, some 300 years: no job of a trace runs longer."""
LARGEST = 1e12
"""No other number of a trace is larger: as MiB of memory it still fits in 64 bits of bytes."""


class TraceError(ValueError):
    """A trace that cannot be used: `mistakes` has one line for each thing wrong."""

    def __init__(self, path: str, mistakes: Sequence[str]) -> None:
        self.path = path
        self.mistakes = list(mistakes)
        shown = [f"{path}: {mistake}" for mistake in self.mistakes[:MOST_SHOWN]]
        if len(self.mistakes) > MOST_SHOWN:
            shown.append(f"{path}: {len(self.mistakes) - MOST_SHOWN} more mistakes")
        super().__init__("\n".join(shown))

    def __reduce__(self) -> tuple[type[TraceError], tuple[str, list[str]]]:
        """A process that runs a part of a sweep sends it to the one that asked."""
        return type(self), (self.path, self.mistakes)


class Window(Struct, frozen=True):
    """From `start` to `end`, both included; seconds since the epoch."""

    start: float = -math.inf
    end: float = math.inf

    def holds(self, moment: float) -> bool:
        return self.start <= moment <= self.end


class Trace(Struct):
    """Jobs in order of submission. `outside`: how many lie outside the window."""

    jobs: list[TraceJob]
    outside: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """Why rows were left out -> how many."""


class RowError(ValueError):
    """One field of one row is wrong."""


class TraceReader:
    """Collects the jobs of a trace, and mistakes. Rows outside the window, or left out for another reason, are counted."""

    def __init__(self, path: str, window: Window) -> None:
        self._path = path
        self._window = window
        self._jobs: list[TraceJob] = []
        self._mistakes: list[str] = []
        self._left_out: Counter[str] = Counter()
        self._outside = 0

    def mistake(self, line: int, error: Exception | str) -> None:
        """The row at this line cannot be read. `error` begins with the field, or with a colon."""
        self._mistakes.append(f"line {line}{'' if str(error).startswith(':') else ' '}{error}")

    def holds(self, submit: float) -> bool:
        """Whether a job submitted then is in the window; otherwise it is counted as outside."""
        inside = self._window.holds(submit)
        self._outside += not inside
        return inside

    def leave_out(self, reason: str) -> None:
        self._left_out[reason] += 1

    def add(self, job: TraceJob) -> None:
        """A job in the window."""
        self._jobs.append(job)

    def trace(self) -> Trace:
        """Raises TraceError with every mistake. Jobs are ordered by submission, then by their place in the file."""
        if self._mistakes:
            raise TraceError(self._path, self._mistakes)
        return Trace(sorted(self._jobs, key=_submission), self._outside, left_out=dict(self._left_out))


def _submission(job: TraceJob) -> tuple[float, int]:
    return job.submit, job.line


def lines_of(path: str) -> list[str]:
    """Lines of a text file, without their ends. It may be compressed with gzip; a byte order mark is no part of the text."""
    try:
        with Path(path).open("rb") as file:
            packed = file.read(len(GZIP)) == GZIP
            file.seek(0)
            text = TextIOWrapper(gzip.GzipFile(fileobj=file) if packed else file, encoding="utf-8-sig")
            return [line.removesuffix("\n") for line in text]
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except (EOFError, zlib.error) as error:
        reason = f"gzip cannot read it: {error}"
    except OSError as error:
        reason = error.strerror or str(error)
    raise TraceError(path, [f"expected a file that can be read, but: {reason}"])


def rows_of(
    path: str, mistake: Callable[[int, str], None], columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a CSV file with their line numbers. All columns must be there and no others than the optional ones. `mistake` is told of
    rows with more fields than there are columns."""
    lines = lines_of(path)
    reader = csv.reader(lines)
    header = next(reader, [])
    missing = [name for name in columns if name not in header]
    unknown = [name for name in header if name not in columns and name not in optional]
    needed = 1 + max((header.index(name) for name in columns if name in header), default=0)
    twice = [name for name, count in Counter(header).items() if count > 1]
    if missing or unknown or twice:
        wrong = [f"line 1 column {name}: found nothing, expected it" for name in missing]
        wrong += [f"line 1 column {name}: expected one of {', '.join((*columns, *optional))}" for name in unknown]
        wrong += [f"line 1 column {name}: found it twice, expected it once" for name in twice]
        raise TraceError(path, wrong)
    try:
        for row in reader:
            if len(row) > len(header) or 0 < len(row) < needed:
                mistake(reader.line_num, f": found {len(row)} fields, expected {len(header)}")
            elif row:
                yield reader.line_num, dict(zip(header, row))
    except csv.Error as error:
        mistake(reader.line_num, f": {error}; is a quotation mark not closed?")


def number(row: dict[str, str], name: str, *, least: float = 0.0, most: float = LARGEST, whole: bool = False) -> float:
    """The number in a field."""
    text = row.get(name, "")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or not least <= value <= most or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        limits = f"up to {most:,.0f}" if value > most else f"of {least:g} or more"
        raise RowError(f"{name}: found {text!r}, expected {kind} {limits}")
    return value


def moment(row: dict[str, str], name: str) -> float:
    """The time in a field, such as 2017-10-09 07:01:55, as seconds since the epoch. UTC where no zone is given."""
    text = row.get(name, "")
    try:
        return seconds_of(text)
    except ValueError:
        raise RowError(f"{name}: found {text!r}, expected a time such as 2017-10-09 07:01:55") from None


def seconds_of(text: str) -> float:
    """A time as seconds since the epoch. UTC where no zone is given. Raises ValueError.

    >>> seconds_of("1970-01-01T02:00:00+02:00"), seconds_of("1970-01-02")
    (0.0, 86400.0)
    """
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
