"""Versions that cannot be read: what was known stands, and goes with the object."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import SETTINGS, cache, pod

from navarch.apis.core.kept_objects import kept_struct
from navarch.apis.core.objects import Metadata, from_manifest
from navarch.apis.volcano.podgroups import PodGroup
from navarch.engine.reasons import Event
from navarch.kube.resources import PODS
from navarch.kube.watch.decoding import Change
from navarch.kube.watch.object_store import ObjectStore
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cache.handlers import KindHandler, PodHandler
from navarch.live.cache.watched_kinds import watched


def group(members: int, version: int) -> PodGroup:
    metadata = {"name": "g", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
    return from_manifest({"metadata": metadata, "spec": {"minMember": members}}, PodGroup)


def told(into: list[str]) -> Any:
    return lambda kind, resource, metadata, error: into.append(metadata.resource_version or "")


@pytest.mark.parametrize("bad", [[], [2], [2, 3]])
def test_a_group_whose_last_versions_were_bad_goes_when_it_is_deleted(bad: list[int]) -> None:
    made, _ = cache()
    kind = next(each for each in watched() if each.struct is PodGroup)
    aside: list[str] = []
    handler = KindHandler(made, kind, kind.candidates[0], told(aside))
    store: ObjectStore[Any] = ObjectStore(handler)
    store.apply(Change("ADDED", group(3, version=1)))
    for version in bad:
        store.apply(Change("MODIFIED", group(-1, version)))
    standing = made.group("default/g")
    assert standing is not None and standing.min_member == 3
    assert aside == [str(version) for version in bad]
    store.apply(Change("DELETED", group(-1 if bad else 3, version=9)))
    assert made.group("default/g") is None and made.groups() == []
    assert "default/g" not in made.cluster.jobs.rows.of


def test_a_good_version_after_a_bad_one_is_what_a_deletion_takes() -> None:
    made, _ = cache()
    kind = next(each for each in watched() if each.struct is PodGroup)
    handler = KindHandler(made, kind, kind.candidates[0], told([]))
    store: ObjectStore[Any] = ObjectStore(handler)
    store.apply(Change("ADDED", group(3, version=1)))
    for version, members in enumerate((-1, 5), start=2):
        store.apply(Change("MODIFIED", group(members, version)))
    again = made.group("default/g")
    assert again is not None and again.min_member == 5
    store.apply(Change("DELETED", group(5, version=9)))
    assert made.groups() == []


def test_a_pod_on_which_the_cache_failed_is_not_kept_for_comparison() -> None:
    """Else the next version, equal to it but for its status, would be taken for what was read of an earlier one."""

    def notice(event: Event, job: str = "", *, urgent: bool = True, freed: object = None) -> None:
        raise RuntimeError("a mistake of ours")

    made = ClusterCache(SETTINGS, AssumedPods(), notice)
    handler = PodHandler(made, PODS, told([]))
    with pytest.raises(RuntimeError, match="of ours"):
        handler.added(pod("a"))
    assert made.pods["default", "a"].spec.containers is None


def kept(kind: str, spec: Any, name: str = "x", namespace: str = "") -> Any:
    metadata = {"name": name, "namespace": namespace or None, "uid": "u", "resourceVersion": "1"}
    return from_manifest({"metadata": metadata, "spec": spec}, kept_struct(kind))


@pytest.mark.parametrize("driver", [{"name": "gpu"}, ["gpu"], 5])
def test_a_slice_whose_driver_is_no_text_is_invalid_and_no_other_object_is(driver: Any) -> None:
    made, _ = cache()
    kind = next(each for each in watched() if each.kind == "ResourceSlice")
    errors: list[str] = []
    handler = KindHandler(made, kind, kind.candidates[0], lambda kind, resource, metadata, error: errors.append(str(error)))
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    handler.added(kept("ResourceSlice", {"driver": driver, "nodeName": "n", "pool": pool}))
    handler.added(kept("ResourceSlice", {"driver": "gpu.example.com", "nodeName": "n", "pool": pool}, name="good"))
    assert [name for _, name in made.cluster.objects["ResourceSlice"]] == ["good"]
    assert len(errors) == 1 and "spec.driver" in errors[0]


@pytest.mark.parametrize(("namespace", "name"), [("tëam", "a"), ("team", "ä"), ("team", 'a"b'), ("team", "a\r\nb"), ("team", "a/b")])
def test_a_name_that_no_server_stores_makes_a_pod_invalid(namespace: str, name: str) -> None:
    """The name is a part of the binding's path: a line break in it would be another request."""
    made, _ = cache()
    errors: list[str] = []
    handler = PodHandler(made, PODS, lambda kind, resource, metadata, error: errors.append(str(error)))
    handler.added(replace(pod("p"), metadata=Metadata(name=name, namespace=namespace, uid="u")))
    assert made.cluster.task("u") is None
    assert len(errors) == 1 and "metadata.name" in errors[0]


def test_a_group_or_node_with_such_a_name_is_invalid() -> None:
    made, _ = cache()
    errors: list[str] = []
    for kind in watched():
        if kind.kind in ("PodGroup", "Node", "Queue", "ResourceClaim"):
            handler = KindHandler(made, kind, kind.candidates[0], lambda kind, resource, metadata, error: errors.append(str(error)))
            handler.added(from_manifest({"metadata": {"name": "ñ", "namespace": "d", "uid": "u"}}, kind.struct))
    assert {error.split()[0] for error in errors} == {"PodGroup", "Node", "Queue", "ResourceClaim"}
    assert all("metadata.name" in error for error in errors)
