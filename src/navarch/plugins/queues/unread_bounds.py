"""Warnings about what queue objects say and the policy does not enforce.

proportion and capacity read the fields of Volcano's Queue. The quotas, limits and weights of KAI's Queue count under KAI's own
proportion alone. A cluster that moves from one policy to another keeps its objects, so the difference must be seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.engine.queue import Queue

_NAMED = 5
"""How many queues a warning names."""


def unread_shares(queues: Sequence[Queue], plugin: str) -> list[str]:
    """A warning if some queues have quotas or limits in KAI's form."""
    bounded = [q for q in queues if any(share.quota > 0 or share.limit >= 0 for share in q.spec.shares.values())]
    if not bounded:
        return []
    return [
        f"{_named(bounded)}: spec.resources (quotas, limits and weights of scheduling.run.ai) are not in effect:"
        f" {plugin} does not read them, --policy kai does"
    ]


def unread_tree(queues: Sequence[Queue], plugin: str) -> list[str]:
    """A warning if some queues have a capability that is meant for the queues below them, and the plugin divides no tree."""
    parents = {queue.spec.parent for queue in queues}
    bounded = [queue for queue in queues if queue.name in parents and queue.spec.capability]
    if not bounded:
        return []
    return [
        f"{_named(bounded)}: spec.capability does not bound the queues below: {plugin} divides no tree of queues,"
        " capacity with enableHierarchy does"
    ]


def _named(queues: Sequence[Queue]) -> str:
    names = [queue.name for queue in queues]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Queue{'s' if len(names) > 1 else ''} {', '.join(names[:_NAMED])}{more}"
