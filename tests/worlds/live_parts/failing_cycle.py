"""A scheduler whose next cycle fails."""

from __future__ import annotations

from navarch.engine.record import CycleRecord


def failing(*_: object, **__: object) -> CycleRecord:
    raise RuntimeError("a plugin's fault")
