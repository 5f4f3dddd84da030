"""Groups as they stand in any cluster beside jobs that wait: without pods, suspended, half made, finished, or another scheduler's."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.worlds.explained_clusters import GROUPS
from tests.worlds.random_objects import Object

FOREIGN = "somebody-else"
CREATED = "2026-01-01T01:30:00Z"


def odd_groups(seed: int, dialect: str) -> list[Object]:
    """One group of each kind, in random sizes. None of them can start, and none holds anything."""
    random = Random(f"odd {dialect} {seed}")
    version, annotation = GROUPS[dialect]

    def group(name: str, phase: str = "", least: int | None = None) -> Object:
        spec: Object = {"minMember": random.randint(1, 3) if least is None else least}
        return {
            "apiVersion": version,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default", "creationTimestamp": CREATED},
            "spec": spec,
            **({"status": {"phase": phase}} if phase and dialect != "kai" else {}),
        }

    def pod(name: str, of: str, phase: str = "Pending", **spec: Any) -> Object:
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
        metadata = {"name": name, "namespace": "default", "creationTimestamp": CREATED, "annotations": {annotation: of}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [container], **spec},
            "status": {"phase": phase},
        }

    suspended: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "suspended", "namespace": "default", "uid": "suspended", "creationTimestamp": CREATED},
        "spec": {
            "suspend": True,
            "template": {"spec": {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}},
        },
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "suspended", "uid": "suspended", "controller": True}
    of_suspended = group("suspended", random.choice(("", "Pending", "Inqueue", "Running")))
    of_suspended["metadata"]["ownerReferences"] = [owner]
    return [
        group("empty", random.choice(("", "Pending", "Inqueue"))),
        suspended,
        of_suspended,
        group("half", "Pending", 3),
        *(pod(f"half-{number}", "half") for number in range(random.randint(1, 2))),
        group("finished", random.choice(("Running", "Completed"))),
        *(pod(f"finished-{number}", "finished", "Succeeded") for number in range(random.randint(1, 2))),
        group("gone", "Completed"),  # its pods went with a deleted node
        group("foreign", "Pending", 1),
        pod("foreign-0", "foreign", schedulerName=FOREIGN),
    ]


ODD = ("empty", "suspended", "half", "finished", "gone", "foreign")
