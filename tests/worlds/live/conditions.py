"""Conditions of objects, as a user reads them."""

from __future__ import annotations

from typing import Any


def conditions(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {c["type"]: c for c in found.get("status", {}).get("conditions") or ()}
