"""When rules that act once an interval did so last, so that a recorded cycle replays with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from navarch.model.cluster import Cluster

LAST_RUN: Final = "LastRun"
"""Kind of these objects. The name is that of the rule, the value the moment in seconds since the epoch. The shell puts them after a
cycle whose record names the rule, and at the start of a live scheduler."""

RULES: Final = ("rescheduling",)
"""Rules of this kind. After the start of a live scheduler they wait one interval."""


def put_last_runs(cluster: Cluster, runs: Mapping[str, float]) -> None:
    """Note that these rules acted at these moments."""
    for rule, moment in sorted(runs.items()):
        cluster.put_object(LAST_RUN, "", rule, moment)
