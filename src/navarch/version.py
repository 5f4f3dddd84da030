"""Which Navarch this is: for a person, for a metric, and for a recording that is decided again by a later one."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version


@cache
def version() -> str:
    """As the package says; `unknown` where it runs without having been installed."""
    try:
        return installed_version("navarch")
    except PackageNotFoundError:
        return "unknown"
