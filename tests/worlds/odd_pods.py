"""Pods that cannot be read as a whole."""

from __future__ import annotations

ODD = {"type": "example.com/Odd", "status": "True", "lastTransitionTime": "0000-01-01T00:00:00Z"}
