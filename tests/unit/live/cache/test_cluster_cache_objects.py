"""The cache's other objects: their events, their node pool, and what is assumed of them when they go."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import SETTINGS, Heard, cache, group, node, pod, put

from navarch.apis.core.objects import from_manifest
from navarch.apis.volcano.podgroups import Queue, read_queue
from navarch.engine.reasons import Event
from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.model.objects.bind_requests import BindRequestSpec
from navarch.model.spec import NamespaceSpec, ObjectSpec, PriorityClassSpec, QuotaSpec, Requests
from navarch.model.status import TaskStatus

POOL = replace(SETTINGS, node_pool_key="pool", node_pool="ours")


def queue(name: str, **labels: str) -> Any:
    return read_queue(from_manifest({"metadata": {"name": name, "labels": labels}, "spec": {"weight": 1}}, Queue), SETTINGS)


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("PersistentVolume", Event.VOLUME_CHANGED),
        ("PersistentVolumeClaim", Event.VOLUME_CHANGED),
        ("StorageClass", Event.VOLUME_CHANGED),
        ("CSINode", Event.VOLUME_CHANGED),
        ("ResourceClaim", Event.CLAIM_CHANGED),
        ("ResourceSlice", Event.CLAIM_CHANGED),
        ("DeviceClass", Event.CLAIM_CHANGED),
    ],
)
def test_volumes_and_devices_that_come_or_go_are_events_for_waiting_jobs(kind: str, event: Event) -> None:
    looked: list[str] = []
    made, heard = cache(on_volumes_changed=lambda: looked.append(kind))
    found = ObjectSpec(kind, "", "x", {"metadata": {"name": "x"}, "spec": {"a": 1}})
    made.put(found)
    made.remove(found)
    assert [each[:2] for each in heard.notices] == [(event, "")] * 2
    assert looked == [kind] * 2 * (event is Event.VOLUME_CHANGED), "and binds that wait for a volume are looked at"
    assert not made.cluster.objects.get(kind)


def test_room_in_a_quota_and_in_queues_is_heard_of() -> None:
    made, heard = cache()
    made.put(queue("team"))
    quota = QuotaSpec("default", "q", hard=(("cpu", 1000),))
    made.put(quota)
    heard.notices.clear()
    made.put(replace(quota, hard=(("cpu", 2000),)))
    made.remove(quota)
    made.put(replace(queue("team"), weight=7))
    made.remove(queue("team"))
    assert heard.notices == [(Event.QUOTA_CHANGED, "", True)] * 2 + [(Event.QUEUE_CHANGED, "", True)] * 2
    assert "team" not in made.cluster.queues


def test_an_assumption_goes_with_its_object() -> None:
    made, _ = cache()
    volume = ObjectSpec("PersistentVolume", "", "pv", {"spec": {}})
    made.put(volume)
    made.assume_object("PersistentVolume", "", "pv", {"spec": {"claimRef": {}}}, lambda value: "claimRef" in value["spec"])
    made.remove(volume)
    assert not made.is_assumed("PersistentVolume", "", "pv")
    made.put(volume)
    assert made.cluster.objects["PersistentVolume"]["", "pv"] == {"spec": {}}, "another volume of the name is promised to no claim"
    made.forget_object("PersistentVolume", "", "pv")
    assert made.cluster.objects["PersistentVolume"]["", "pv"] == {"spec": {}}


def test_an_object_that_is_assumed_goes_on_being_read() -> None:
    made, _ = cache()
    made.put(ObjectSpec("PersistentVolume", "", "pv", {"spec": {}}))
    made.assume_object("PersistentVolume", "", "pv", {"spec": {"claimRef": {}}}, lambda value: "claimRef" in value["spec"])
    made.put(ObjectSpec("PersistentVolume", "", "pv", {"spec": {}, "metadata": {"labels": {"a": "b"}}}))
    assert made.cluster.objects["PersistentVolume"]["", "pv"] == {"spec": {"claimRef": {}}}
    assert made.api_object("PersistentVolume", "", "pv")["metadata"] == {"labels": {"a": "b"}}
    made.put(ObjectSpec("PersistentVolume", "", "pv", {"spec": {"claimRef": {"name": "c"}}}))
    assert not made.is_assumed("PersistentVolume", "", "pv")
    assert made.cluster.objects["PersistentVolume"]["", "pv"] == {"spec": {"claimRef": {"name": "c"}}}


def in_pool() -> tuple[ClusterCache, Heard]:
    made, heard = cache()
    made.configure(POOL)
    return made, heard


def test_objects_of_other_node_pools_are_absent() -> None:
    made, _ = in_pool()
    ours, theirs = {"pool": "ours"}, {"pool": "theirs"}
    for labels, there in ((ours, True), (theirs, False), (ours, True)):
        made.put(replace(node("n1"), labels=labels))
        made.put(replace(group("g", 1), labels=labels))
        made.put(queue("team", **labels))
        row = made.cluster.nodes.rows.of.get("n1")
        assert (row is not None and bool(made.cluster.nodes.alive[row])) == there
        assert (made.groups() == ["default/g"]) == there
        assert ("team" in made.cluster.queues) == there
        assert made.is_foreign_group("default/g") != there, "another scheduler binds its pods"
    made.put(replace(group("g", 1), labels=theirs))
    made.remove(replace(group("g", 1), labels=theirs))
    assert not made.is_foreign_group("default/g")


def test_where_namespaces_are_queues_they_come_and_go_together() -> None:
    made, _ = cache()
    made.configure(replace(SETTINGS, namespace_as_queue=True))
    made.put(NamespaceSpec("team"))
    assert "team" in made.cluster.queues
    made.put(queue("team"))
    made.remove(queue("team"))
    assert made.cluster.queues["team"].dialect == "implied"
    made.remove(NamespaceSpec("team"))
    assert "team" not in made.cluster.queues


def test_nothing_is_taken_from_the_root_of_all_queues() -> None:
    made, _ = cache()
    assert {name: each.reclaimable for name, each in made.cluster.queues.items()} == {"default": True, "root": False}


def test_a_request_to_a_binder_counts_for_its_pod_until_it_is_taken_back() -> None:
    assumed = AssumedPods()
    made, _ = cache(assumed)
    made.put(node("n1"))
    put(made, pod("a"))
    bind = AssumedBind("uid-a", "default", "a", "n1", "default/pod/a", 0.0, delegated=True)
    assumed.binds["uid-a"] = bind
    made.refresh("uid-a")
    request = ObjectSpec("BindRequest", "default", "a", BindRequestSpec("default", "a", "n1"))
    made.put(request)
    task = made.cluster.task("uid-a")
    assert task is not None and task.node == "n1" and assumed.binds == {}, "the request itself tells from now on"
    made.remove(request)
    task = made.cluster.task("uid-a")
    assert task is not None and (task.node, task.status) == ("", TaskStatus.PENDING)


def test_nothing_is_remembered_of_a_pod_that_is_seen_where_it_was_sent_or_is_gone() -> None:
    assumed = AssumedPods()
    made, _ = cache(assumed)
    made.put(node("n1"))
    for name in ("a", "b"):
        put(made, pod(name))
        assumed.binds[f"uid-{name}"] = AssumedBind(f"uid-{name}", "default", name, "n1", f"default/pod/{name}", 0.0)
        assumed.evictions[f"uid-{name}"] = 0.0
        made.refresh(f"uid-{name}")
    assert all((shown := made.api_task(uid)) is not None and not shown.node for uid in ("uid-a", "uid-b"))
    put(made, pod("a", node="n1", phase="Succeeded"))
    made.remove_pod("uid-b")
    assert (assumed.binds, assumed.evictions) == ({}, {})
    assert made.api_task("uid-a") is made.cluster.task("uid-a")
    assert made.api_task("uid-b") is None and made.cluster.task("uid-b") is None


class Listening:
    """Each notice with what it says is free."""

    def __init__(self) -> None:
        self.notices: list[tuple[Event, str, bool, Requests | None]] = []

    def __call__(self, event: Event, job: str = "", *, urgent: bool = True, freed: Requests | None = None) -> None:
        self.notices.append((event, job, urgent, freed))


@pytest.mark.parametrize(
    ("where", "promised", "urgent", "freed"),
    [("n1", "", True, "2"), ("", "", False, ""), ("", "n1", False, "2")],
    ids=["running", "waiting", "waiting with a promise"],
)
def test_the_events_of_a_deleted_pod(where: str, promised: str, urgent: bool, freed: str) -> None:
    heard, assumed = Listening(), AssumedPods()
    made = ClusterCache(SETTINGS, assumed, heard)
    made.put(node("n1"))
    made.put(group("g", 2))
    for name in ("a", "b"):
        put(made, pod(name, node=where, group="g", cpu="2"))
    if promised:
        assumed.nominations["uid-a"] = promised
        made.refresh("uid-a")
    heard.notices.clear()
    made.remove_pod("uid-a")
    (event, job, soon, left), changed = heard.notices
    assert (event, job, soon) == (Event.POD_REMOVED, "", urgent)
    assert dict(left or ()).get("cpu", 0) == (2000 if freed else 0)
    assert changed[:3] == (Event.POD_CHANGED, "default/g", bool(where)), "one that waits has too few pods now to be worth a cycle"


def test_a_node_that_comes_is_another_event_than_one_that_changes() -> None:
    made, heard = cache()
    made.put(node("n1"))
    made.put(node("n1", "8"))
    assert [event for event, _, _ in heard.notices] == [Event.NODE_ADDED, Event.NODE_CHANGED]


def test_a_priority_class_that_goes_takes_its_priority_from_the_groups_that_name_it() -> None:
    made, _ = cache()
    made.put(group("g", 1, priorityClassName="high"))
    found = []
    for change in (made.put, made.remove):
        change(PriorityClassSpec("high", 1000))
        spec = made.cluster.jobs.specs[made.cluster.jobs.rows.of["default/g"]]
        assert spec is not None
        found.append(spec.priority)
    assert found == [1000, 0]
