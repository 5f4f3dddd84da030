"""The Jobs and Volcano Jobs of a cluster, and why their controllers could not create pods: what groups and pods do not tell.

Whoever may not list them, or their events, sees the rows without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from navarch.cli.submit.objects import JOBS, VOLCANO_JOBS
from navarch.kube.client import Client
from navarch.kube.connect import connect
from navarch.kube.errors import KubeError
from navarch.kube.resources import Resource
from navarch.views.workloads import Key, Workload, key_of, workload_of

EVENTS: Final = Resource("", "v1", "events")
FAILED: Final = "FailedCreate"


async def workloads(client: Client, namespace: str | None, name: str = "") -> list[tuple[dict[str, Any], Workload]]:
    """Manifest and standing of each; those of one namespace, and of one name, where these are given."""
    selector = f"metadata.name={name}" if name else ""
    found = [
        {**each, "apiVersion": resource.api_version, "kind": "Job"}
        for resource in (JOBS, VOLCANO_JOBS)
        for each in await _listed(client, resource, namespace, selector)
    ]
    refusals = await _refusals(client, namespace) if found else {}
    return [(each, workload_of(each, refusals)) for each in found]


def standing_of(name: str, namespace: str | None, kubeconfig: Path | None, context: str | None) -> str:
    """Why the Job or Volcano Job of this name has no pods; empty: that is not known."""

    async def work() -> str:
        async with Client(connect(kubeconfig, context)) as client:
            for _, each in await workloads(client, namespace, name):
                if each.why or each.phase:
                    return each.why or f"it is {each.phase}"
        return ""

    return asyncio.run(work())


async def _refusals(client: Client, namespace: str | None) -> Mapping[Key, str]:
    """The last of each workload."""
    events = await _listed(client, EVENTS, namespace, f"reason={FAILED}")
    events.sort(key=lambda each: str(each.get("lastTimestamp") or each["metadata"].get("creationTimestamp") or ""))
    found = {}
    for each in events:
        about = each.get("involvedObject") or {}
        if about.get("kind") == "Job":
            subject = {"apiVersion": about.get("apiVersion", ""), "kind": "Job", "metadata": about}
            found[key_of(subject)] = f"its controller cannot create a pod: {each.get('message', '').removeprefix('Error creating: ')}"
    return found


async def _listed(client: Client, resource: Resource, namespace: str | None, selector: str) -> list[dict[str, Any]]:
    try:
        return list((await client.list(resource, namespace=namespace, field_selector=selector)).items)
    except KubeError:
        return []
