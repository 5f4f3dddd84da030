"""Traces of jobs: one small reader for each form. A reader yields jobs in order of submission, or says what is wrong, line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from navarch.places import at
from navarch.simulator.traces.reading import Trace, TraceError, Window

READERS: Mapping[str, str] = {
    "jsonl": "navarch.simulator.traces.json_lines:read",
    "openb": "navarch.simulator.traces.openb:read",
    "philly": "navarch.simulator.traces.philly:read",
    "recording": "navarch.simulator.traces.recording:read",
    "swf": "navarch.simulator.traces.swf:read",
}
"""KIND of `KIND:FILE` -> the place of its reader, a function from path and window to `Trace`."""


def read_trace(spec: str, window: Window | None = None) -> Trace:
    """The jobs of `KIND:FILE` that were submitted within the window. Raises `TraceError` with every mistake."""
    kind, colon, path = spec.partition(":")
    if not colon or kind not in READERS:
        raise TraceError(spec, [f"found {spec!r}, expected KIND:FILE with KIND one of {', '.join(READERS)}"])
    reader: Callable[[str, Window], Trace] = at(READERS[kind])
    return reader(path, window or Window())


__all__ = ["READERS", "Trace", "TraceError", "Window", "read_trace"]
