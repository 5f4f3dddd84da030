"""The queues that a fresh installation of KAI has, for an embedded cluster that runs its policy.

Under that policy a queue without stated shares gives nothing, and pods that name no queue are in `default-queue`: without these two
an empty cluster would refuse everything until its user has written queues of his own.
"""

from __future__ import annotations

from typing import Any

from navarch.apis.kai.pod_grouper import DEFAULT_QUEUE
from navarch.embedded.api.operations import Operations

QUEUES = "queues.scheduling.run.ai"
PARENT = "default-parent-queue"
_UNBOUNDED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def ensure_kai_queues(operations: Operations) -> None:
    """A parent and its child, both without bounds, where there is no queue of KAI's yet."""
    if operations.store.count(QUEUES):
        return
    kind = operations.kind(QUEUES)
    for name, parent in ((PARENT, {}), (DEFAULT_QUEUE, {"parentQueue": PARENT})):
        resources = dict.fromkeys(("cpu", "memory", "gpu"), _UNBOUNDED)
        body: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        operations.create(kind, "", {**body, "spec": {**parent, "resources": resources}})
