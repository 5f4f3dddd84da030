"""Whose a group without pods is: its Job says it, and pods say it better."""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.live_parts.cluster_cache import cache

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.operators.workload import PodMaker
from navarch.apis.registry import KINDS
from navarch.apis.volcano.job_schedulers import KIND, Job
from navarch.apis.volcano.podgroups import PodGroup, read_pod_group
from navarch.live.cache.cluster_cache import ClusterCache

OURS = Settings(scheduler_names=frozenset({"navarch"}))
OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "u", "controller": True}


def put_group(into: ClusterCache, owner: dict[str, Any] | None = OWNER) -> Any:
    metadata = {"name": "g", "namespace": "default", "ownerReferences": [owner] if owner else []}
    spec = read_pod_group(from_manifest({"metadata": metadata, "spec": {"minMember": 2}}, PodGroup), Settings())
    into.put(spec, 1)
    return spec


def maker(scheduler: str | None, *of_tasks: str | None) -> PodMaker:
    tasks = [{"name": f"t{i}", "template": {"spec": {"schedulerName": name} if name else {}}} for i, name in enumerate(of_tasks)]
    manifest = {"metadata": {"name": "train", "namespace": "default"}, "spec": {"schedulerName": scheduler, "tasks": tasks}}
    read = KIND.read(from_manifest(manifest, Job), Settings())
    assert isinstance(read, PodMaker)
    return read


def takes_part(of: ClusterCache) -> bool:
    jobs = of.cluster.jobs
    row = jobs.rows.of.get("default/g")
    return row is not None and jobs.specs[row] is not None


@pytest.mark.parametrize(
    ("scheduler", "of_tasks", "ours"),
    [
        ("navarch", (None,), True),
        ("volcano", (None,), False),
        ("volcano", (None, "navarch"), True),
        ("navarch", ("volcano",), False),
        (None, (None,), False),
        ("navarch", (), True),
    ],
)
def test_a_group_without_pods_belongs_to_the_schedulers_that_its_job_names(
    scheduler: str | None, of_tasks: tuple[str, ...], ours: bool
) -> None:
    for group_first in (True, False):
        made, _ = cache(settings=OURS)
        if group_first:
            put_group(made)
            assert not takes_part(made)
        made.put(maker(scheduler, *of_tasks), 1)
        if not group_first:
            put_group(made)
        assert takes_part(made) is ours
        assert made.is_foreign_group("default/g") is not ours


def member(scheduler: str, **spec: str) -> Pod:
    pod = {
        "metadata": {"name": "p", "namespace": "default", "uid": "p", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "c"}], **spec},
        "status": {"phase": "Running" if spec else "Pending"},
    }
    return from_manifest(pod, Pod)


def test_a_group_without_an_owner_waits_for_a_pod_of_this_scheduler() -> None:
    made, _ = cache(settings=OURS)
    put_group(made, owner=None)
    assert not takes_part(made) and made.is_foreign_group("default/g")
    made.put_pod(member("navarch"))
    assert takes_part(made) and not made.is_foreign_group("default/g")
    made.remove_pod("p")
    assert takes_part(made), "its next pod comes soon"


def test_pods_that_are_ours_make_the_group_ours() -> None:
    made, _ = cache(settings=OURS)
    put_group(made)
    made.put_pod(member("navarch"))
    assert takes_part(made) and not made.is_foreign_group("default/g")


@pytest.mark.parametrize(
    ("kind", "of_roles", "served", "ours"),
    [
        ("PyTorchJob", ("navarch", None), "navarch", True),
        ("PyTorchJob", ("volcano", None), "navarch", False),
        ("PyTorchJob", (None,), "navarch", False),
        ("PyTorchJob", (None,), "volcano", True),
        ("PaddleJob", (), "volcano", True),
        ("PaddleJob", (), "navarch", False),
    ],
)
def test_the_owner_says_it_as_its_operator_does(kind: str, of_roles: tuple[str | None, ...], served: str, ours: bool) -> None:
    """Kubeflow's operator waits for the admission of the group, and names volcano in pods whose template names nothing."""
    made, _ = cache(settings=Settings(scheduler_names=frozenset({served})))
    put_group(made, {**OWNER, "apiVersion": "kubeflow.org/v1", "kind": kind})
    if of_roles:
        roles = {f"r{i}": {"template": {"spec": {"schedulerName": name} if name else {}}} for i, name in enumerate(of_roles)}
        manifest = {"metadata": {"name": "train", "namespace": "default"}, "spec": {"pytorchReplicaSpecs": roles}}
        reader = KINDS["kubeflow.org/v1", kind]
        assert made.is_foreign_group("default/g")
        made.put(reader.read(from_manifest(manifest, reader.struct), Settings()), 1)
    assert takes_part(made) is ours and made.is_foreign_group("default/g") is not ours


def test_a_job_that_is_given_to_us_brings_its_group_and_nothing_of_it_stays() -> None:
    made, _ = cache(settings=OURS)
    made.put(maker("volcano", None), 1)
    group = put_group(made)
    assert not takes_part(made)
    made.put(maker("navarch", None), 2)
    assert takes_part(made)
    made.remove(group)
    made.remove(maker("navarch", None))
    assert not takes_part(made) and not made.is_foreign_group("default/g")


def test_a_group_whose_last_pod_goes_is_its_jobs_again() -> None:
    made, _ = cache(settings=OURS)
    made.put(maker("volcano", None), 1)
    put_group(made)
    made.put_pod(member("volcano", nodeName="n1"))
    assert takes_part(made), "its pods hold nodes"
    assert made.is_foreign_group("default/g"), "but another scheduler writes its status"
    made.remove_pod("p")
    assert not takes_part(made) and made.is_foreign_group("default/g")


def test_a_job_of_ours_that_no_controller_takes_up_is_known() -> None:
    into, _ = cache(settings=OURS)
    for name, scheduler, phase in (("ours", "navarch", ""), ("begun", "navarch", "Pending"), ("theirs", "volcano", "")):
        metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        manifest = {"metadata": metadata, "spec": {"schedulerName": scheduler}, "status": {"state": {"phase": phase}}}
        into.put(KIND.read(from_manifest(manifest, Job), Settings()), 1)
    moment = 1767225600.0
    assert [each.name for each in into.unattended_makers(moment + 1)] == ["ours"]
    assert into.unattended_makers(moment) == []
    (ours,) = into.unattended_makers(moment + 1)
    into.remove(ours)
    assert into.unattended_makers(moment + 1) == []
