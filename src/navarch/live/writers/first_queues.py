"""Creates Volcano's queue `root` and the default queue where its API is served, as Volcano's scheduler does at its start.

Volcano's controllers and webhooks take both for granted: without an object `root` its queue controller fails for every other queue.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from navarch.ingest.queues import ROOT
from navarch.kube.client import Client
from navarch.kube.errors import AlreadyExists, KubeError
from navarch.live.writers.queue_status import QUEUES

log = logging.getLogger(__name__)


async def make_queues(client: Client, names: Iterable[str]) -> None:
    for name in names:
        body = {
            "apiVersion": QUEUES.api_version,
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1, "reclaimable": name != ROOT},
        }
        try:
            await client.create(QUEUES, body)
            log.info("created the queue %s", name)
        except AlreadyExists:
            continue
        except KubeError as error:
            log.warning("the queue %s does not exist and could not be created: %s", name, error)
