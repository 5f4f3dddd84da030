"""The kind under which a snapshot holds each queue's usage over time, so that a recorded cycle replays with it."""

from __future__ import annotations

from typing import Final

QUEUE_USAGE: Final = "QueueUsage"
