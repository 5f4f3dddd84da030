"""What a recorded case of Volcano holds beside API objects, and a cycle decided with it.

`inputs` gives times as ages, so the cycle is decided at one fixed moment after all times in the objects.
"""

from __future__ import annotations

import datetime
from typing import Any

from tests.parity.recorded import Case

from navarch.ingest.settings import settings_for
from navarch.installed import installed
from navarch.model.objects.last_runs import put_last_runs
from navarch.offline.cycles import Cycles, Rules
from navarch.offline.manifests import Document
from navarch.offline.plan import Plan
from navarch.offline.policies import read_policy

NOW = 1_709_337_700.0
"""A day after the newest object of the recordings."""
_AGED = ("nodeUsage", "podStartedSecondsAgo", "secondsSinceLastRescheduling")


def cycles_of(case: Case, policy: dict[str, Any], *, asks: bool = False) -> Cycles:
    """The cycles of a case under this policy. `asks`: extenders are asked. Without ages among its inputs, the
    moment is the newest one in the objects."""
    inputs, registry = case.get("inputs", {}), installed()
    now = NOW if any(inputs.get(name) for name in _AGED) else None
    chosen = read_policy(policy, registry)
    rules = Rules(chosen, registry, settings_for(chosen), now, inputs.get("nodeUsage", {}), asks)
    run = Cycles([Document(manifest) for manifest in _objects(case)], rules)
    assert not run.inventory.mistakes and not run.metrics_mistakes
    if "secondsSinceLastRescheduling" in inputs:
        put_last_runs(run.cluster, {"rescheduling": run.now - inputs["secondsSinceLastRescheduling"]})
    return run


def cycle_of(case: Case, policy: dict[str, Any], *, asks: bool = False) -> dict[str, Any]:
    """One cycle, in the form of `navarch.plan(...).to_dict()`."""
    found: dict[str, Any] = Plan([cycles_of(case, policy, asks=asks).decide()], {}).to_dict()["cycles"][0]
    return found


def _objects(case: Case) -> list[dict[str, Any]]:
    """The objects, with the start of pods as a time."""
    started = case.get("inputs", {}).get("podStartedSecondsAgo", {})
    return [_with_start(manifest, started) for manifest in case["objects"]] if started else case["objects"]


def _with_start(manifest: dict[str, Any], started: dict[str, float]) -> dict[str, Any]:
    metadata = manifest["metadata"]
    age = started.get(f"{metadata.get('namespace', 'default')}/{metadata['name']}") if manifest["kind"] == "Pod" else None
    if age is None:
        return manifest
    moment = datetime.datetime.fromtimestamp(NOW - age, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**manifest, "status": {**manifest["status"], "startTime": moment}}
