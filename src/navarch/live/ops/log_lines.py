"""Log lines of a scheduler on stderr: plain text, or JSON for collectors of logs.

A fault that lasts says the same line again and again, up to thousands of times a second. Of equal lines `MOST_ALIKE` are written in
`ALIKE_SECONDS`; then one line says how often the others came.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from copy import copy

FIELDS = ("pod", "node", "job", "queue", "cycle", "reason")
"""Fields of JSON log lines, where a line concerns one of them."""

MOST_ALIKE = 10
ALIKE_SECONDS = 60.0
MOST_REMEMBERED = 1000


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: found for name in FIELDS if (found := getattr(record, name, None)) not in (None, "")},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class CollapsingHandler(logging.Handler):
    """Passes lines that repeat on to `target` a bounded number of times. `clock` counts seconds."""

    def __init__(self, target: logging.Handler, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(target.level)
        self._target, self._clock = target, clock
        self._alike: OrderedDict[tuple[str, int, str], _Alike] = OrderedDict()
        """By logger, level and text, the oldest first."""

    def emit(self, record: logging.LogRecord) -> None:
        now = self._clock()
        self._end(before=now - ALIKE_SECONDS)
        key = record.name, record.levelno, record.getMessage()
        alike = self._alike.setdefault(key, _Alike(now, record))
        alike.count += 1
        if alike.count <= MOST_ALIKE:
            self._target.handle(record)
        if len(self._alike) > MOST_REMEMBERED:
            self._end_one()

    def close(self) -> None:
        self._end(before=float("inf"))
        self._target.close()
        super().close()

    def _end(self, before: float) -> None:
        while self._alike and next(iter(self._alike.values())).since <= before:
            self._end_one()

    def _end_one(self) -> None:
        (_, _, text), alike = self._alike.popitem(last=False)
        if (more := alike.count - MOST_ALIKE) > 0:
            record = copy(alike.record)
            record.msg, record.args, record.exc_info = f"{text} ({more} more times in {ALIKE_SECONDS:g} s)", (), None
            self._target.handle(record)


class _Alike:
    def __init__(self, since: float, record: logging.LogRecord) -> None:
        self.since, self.record, self.count = since, record, 0


def log_to_stderr(log_format: str, level: str) -> None:
    """`log_format`: "json" or "text". `level`: a name as of Python's logging."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [CollapsingHandler(handler)]
    root.setLevel(level.upper())
    logging.getLogger("asyncio").setLevel(logging.WARNING)
