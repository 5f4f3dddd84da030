"""Nodes of this scheduler's shard, where nodes are shared out between schedulers (`shardingMode`).

They are the nodes that `nodesInShard` lists and those that the NodeShard called `shardName` wants (`spec.nodesDesired`). A node that
another shard still uses (`status.nodesInUse`) is not ours yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from navarch.engine.policy.values import Policy
from navarch.model.snapshot import Snapshot

NODE_SHARD = "NodeShard"


def shard_nodes(snapshot: Snapshot, policy: Policy) -> tuple[set[str], list[str]]:
    """Names of our nodes, and what is wrong with the shard."""
    listed = policy.param("nodesInShard")
    own = set(listed) if isinstance(listed, Iterable) and not isinstance(listed, str) else set()
    name = str(policy.param("shardName"))
    if not name:
        return own, [] if own else ["shardingMode is set, but neither shardName nor nodesInShard: no node is in the shard"]
    shards: Mapping[Any, Mapping[str, Any]] = snapshot.objects.get(NODE_SHARD, {})
    found = shards.get(("", name))
    if found is None:
        return own, [] if own else [f"NodeShard {name} does not exist: no node is in the shard"]
    wanted = set(_names(found, "spec", "nodesDesired"))
    others = {node for (_, other), shard in shards.items() if other != name for node in _names(shard, "status", "nodesInUse")}
    return own | (wanted - others), []


def _names(shard: Mapping[str, Any], part: str, field: str) -> list[str]:
    return [str(node) for node in (shard.get(part) or {}).get(field) or ()]
