"""Navarch: a batch scheduler for Kubernetes.

`navarch.plan(objects)` decides for decoded manifests, `navarch.explain(objects, job)` says why a job waits, and
`navarch.simulate(trace, cluster, policies)` plays a trace in virtual time. A function is imported when it is first asked for, so
`import navarch` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from navarch.explanation.explain import explain
    from navarch.explanation.result import Explanation
    from navarch.offline.plan import Plan, PlanError, plan
    from navarch.simulator.simulate import SimulationResult, simulate
    from navarch.version import version as _version

    __version__ = _version()

_PUBLIC = {
    "Explanation": "navarch.explanation.result",
    "Plan": "navarch.offline.plan",
    "PlanError": "navarch.offline.plan",
    "SimulationResult": "navarch.simulator.simulate",
    "explain": "navarch.explanation.explain",
    "plan": "navarch.offline.plan",
    "simulate": "navarch.simulator.simulate",
}
"""Public name -> the module that defines it."""

__all__ = ["Explanation", "Plan", "PlanError", "SimulationResult", "__version__", "explain", "plan", "simulate"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("navarch.version").version()
    if name not in _PUBLIC:
        raise AttributeError(f"module 'navarch' has no attribute {name!r}")
    found = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
