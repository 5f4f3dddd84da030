"""One way into the model: the same objects give the same model, from files and through the informers' handlers, in any order."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.ingest_objects import POOL, Objects, identity, object_sets

from navarch.apis.core.partial_pod import read_partial_pod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.engine.reasons import Event
from navarch.kube.resources import PODS, Resource
from navarch.kube.watch.decoding import Change, Metadata, ObjectDecoder
from navarch.kube.watch.object_store import ObjectStore
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.cache.handlers import KindHandler, PodHandler
from navarch.live.cache.watched_kinds import watched
from navarch.model.cluster import Cluster
from navarch.model.resources import IntArray
from navarch.model.spec import Requests
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document

SETTINGS = st.builds(
    Settings,
    scheduler_names=st.sampled_from((None, frozenset({"navarch"}), frozenset({"navarch", "kai-scheduler"}))),
    namespace_as_queue=st.booleans(),
    shadow_groups=st.sampled_from((True, True, False)),
    imply_queues=st.booleans(),
    node_pool_key=st.sampled_from(("", "", POOL)),
)


class Watch:
    """The live cache behind decoders, stores and handlers, fed as watches feed it."""

    def __init__(self, choices: Settings) -> None:
        self.cache = ClusterCache(choices, AssumedPods(), self._notice)
        self.version = 0
        pods = PodHandler(self.cache, PODS, self._invalid)
        store: ObjectStore[Any] = ObjectStore(pods, pods.bad, self.cache.pods)
        self._feeds: dict[tuple[str, str], tuple[ObjectDecoder[Any], ObjectStore[Any]]] = {
            ("", "Pod"): (ObjectDecoder(Pod, read_partial_pod), store)
        }
        for kind in watched():
            kept: dict[tuple[str, str], Any] = {}
            handler = KindHandler(self.cache, kind, kind.candidates[0], self._invalid, kept)
            objects: ObjectStore[Any] = ObjectStore(handler, handler.bad, kept)
            self._feeds[kind.candidates[0].group, kind.kind] = ObjectDecoder(kind.struct), objects

    def send(self, event: str, made: dict[str, Any]) -> None:
        self.version += 1
        decoder, store = self._feeds[identity(made)[:2]]
        shown = {**made, "metadata": {**made["metadata"], "resourceVersion": str(self.version)}}
        for found in decoder.feed(msgspec.json.encode({"type": event, "object": shown}) + b"\n"):
            assert isinstance(found, Change), f"every object can be decoded, at least in part: {found}"
            store.apply(found)

    def list(self, objects: Objects, rng: random.Random) -> None:
        """Whole lists, kind after kind in any order."""
        items: dict[tuple[str, str], list[Any]] = {}
        for made in objects:
            self.version += 1
            shown = {**made, "metadata": {**made["metadata"], "resourceVersion": str(self.version)}}
            kind = identity(made)[:2]
            items.setdefault(kind, []).append(self._feeds[kind][0].item(msgspec.Raw(msgspec.json.encode(shown))))
        for kind in rng.sample(sorted(items), len(items)):
            self._feeds[kind][1].replace(items[kind])

    def _notice(self, event: Event, job: str = "", *, urgent: bool = True, freed: Requests | None = None) -> None: ...

    def _invalid(self, kind: str, resource: Resource, metadata: Metadata, error: Exception) -> None:
        assert metadata.name.startswith("odd"), f"{kind} {metadata.name}: {error}"


def model(cluster: Cluster) -> dict[str, Any]:
    """Everything in the model, by name."""
    snapshot = cluster.snapshot()
    names = snapshot.resource_names
    jobs = cluster.jobs

    def amounts(column: IntArray) -> dict[str, int]:
        return {name: int(amount) for name, amount in zip(names, column, strict=False) if amount}

    return {
        "nodes": {
            spec.name: (spec, amounts(snapshot.nodes.used[:, i]), amounts(snapshot.nodes.releasing[:, i]))
            for i, spec in enumerate(snapshot.nodes.specs)
        },
        "tasks": {spec.uid: spec for spec in cluster.tasks.specs if spec is not None},
        "jobs": {
            key: (
                jobs.specs[row],
                jobs.counts[row].tolist(),
                amounts(jobs.allocated[:, row]),
                amounts(jobs.pending[:, row]),
                sorted(spec.uid for task in jobs.tasks[row] if (spec := cluster.tasks.specs[task]) is not None),
            )
            for key, row in jobs.rows.of.items()
        },
        "queues": cluster.queues,
        "classes": cluster.priority_classes,
        "namespaces": cluster.namespaces,
        "budgets": cluster.budgets,
        "quotas": cluster.quotas,
        "objects": {
            kind: {key: _without_version(value) for key, value in found.items()} for kind, found in cluster.objects.items() if found
        },
    }


def _without_version(value: Any) -> Any:
    """The resourceVersion is the watch's own."""
    if not isinstance(value, dict):
        return value
    return {**value, "metadata": {name: each for name, each in value["metadata"].items() if name != "resourceVersion"}}


def from_files(objects: Objects, choices: Settings) -> tuple[dict[str, Any], Inventory]:
    inventory = Inventory([Document(made) for made in objects], choices)
    assert all("odd" in mistake.name for mistake in inventory.mistakes), inventory.mistakes
    return model(inventory.cluster), inventory


def foreign(objects: Objects, asked: Any) -> set[str]:
    keys = {f"{made['metadata']['namespace']}/{made['metadata']['name']}" for made in objects if made["kind"] == "PodGroup"}
    return {key for key in keys if asked(key)}


