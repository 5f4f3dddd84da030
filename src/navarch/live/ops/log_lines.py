"""Log lines of a scheduler on stderr: plain text, or JSON for collectors of logs."""

from __future__ import annotations

import json
import logging
import sys
import time

FIELDS = ("pod", "node", "job", "queue", "cycle", "reason")
"""Fields of JSON log lines, where a line concerns one of them."""


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


def log_to_stderr(log_format: str, level: str) -> None:
    """`log_format`: "json" or "text". `level`: a name as of Python's logging."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("asyncio").setLevel(logging.WARNING)
