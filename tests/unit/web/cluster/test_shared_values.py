"""Tasks of equal pods share their values, and are otherwise what any reader makes of the pod."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.ingest.pod_reader import PodReader
from navarch.web.cluster.shared_values import KEPT_CONDITIONS, SharingReader


def pod(name: str) -> Pod:
    conditions = [{"type": each, "status": "True", "lastTransitionTime": "2026-11-16T06:00:00Z"} for each in ("PodScheduled", "Ready")]
    body: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "".join(["m", "l"]),
            "uid": name,
            "labels": {"app": "train", "user": "jane"},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}],
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Running", "conditions": conditions},
    }
    return from_manifest(body, Pod)


def test_values_are_shared_and_equal() -> None:
    reader = SharingReader(Settings())
    first, second = reader.read(pod("a")), reader.read(pod("b"))
    plain = PodReader(Settings()).read(pod("a"))
    assert first is not None and second is not None and plain is not None
    assert first.labels is second.labels
    assert first.owner is second.owner
    assert first.conditions is second.conditions
    assert first.node is second.node
    kept = tuple(each for each in plain.conditions if each[0] in KEPT_CONDITIONS)
    assert first == replace(plain, conditions=kept)
