"""Creates Volcano's queue `default` if its API is served and the queue does not exist, as Volcano's scheduler does."""

from __future__ import annotations

import logging

from navarch.kube.client import Client
from navarch.kube.errors import AlreadyExists, KubeError
from navarch.live.writers.queue_status import QUEUES

log = logging.getLogger(__name__)


async def make_default_queue(client: Client, name: str) -> bool:
    """Returns whether the queue exists now."""
    body = {
        "apiVersion": QUEUES.api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True},
    }
    try:
        await client.create(QUEUES, body)
        log.info("created the queue %s", name)
    except AlreadyExists:
        return True
    except KubeError as error:
        log.warning("the queue %s does not exist and could not be created: %s", name, error)
        return False
    return True
