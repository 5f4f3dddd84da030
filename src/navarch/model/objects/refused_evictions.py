"""Evictions that the API server refused a moment ago: the pod is no victim until the entry is gone."""

from __future__ import annotations

from typing import Final

REFUSED_EVICTIONS: Final = "RefusedEviction"
"""Kind of these objects. The name is the pod's uid, the value its row in the table of tasks."""
