"""Publishes the scheduler's state in the ConfigMap `navarch-state`, for clients (`views/published_state.py`).

The leader writes it beside its cycles, only when something in it changed, and at most every few seconds. A failed write is logged
once and tried again; scheduling does not depend on it.

Where the API server can reach this process, the state names its endpoint, and a Secret has the key for the pages there
(`views/leader_pages.py`). Each process has a key of its own, which the Secret has while it leads.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from navarch.engine.record import QueueFigures
from navarch.kube.client import PatchType
from navarch.kube.errors import Forbidden, KubeError, NotFound
from navarch.kube.resources import Resource
from navarch.live.ops.metrics import MOST_QUEUES
from navarch.model.cluster import Cluster
from navarch.model.status import ON_NODE, TaskStatus
from navarch.model.timestamps import rfc3339
from navarch.version import version
from navarch.views.leader_pages import KEY, SECRETS
from navarch.views.published_state import (
    CONFIG_MAPS,
    Parameters,
    ProxiedEndpoint,
    PublishedState,
    QueueShare,
    published_policy,
    to_config_map,
)
from navarch.views.quantities import quantities

if TYPE_CHECKING:
    from navarch.live.scheduler import Scheduler

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.5
WRITE_SECONDS: Final = 3.0
"""Seconds between two writes, at least."""
RETRY_SECONDS: Final = 30.0
FIELD_MANAGER: Final = "navarch-scheduler"


class StatePublisher:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.key = secrets.token_urlsafe(32)
        self._written: PublishedState | None = None
        self._key_written = False
        self._key_retry_at = 0.0
        self._complaint = ""

    @property
    def namespace(self) -> str:
        return self._scheduler.options.lock_namespace or self._scheduler.client.endpoint.namespace

    @property
    def name(self) -> str:
        return f"{self._scheduler.options.lock_name}-state"

    async def run(self) -> None:
        """Until cancelled."""
        scheduler = self._scheduler
        self._written, self._key_written, self._key_retry_at = None, False, 0.0  # another leader may have written since
        looked_at = -1
        """The cycle whose state is written."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            cycle = scheduler.core.last_cycle
            if cycle is None or cycle.number == looked_at or not scheduler.may_write():
                continue
            looked_at, state = cycle.number, await self._with_key(current_state(scheduler))
            if replace(state, time="") != self._written:
                done = await self._write(state)
                looked_at = looked_at if done else -1
                await asyncio.sleep(WRITE_SECONDS if done else RETRY_SECONDS)

    async def _with_key(self, state: PublishedState) -> PublishedState:
        """Write the key before the state that names our endpoint. Without a key the state does not name it."""
        if state.endpoint is None or self._key_written:
            return state
        if time.monotonic() < self._key_retry_at:
            return replace(state, endpoint=None)
        self._key_retry_at = time.monotonic() + RETRY_SECONDS
        name = f"{self._scheduler.options.lock_name}-pages"
        data = {KEY: base64.b64encode(self.key.encode()).decode()}
        self._key_written = await self._apply(SECRETS, "Secret", name, {"type": "Opaque", "data": data})
        return state if self._key_written else replace(state, endpoint=None)

    async def _write(self, state: PublishedState) -> bool:
        done = await self._apply(CONFIG_MAPS, "ConfigMap", self.name, {"data": to_config_map(state)})
        if done:
            self._written, self._complaint = replace(state, time=""), ""
        return done

    async def _apply(self, resource: Resource, kind: str, name: str, content: dict[str, Any]) -> bool:
        metadata = {"name": name, "namespace": self.namespace, "labels": {"app.kubernetes.io/name": "navarch"}}
        body = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **content}
        client = self._scheduler.client
        try:
            await client.patch(
                resource, name, body, PatchType.APPLY, namespace=self.namespace, field_manager=FIELD_MANAGER, force=True
            )
        except KubeError as error:
            self._complain(error)
            return False
        return True

    def _complain(self, error: KubeError) -> None:
        helps = ""
        if isinstance(error, Forbidden):
            helps = "; `navarch install` grants this right to its account (deploy/rbac.yaml)"
        elif isinstance(error, NotFound):
            helps = f"; --lock-namespace names another namespace than {self.namespace}"
        text = f"the state for `navarch jobs` and other clients is not published: {error}{helps}"
        if text != self._complaint:
            log.warning("%s", text)
        self._complaint = text


def current_state(scheduler: Scheduler) -> PublishedState:
    options, cycle = scheduler.options, scheduler.core.last_cycle
    figures = [] if cycle is None else cycle.record.queues
    return PublishedState(
        version=version(),
        scheduler_names=list(options.scheduler_names),
        policy=published_policy(scheduler.policy_file.policy),
        parameters=Parameters(
            namespace_as_queue=options.namespace_as_queue,
            node_pool_label_key=options.node_pool_label_key,
            partition_label_value=options.partition_label_value,
            gpu_sharing=options.gpu_sharing,
            dry_run=options.dry_run,
        ),
        queues=_shares(figures[:MOST_QUEUES], scheduler.cache.cluster),
        queues_left_out=max(0, len(figures) - MOST_QUEUES),
        leader=scheduler.identity,
        time=rfc3339(scheduler.clock()),
        endpoint=_endpoint(scheduler),
    )


def _endpoint(scheduler: Scheduler) -> ProxiedEndpoint | None:
    resource, _, name = scheduler.options.reached_as.partition("/")
    port = scheduler.operator_server.health.port
    if not name or not port:
        return None
    return ProxiedEndpoint(resource, name, port, "http" if scheduler.options.tls_certificate is None else "https")


def _shares(figures: Sequence[QueueFigures], cluster: Cluster) -> list[QueueShare]:
    jobs = cluster.jobs
    top, size = jobs.rows.top, len(jobs.queue_names)
    queue, counts = jobs.queue[:top], jobs.counts[:top]
    waits = (counts[:, TaskStatus.PENDING] > 0) & (queue >= 0)
    runs = counts[:, ON_NODE].any(axis=1) & (queue >= 0)
    waiting, running = np.bincount(queue[waits], minlength=size), np.bincount(queue[runs], minlength=size)
    found = []
    for each in figures:
        number = jobs.queue_names.get(each.queue, -1)
        found.append(_share(each, *((int(waiting[number]), int(running[number])) if number >= 0 else (0, 0))))
    return found


def _share(figures: QueueFigures, waiting: int, running: int) -> QueueShare:
    return QueueShare(
        queue=figures.queue,
        share=round(figures.share, 4),
        deserved=quantities(figures.deserved),
        allocated=quantities(figures.allocated),
        request=quantities(figures.request),
        fair_share=None if figures.fair_share is None else quantities(figures.fair_share),
        waiting=waiting,
        running=running,
    )
