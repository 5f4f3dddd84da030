"""CRDs that come and go during tests, on a server that others use afterwards.

A kube-apiserver stores a CRD, answers for its kind and names it in discovery: three moments, and a CRD that goes passes them again in
no order of their own. Between them one part of the server denies what another one still says, so a test that makes or takes a CRD here
waits for all three: a test never meets a kind that another test is just losing.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from navarch.kube.client import Client
from navarch.kube.errors import NotFound
from navarch.kube.resources import CRDS, Resource

SECONDS = 120.0


def plain_crd(resource: Resource, kind: str) -> dict[str, Any]:
    """An operator's CRD that takes whatever it is given."""
    names = {"kind": kind, "plural": resource.plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": resource.version, "served": True, "storage": True, "schema": schema}
    spec = {
        "group": resource.group,
        "names": names,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "versions": [version],
    }
    metadata = {"name": name_of(resource)}
    return {"apiVersion": CRDS.api_version, "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}


def name_of(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}"


async def serve(client: Client, resource: Resource, kind: str) -> None:
    """A plain CRD, until the server serves its kind."""
    await client.create(CRDS, plain_crd(resource, kind))
    await until_served(client, resource)


async def withdraw(client: Client, resource: Resource) -> None:
    """Take a CRD away, if it is there, until nothing of the server knows its kind."""
    with contextlib.suppress(NotFound):  # and waited for all the same: another's deletion may be under way
        await client.delete(CRDS, name_of(resource))
    await until_withdrawn(client, resource)


async def until_served(client: Client, *resources: Resource) -> None:
    async with asyncio.timeout(SECONDS):
        for resource in resources:
            while not all(await _signs(client, resource)):
                await asyncio.sleep(0.02)


async def until_withdrawn(client: Client, *resources: Resource) -> None:
    async with asyncio.timeout(SECONDS):
        for resource in resources:
            while any(await _signs(client, resource)):
                await asyncio.sleep(0.02)


async def _signs(client: Client, resource: Resource) -> tuple[bool, ...]:
    """Whether the CRD is stored, is established, has its kind answered for and has it named by discovery."""
    return *await _stored(client, resource), await _answered(client, resource), await client.discovery.serves(resource)


async def _stored(client: Client, resource: Resource) -> tuple[bool, bool]:
    try:
        crd: dict[str, Any] = await client.get(CRDS, name_of(resource))
    except NotFound:
        return False, False
    conditions = {each["type"]: each["status"] for each in crd.get("status", {}).get("conditions") or ()}
    return True, conditions.get("Established") == "True"


async def _answered(client: Client, resource: Resource) -> bool:
    try:
        await client.list(resource)
    except NotFound:
        return False
    return True
