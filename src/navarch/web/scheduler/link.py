"""What only the scheduler knows: its leader, the time of its cycles, its last decisions."""

from __future__ import annotations

from typing import Any


class SchedulerLink:
    """The scheduler as last asked. `reason`: why it cannot be asked; empty: it can."""

    def __init__(self) -> None:
        self.reason = "no scheduler is named; --scheduler URL names one"

    def summary(self) -> dict[str, Any]:
        return {
            "available": not self.reason,
            "reason": self.reason,
            "leader": None,
            "cycleSeconds": None,
            "bindsPerSecond": None,
            "failedWrites": None,
        }

    def decisions(self) -> list[dict[str, Any]] | None:
        return None

    def cycles(self) -> list[dict[str, Any]] | None:
        return None