@settings(max_examples=150, deadline=None)
@given(object_sets(), SETTINGS, st.randoms(use_true_random=False))
def test_files_and_watches_give_the_same_model_in_any_order(objects: Objects, choices: Settings, rng: random.Random) -> None:
    expected, inventory = from_files(objects, choices)
    shuffled = rng.sample(objects, len(objects))
    assert from_files(shuffled, choices)[0] == expected
    live = Watch(choices)
    for made in shuffled:
        live.send("ADDED", made)
    assert model(live.cache.cluster) == expected
    assert foreign(objects, live.cache.is_foreign_group) == foreign(objects, inventory.ingest.groups.is_foreign)


def with_siblings(objects: Objects, rng: random.Random) -> Objects:
    """Each pod with a controller, and pods from the same template: of other names, on other nodes, in other states, some with a
    label of their own."""
    more: Objects = []
    for made in objects:
        if made["kind"] == "Pod" and made["metadata"].get("ownerReferences"):
            for number in range(rng.randint(0, 3)):
                name = f"{made['metadata']['name']}-{number}"
                labels = dict(made["metadata"].get("labels") or {}) | ({"own": name} if rng.random() < 0.2 else {})
                metadata = {**made["metadata"], "name": name, "uid": f"{made['metadata']['uid']}-{number}", "labels": labels}
                metadata["creationTimestamp"] = f"2026-01-01T00:00:{rng.randrange(60):02d}Z"
                spec, status = dict(made["spec"]), dict(made.get("status") or {})
                if spec.get("nodeName") and rng.random() < 0.5:
                    spec["nodeName"] = rng.choice(("n1", "n2", "n3"))
                if rng.random() < 0.3:
                    status["phase"] = rng.choice(("Running", "Succeeded", "Failed", "Pending"))
                more.append({**made, "metadata": metadata, "spec": spec, "status": status})
    return [*objects, *more]


@settings(max_examples=150, deadline=None)
@given(object_sets(), SETTINGS, st.randoms(use_true_random=False))
def test_whole_lists_give_the_same_model_as_one_object_at_a_time(objects: Objects, choices: Settings, rng: random.Random) -> None:
    objects = with_siblings(objects, rng)
    listed, watched = Watch(choices), Watch(choices)
    for made in rng.sample(objects, len(objects)):
        watched.send("ADDED", made)
    listed.list(rng.sample(objects, len(objects)), rng)
    expected = model(watched.cache.cluster)
    assert model(listed.cache.cluster) == expected
    again = rng.sample(objects, len(objects))
    listed.list(again, rng)
    assert model(listed.cache.cluster) == expected, "a second list changes nothing"


def with_owners(objects: Objects, before: Objects) -> Objects:
    """Owners that pods of `objects` name stay: the model knows the owner of a pod until the pod is gone (`Owners.remove`)."""
    named = {
        (made["metadata"].get("namespace"), owner["kind"], owner["name"])
        for made in objects
        for owner in made["metadata"].get("ownerReferences") or ()
    }
    there = {identity(made) for made in objects}
    places = ((made, (made["metadata"].get("namespace"), made["kind"], made["metadata"]["name"])) for made in before)
    return [*objects, *(made for made, place in places if place in named and identity(made) not in there)]


@settings(max_examples=150, deadline=None)
@given(object_sets(), object_sets(), SETTINGS, st.randoms(use_true_random=False))
def test_objects_that_came_and_went_leave_nothing_behind(
    objects: Objects, before: Objects, choices: Settings, rng: random.Random
) -> None:
    """Objects of `before` come first. Those that `objects` has too change; the others go. In the end `objects` is all there is.
    Groups that had a pod of ours stay ours, so they are not compared."""
    objects = with_owners(objects, before)
    expected, _ = from_files(objects, choices)
    live = Watch(choices)
    for made in rng.sample(before, len(before)):
        live.send("ADDED", made)
    known = {identity(made) for made in before}
    kept = {identity(made) for made in objects}
    steps = [("DELETED", made) for made in before if identity(made) not in kept]
    steps += [("MODIFIED" if identity(made) in known else "ADDED", made) for made in objects]
    for event, made in rng.sample(steps, len(steps)):
        live.send(event, made)
    found = model(live.cache.cluster)
    for key in groups_named_by_pods(before) & found["jobs"].keys() - expected["jobs"].keys():
        del found["jobs"][key]
    assert found == expected


def groups_named_by_pods(objects: Objects) -> set[str]:
    """Keys of what pods name in their annotations and labels, which may be groups."""
    pods = [made["metadata"] for made in objects if made["kind"] == "Pod"]
    texts = ((each.get("namespace"), {**each.get("annotations", {}), **each.get("labels", {})}) for each in pods)
    return {f"{namespace}/{text}" for namespace, said in texts for text in said.values()}


@settings(max_examples=75, deadline=None)
@given(object_sets(), SETTINGS, st.randoms(use_true_random=False))
def test_removing_and_adding_again_changes_nothing(objects: Objects, choices: Settings, rng: random.Random) -> None:
    live = Watch(choices)
    for made in objects:
        live.send("ADDED", made)
    expected = model(live.cache.cluster)
    some = rng.sample(objects, rng.randint(0, len(objects)))
    for made in some:
        live.send("DELETED", made)
    for made in rng.sample(some, len(some)):
        live.send("ADDED", made)
    assert model(live.cache.cluster) == expected
