"""Follow a job until it started or ended: a line whenever its pods or the reason for waiting changed."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from navarch.cli.submit.workloads import Found
from navarch.kube.client import Client
from navarch.kube.errors import NotFound
from navarch.kube.resources import PODS
from navarch.views.job_names import VOLCANO_JOB
from navarch.views.workloads import ended

LOOK_SECONDS: Final = 1.0
Object = Mapping[str, Any]


async def follow(
    client: Client, found: Found, least: int, *, until_started: bool, timeout: float | None, tell: Callable[[str], None]
) -> bool | None:
    """Whether it succeeded (or started, if that is waited for); None: the time is over."""
    metadata, kind = found.obj["metadata"], found.kind
    label = "volcano.sh/job-name" if kind.kind == VOLCANO_JOB else "batch.kubernetes.io/job-name"
    end, told = None if timeout is None else time.monotonic() + timeout, ""
    while True:
        try:
            workload = await client.get(kind.resource, metadata["name"], namespace=metadata["namespace"])
        except NotFound:
            tell(f"{found} was deleted")
            return False
        selector = f"{label}={metadata['name']}"
        pods = (await client.list(PODS, namespace=metadata["namespace"], label_selector=selector)).items
        text = progress(pods)
        if text != told:
            tell(text)
            told = text
        over = ended(workload)
        if over is not None:
            tell(f"{found} {'completed' if over else 'failed'}")
            return over
        running = sum((pod.get("status") or {}).get("phase") in ("Running", "Succeeded") for pod in pods)
        if until_started and running >= least:
            tell(f"{found} started")
            return True
        if end is not None and time.monotonic() > end:
            return None
        await asyncio.sleep(LOOK_SECONDS)


def progress(pods: Sequence[Object]) -> str:
    """The pods by phase, and why some wait.

    >>> refused = {"type": "PodScheduled", "status": "False", "message": "no room"}
    >>> progress([{"status": {"phase": "Running"}}, {"status": {"phase": "Pending", "conditions": [refused]}}])
    '1 running, 1 pending: no room'
    """
    if not pods:
        return "no pods yet"
    counts = Counter(_phase(pod) for pod in pods)
    text = ", ".join(
        f"{counts[phase]} {phase}" for phase in ("running", "starting", "pending", "succeeded", "failed") if counts[phase]
    )
    reasons = [message for pod in pods if (message := _refusal(pod))]
    return f"{text}: {min(reasons, key=len)}" if reasons else text


def _phase(pod: Object) -> str:
    phase = str((pod.get("status") or {}).get("phase") or "Pending").lower()
    return "starting" if phase == "pending" and (pod.get("spec") or {}).get("nodeName") else phase


def _refusal(pod: Object) -> str:
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return str(each.get("message") or each.get("reason") or "")
    return ""
