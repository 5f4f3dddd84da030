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
NO_NODE_IN_SHARD = "NoNodeInShard"
"""The code of a refusal by a hard shard without nodes."""
MOST_NAMED = 5
"""Missing nodes that a message names."""


def shard_nodes(snapshot: Snapshot, policy: Policy) -> tuple[set[str], list[str]]:
    """Names of our nodes, and what is wrong with a shard without nodes."""
    listed = policy.param("nodesInShard")
    own = set(listed) if isinstance(listed, Iterable) and not isinstance(listed, str) else set()
    name = str(policy.param("shardName"))
    shards: Mapping[Any, Mapping[str, Any]] = snapshot.objects.get(NODE_SHARD, {})
    found = shards.get(("", name))
    wanted, others = set[str](), set[str]()
    if found is not None:
        wanted = set(_names(found, "spec", "nodesDesired"))
        others = {node for (_, other), shard in shards.items() if other != name for node in _names(shard, "status", "nodesInUse")}
    here = set(snapshot.nodes.names)
    nodes = (own | (wanted - others)) & here
    if nodes:
        return nodes, []
    missing = f"none of nodesInShard exists ({_first_of(sorted(map(str, own)))})" if own else ""
    if missing and found is None and "shardName" not in policy.params:
        return nodes, [f"no node is in the shard of this scheduler: {missing}"]
    if found is None:
        why = f"NodeShard {name} does not exist"
    elif not wanted:
        why = f"NodeShard {name} wants no nodes (spec.nodesDesired)"
    elif wanted & here:
        why = f"other shards still use the nodes of NodeShard {name}"
    else:
        why = f"the nodes of NodeShard {name} do not exist"
    return nodes, [f"no node is in the shard of this scheduler: {why}{f', and {missing}' if missing else ''}"]


def _first_of(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _names(shard: Mapping[str, Any], part: str, field: str) -> list[str]:
    return [str(node) for node in (shard.get(part) or {}).get(field) or ()]
