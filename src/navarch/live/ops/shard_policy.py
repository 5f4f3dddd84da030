"""KAI's SchedulingShard as the policy of a live scheduler: read from the API server with the Config beside it."""

from __future__ import annotations

from typing import Any

import msgspec

from navarch.engine.policy import PolicyError
from navarch.engine.policy.values import Mistake
from navarch.kube.client import Client
from navarch.kube.errors import NotFound, NotServed
from navarch.kube.resources import Resource

SHARDS = Resource("kai.scheduler", "v1", "schedulingshards", namespaced=False)
CONFIGS = Resource("kai.scheduler", "v1", "configs", namespaced=False)
EVERY = 10.0
"""Seconds between two looks at the objects."""


async def read_shard(client: Client, name: str) -> str:
    """The text of a list with the shard and the Config. Raises PolicyError if there is no such shard."""
    try:
        shard = await client.get(SHARDS, name)
    except (NotFound, NotServed):
        shards = await _all(client, SHARDS)
        found = ", ".join(sorted(each["metadata"]["name"] for each in shards)) or "none"
        raise PolicyError("--shard", [Mistake(f"found {found}, expected SchedulingShard {name} in the cluster")]) from None
    configs = sorted(await _all(client, CONFIGS), key=lambda each: str(each["metadata"]["name"]))
    items = [{**_kept(shard), "kind": "SchedulingShard"}, *({**_kept(each), "kind": "Config"} for each in configs[:1])]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}).decode()


async def _all(client: Client, resource: Resource) -> list[dict[str, Any]]:
    try:
        return (await client.list(resource)).items
    except NotFound:  # the kind is not served
        return []


def _kept(manifest: dict[str, Any]) -> dict[str, Any]:
    """What a policy reads: status and time stamps change without a new policy."""
    spec = manifest.get("spec") or {}
    return {"apiVersion": SHARDS.api_version, "metadata": {"name": manifest["metadata"]["name"]}, "spec": spec}
