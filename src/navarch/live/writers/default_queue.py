"""Volcano's queue `default`, made where its API is served and nobody made it, as Volcano's own scheduler does."""

from __future__ import annotations

import logging

from navarch.kube.client import Client
from navarch.kube.errors import AlreadyExists, KubeError
from navarch.live.writers.queue_status import QUEUES

log = logging.getLogger(__name__)


async def make_default_queue(client: Client, name: str) -> bool:
    """Whether the queue is there now."""
    body = {
        "apiVersion": QUEUES.api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True},
    }
    try:
        await client.create(QUEUES, body)
        log.info("made the queue %s, which did not exist", name)
    except AlreadyExists:
        return True
    except KubeError as error:
        log.warning("the queue %s does not exist and could not be made: %s", name, error)
        return False
    return True
