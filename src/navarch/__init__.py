"""Navarch: a batch scheduler for Kubernetes.

`navarch.plan(objects)` decides for decoded manifests; it is imported when first asked for, so that `import navarch` is free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from navarch.plan import Plan, PlanError, plan

__all__ = ["Plan", "PlanError", "plan"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'navarch' has no attribute {name!r}")
    from importlib import import_module

    module = import_module("navarch.plan")
    return module if name == "plan" else getattr(module, name)
