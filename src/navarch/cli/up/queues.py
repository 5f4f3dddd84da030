"""The queues that a fresh installation of KAI has, for an embedded cluster that runs its policy.

Under that policy a queue without stated shares has no resources, and pods that name no queue are in `default-queue`. Without these two
queues an empty cluster would refuse every pod until the user creates queues.
"""

from __future__ import annotations

from typing import Any

from navarch.apis.kai.pod_grouper import DEFAULT_QUEUE
from navarch.embedded.api.operations import Operations

QUEUES = "queues.scheduling.run.ai"
PARENT = "default-parent-queue"
_UNBOUNDED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def ensure_kai_queues(operations: Operations) -> None:
    """Create a parent and its child, both without limits, if there is no KAI queue yet."""
    if operations.store.count(QUEUES):
        return
    kind = operations.kind(QUEUES)
    for name, parent in ((PARENT, {}), (DEFAULT_QUEUE, {"parentQueue": PARENT})):
        resources = dict.fromkeys(("cpu", "memory", "gpu"), _UNBOUNDED)
        body: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        operations.create(kind, "", {**body, "spec": {**parent, "resources": resources}})
