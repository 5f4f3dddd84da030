"""Kubernetes objects as decoded JSON or YAML, and the key by which one of them is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]
"""A decoded object that its holder may change."""
ReadOnlyManifest = Mapping[str, Any]
"""A decoded object that is only read."""
ObjectKey = tuple[str, str]
"""Namespace and name; the namespace is empty for kinds without one."""
