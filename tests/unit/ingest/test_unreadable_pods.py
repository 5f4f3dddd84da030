"""Pods on nodes that cannot be read: they count by what can be, and where that is nothing their node takes no more pods."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import SETTINGS, cache, figures, group, node, put
from tests.worlds.live_parts.cluster_cache import pod as good_pod
from tests.worlds.odd_pods import ODD

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.partial_pod import read_partial_pod
from navarch.apis.core.pod_objects import Container, Pod
from navarch.engine.policy import preset
from navarch.installed import installed
from navarch.kube.resources import PODS
from navarch.kube.watch.decoding import BadObject, Change, ObjectDecoder
from navarch.kube.watch.object_store import ObjectStore
from navarch.live.cache.assumed_pods import AssumedBind, AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cache.handlers import PodHandler
from navarch.live.cycle import run_cycle
from navarch.model.spec import NodeSpec
from navarch.model.status import TaskStatus

A_LOT: dict[str, Any] = {"cpu": "a lot"}


class Scene:
    """A node of four cores, and what a watch tells of pods."""

    def __init__(self, assumed: AssumedPods | None = None) -> None:
        self.cache, self.heard = cache(assumed)
        self.told: list[str] = []
        self.handler = PodHandler(self.cache, PODS, lambda kind, resource, metadata, error: self.told.append(str(error)))
        self.store: ObjectStore[Pod] = ObjectStore(self.handler, self.handler.bad, self.cache.pods, self.cache.contradiction)
        self.decoder = ObjectDecoder(Pod, read_partial_pod)
        self.version = 0
        self.shown: set[str] = set()
        self.cache.put(node("n1"))

    def event_of(self, name: str) -> Literal["ADDED", "MODIFIED"]:
        """A server adds an object before it modifies it, whether or not a client can read it."""
        event: Literal["ADDED", "MODIFIED"] = "MODIFIED" if name in self.shown else "ADDED"
        self.shown.add(name)
        return event

    def send(self, name: str, requests: dict[str, Any], event: str = "", *, phase: str = "Running", **spec: Any) -> None:
        """A pod that the decoder, or the reader, refuses."""
        self.version += 1
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(self.version)}
        body = {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": requests}}], **spec}
        status: dict[str, Any] = {"phase": phase, "conditions": [ODD]}
        change = {"type": event or self.event_of(name), "object": {"metadata": metadata, "spec": body, "status": status}}
        for found in self.decoder.feed(msgspec.json.encode(change) + b"\n"):
            if isinstance(found, Change):
                self.store.apply(found)
            elif isinstance(found, BadObject):
                self.store.apply_bad(found)

    def good(self, found: Pod) -> None:
        self.version += 1
        newer = replace(found, metadata=replace(found.metadata, resource_version=str(self.version)))
        self.store.apply(Change(self.event_of(found.metadata.name), newer))

    @property
    def used(self) -> int:
        return int(figures(self.cache)["nodes"]["n1"][1].get("cpu", 0))

    @property
    def is_open(self) -> bool:
        cluster = self.cache.cluster
        spec = cluster.nodes.specs[cluster.nodes.rows.of["n1"]]
        assert spec is not None
        return not spec.unschedulable

    def binds(self, policy: str = "navarch") -> int:
        """How many pods of one core, and of none, a cycle puts there."""
        for i, cpu in enumerate(("1", "1", "1", "1", "0")):
            put(self.cache, good_pod(f"w{i}", cpu=cpu))
        registry = installed()
        return len(run_cycle(self.cache.cluster, preset(policy, registry.catalogue()), registry, 0.0, 1, "1").record.binds)


def test_a_pod_on_a_node_counts_by_what_can_be_read_of_it() -> None:
    scene = Scene()
    scene.send("odd", {"cpu": "3"})
    assert (scene.used, scene.is_open, scene.binds()) == (3000, True, 2)
    [told] = scene.told
    assert "lastTransitionTime" in told and told.endswith("; it counts on n1 by what could be read of it")
    scene.send("odd", {"cpu": "3"}, "DELETED")
    assert scene.used == 0


def test_a_node_takes_no_more_pods_while_the_amounts_of_one_are_unknown() -> None:
    scene = Scene()
    for _ in range(2):  # of each version as of the first
        scene.send("odd", A_LOT)
    assert (scene.used, scene.is_open, scene.binds()) == (4000, False, 0)
    assert scene.told[0].endswith("; what it asks for is not known, so n1 takes no more pods until it is gone or can be read")
    assert scene.cache.unreadable.nodes == {"n1"}
    scene.heard.notices.clear()
    scene.send("odd", A_LOT, "DELETED")
    assert (scene.used, scene.is_open, scene.binds(), len(scene.cache.unreadable)) == (0, True, 5, 0)
    assert scene.heard.notices, "jobs that wait learn that there is room"


@pytest.mark.parametrize("policy", ["navarch", "volcano", "kube-batch", "kube-scheduler"])
def test_no_policy_places_a_pod_on_a_closed_node(policy: str) -> None:
    scene = Scene()
    scene.cache.put(node("n2"))
    assert scene.binds(policy) > 0
    scene.cache.remove(node("n2"))
    scene.send("odd", A_LOT)
    assert scene.binds(policy) == 0


def test_a_pod_that_can_be_read_again_opens_its_node() -> None:
    scene = Scene()
    scene.send("odd", A_LOT)
    scene.good(good_pod("odd", "n1", "Running", cpu="1"))
    assert (scene.used, scene.is_open) == (1000, True)
    scene.send("odd", A_LOT)  # what was known of it stands
    assert (scene.used, scene.is_open) == (1000, True)
    assert scene.told[-1].endswith("; what was known of it stands")


def test_a_pod_of_which_more_can_be_read_opens_its_node() -> None:
    scene = Scene()
    scene.send("odd", A_LOT)
    scene.send("odd", {"cpu": "2"})
    assert (scene.used, scene.is_open) == (2000, True)


def test_two_of_them_keep_it_closed_until_both_are_gone() -> None:
    scene = Scene()
    for name in ("one", "two"):
        scene.send(name, A_LOT)
    scene.send("one", A_LOT, "DELETED")
    assert (scene.used, scene.is_open) == (4000, False)
    scene.send("two", A_LOT, "DELETED")
    assert (scene.used, scene.is_open) == (0, True)


def test_a_node_that_comes_later_or_changes_or_comes_again_is_closed_as_it_is_then() -> None:
    scene = Scene()
    scene.cache.remove(node("n1"))
    scene.send("odd", A_LOT)
    scene.cache.put(node("n1"))
    assert (scene.used, scene.is_open) == (4000, False)
    scene.cache.put(node("n1", cpu="8"))
    assert (scene.used, scene.is_open) == (8000, False)
    scene.cache.put(node("n2"))
    scene.cache.remove(node("n1"))
    scene.cache.put(node("n1", cpu="2"))
    assert (scene.used, scene.is_open, scene.cache.unreadable.nodes) == (2000, False, {"n1"})
    scene.send("odd", A_LOT, "DELETED")
    assert (scene.used, scene.is_open) == (0, True)
    row = scene.cache.cluster.nodes.rows.of["n2"]
    spec: NodeSpec | None = scene.cache.cluster.nodes.specs[row]
    assert spec == node("n2")


@pytest.mark.parametrize("requests", [{"cpu": "3"}, A_LOT], ids=["read in part", "unknown"])
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_one_that_has_ended_holds_nothing(phase: str, requests: dict[str, Any]) -> None:
    scene = Scene()
    scene.send("odd", requests)
    scene.send("odd", requests, phase=phase)
    assert (scene.used, scene.is_open) == (0, True)
    assert scene.told[-1].endswith("; it has ended and holds nothing")


def test_one_that_was_read_while_it_waited_holds_its_node_with_what_it_asked_for() -> None:
    assumed = AssumedPods()
    scene = Scene(assumed)
    scene.cache.put(group("g", 1))
    scene.good(good_pod("a", group="g", cpu="2"))
    assumed.binds["uid-a"] = AssumedBind("uid-a", "default", "a", "n1", "default/g", 0.0)
    scene.cache.refresh("uid-a")
    scene.send("a", A_LOT)
    task = scene.cache.cluster.task("uid-a")
    assert task is not None
    assert (task.node, task.status, task.job, scene.used) == ("n1", TaskStatus.RUNNING, "default/g", 2000)
    assert assumed.binds == {}, "the binding is seen"


def test_one_that_waits_is_set_aside_as_before() -> None:
    scene = Scene()
    scene.send("odd", A_LOT, nodeName="", phase="Pending")
    assert (len(scene.told), scene.cache.cluster.task("uid-odd"), scene.is_open) == (1, None, True)
    assert list(scene.store.bad) == [("default", "odd")]


def test_one_that_is_decoded_and_makes_no_sense_counts_too() -> None:
    scene = Scene()
    for name, resources in (("odd", {"requests": A_LOT, "limits": {"cpu": "3"}}), ("other", {"requests": A_LOT})):
        found = good_pod(name, "n1", "Running")
        container = from_manifest({"name": "c", "resources": resources}, Container)
        scene.good(replace(found, spec=replace(found.spec, containers=(container,))))
        assert len(scene.told) == 1 + (name == "other")
        assert (scene.used, scene.is_open) == ((3000, True) if name == "odd" else (7000, False))


def test_one_in_a_list_counts_and_goes_with_the_next_list() -> None:
    scene = Scene()
    spec = {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
    metadata = {"name": "odd", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    raw = msgspec.Raw(msgspec.json.encode({"metadata": metadata, "spec": spec, "status": {"conditions": [ODD]}}))
    for _ in range(2):
        scene.store.replace([scene.decoder.item(raw)])
    assert (scene.used, len(scene.told)) == (2000, 1)
    scene.store.replace([])
    assert scene.used == 0


@pytest.mark.parametrize(
    ("beside", "saved"), [(b"[" * 5000 + b"]" * 5000, True), (b"1e400", False)], ids=["nested too deep", "a number beyond all numbers"]
)
def test_an_invalid_pod_is_identified_whatever_else_it_holds(beside: bytes, saved: bool) -> None:
    scene = Scene()
    raw = b'{"metadata":{"name":"odd"},"spec":{"nodeName":"n1","priority":"high","beside":' + beside + b"}}"
    item = scene.decoder.item(msgspec.Raw(raw))
    [event] = scene.decoder.feed(b'{"type":"ADDED","object":' + raw + b"}\n")
    assert (isinstance(item, BadObject), isinstance(event, BadObject)) == (not saved, not saved)
    assert item.metadata.name == "odd"


def test_under_another_policy_it_is_put_again() -> None:
    scene = Scene()
    scene.send("odd", A_LOT)
    scene.cache.configure(SETTINGS)
    assert len(scene.cache.unreadable) == 0
    scene.cache.put(node("n1"))
    scene.send("odd", A_LOT)
    assert (scene.used, scene.is_open) == (4000, False)


def test_a_mistake_of_ours_leaves_nothing_to_compare_with() -> None:
    def notice(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake of ours")

    made = ClusterCache(SETTINGS, AssumedPods(), notice)
    handler = PodHandler(made, PODS, lambda *told: None)
    half = read_partial_pod(good_pod("a", "n1"), ValueError("why"))
    assert half is not None
    with pytest.raises(RuntimeError, match="of ours"):
        handler.added(half)
    assert made.pods["default", "a"].spec.containers is None
