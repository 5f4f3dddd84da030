"""What a followed system does by accident, and Navarch does not do in any mode: `navarch policy check` tells it to those who meet it.

docs/parity.md has the same sentences, with what Navarch does instead and how many recorded cases show it.
"""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.policy.values import Policy

NOT_FOLLOWED: Mapping[str, Mapping[str, str]] = {
    "volcano": {
        "undoing an eviction does not bring the pod back for scores, pod count, ports and affinity in this cycle": (
            "preempt reclaim gangpreempt gangreclaim"
        ),
    },
}
"""`compat` -> sentence -> actions and plugins, one of which a policy must have; empty: every policy meets it."""


def not_followed(policy: Policy) -> list[str]:
    used = {*policy.actions, *(option.name for tier in policy.tiers for option in tier)}
    return [text for text, names in NOT_FOLLOWED.get(policy.compat, {}).items() if not names or used & set(names.split())]
