"""Which files of KAI's recorded cases are run, and how many of their texts agree."""

from __future__ import annotations

from tests.parity.recorded import Case

ONE_CYCLE = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction", "random", "random-2")
CYCLES = (*ONE_CYCLE, "integration")
COUNTS = {
    "allocate": (61, 0, 3),
    "consolidation": (1, 0, 0),
    "reclaim": (2, 87, 0),
    "preempt": (1, 90, 0),
    "integration": (136, 76, 9),
    "random": (672, 128, 3),
    "random-2": (215, 35, 0),
}
"""File -> refusals that agree, notes on victims of simulated scenarios, refusals that differ."""


def has_order(case: Case) -> bool:
    return bool(case.get("jobOrder")) and case.get("replayed", True)


def has_shares(case: Case) -> bool:
    """Cases without the plugin recorded what another case left behind; two were recorded before their objects were read."""
    plugins = {plugin["name"] for tier in case["conf"]["tiers"] for plugin in tier["plugins"]}
    return "proportion" in plugins and bool(case.get("fairShare")) and case.get("replayed", True)
