"""Pods whose owner has not been shown yet: where its kind is watched they wait for it, since it says how many of them form a gang."""

from __future__ import annotations

from typing import Any

from tests.worlds.live_parts.cluster_cache import cache

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.operators.readers import KINDS
from navarch.ingest.absent_jobs import absent
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.absent_jobs import absent_rows

KEY = "default/pytorchjob/llm"
PYTORCH = next(kind for kind in KINDS if kind.kind == "PyTorchJob")


def pod(name: str) -> Pod:
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "llm", "uid": "u", "controller": True}
    labels = {"kai.scheduler/queue": "team"}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels, "ownerReferences": [owner]}
    spec = {"schedulerName": "navarch", "containers": [{"name": "c"}]}
    return from_manifest({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}, Pod)


def owner(workers: int) -> Any:
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": workers}}}
    manifest = {"metadata": {"name": "llm", "namespace": "default", "uid": "u"}, "spec": spec}
    return PYTORCH.read(from_manifest(manifest, PYTORCH.struct), Settings())


def least(of: ClusterCache) -> int | None:
    """Pods that the gang needs; None: there is no gang."""
    jobs = of.cluster.jobs
    spec = jobs.specs[jobs.rows.of[KEY]]
    return spec.min_member if spec is not None else None


def test_a_pod_waits_until_its_owner_is_shown() -> None:
    made, _ = cache(owners_watched=lambda kind: kind == "PyTorchJob")
    made.put_pod(pod("a"))
    assert least(made) is None
    (row,) = absent_rows(made.cluster)
    (reason,) = absent(KEY, None, made.cluster.jobs.counts[row].tolist()).reasons
    assert reason.message == 'the pytorchjob "default/llm" that owns it is not known, or cannot be read'
    made.put(owner(3))
    assert least(made) == 3
    made.remove(owner(3))
    made.put_pod(pod("b"))
    assert least(made) == 3, "it goes, and so will they"


def test_an_owner_of_an_unwatched_kind_is_not_waited_for() -> None:
    made, _ = cache()
    made.put_pod(pod("a"))
    assert least(made) == 1
    made.put(owner(3))
    assert least(made) == 3


def test_nothing_stays_of_a_pod_that_goes_before_its_owner_comes() -> None:
    made, _ = cache(owners_watched=lambda kind: True)
    made.put_pod(pod("a"))
    made.remove_pod("a")
    assert KEY not in made.cluster.jobs.rows.of
    made.put(owner(3))
    assert KEY not in made.cluster.jobs.rows.of
