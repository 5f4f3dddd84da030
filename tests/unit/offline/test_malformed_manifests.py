"""Whatever stands in a field, reading ends in specs and mistakes, never in a crash, and the other objects are read."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from navarch.apis.dialect import Settings
from navarch.offline.inventory import Inventory
from navarch.offline.manifests import Document, objects_in
from navarch.testing.builders import Builder, budget, namespace, node, pod, pod_group, priority_class, queue

TEMPLATE = {
    "metadata": {"labels": {"app": "x"}, "annotations": {"volcano.sh/task-spec": "t"}},
    "spec": {
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
    },
}


def workload(version: str, kind: str, **spec: Any) -> Builder:
    made = Builder(version, kind, kind.lower(), "default")
    made["spec"] = spec
    return made


def _everything() -> list[dict[str, Any]]:
    full = pod("full").cpu("1").in_group("g").priority_class("high").tolerate("k", "v").select("disk", "ssd").host_port(80)
    full.spread("zone", {"matchLabels": {"app": "x"}}).gate("g").annotate("volcano.sh/task-priority", "3")
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}
    full.affinity(
        podAntiAffinity={"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
        nodeAffinity={"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]}},
    )
    full["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    full["spec"]["overhead"] = {"cpu": "10m"}
    full["spec"]["runtimeClassName"] = "kata"
    full["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    full["status"]["containerStatuses"] = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    group = pod_group("g", 1).role("t", 1).min_resources(cpu="1")
    group["spec"]["subGroupPolicy"] = [{"name": "p", "subGroupSize": 1, "labelSelector": {"matchLabels": {"a": "b"}}}]
    limits = workload("v1", "LimitRange", limits=[{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}])
    runtime = Builder("node.k8s.io/v1", "RuntimeClass", "kata") | {
        "overhead": {"podFixed": {"cpu": "10m"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    }
    quota = workload("v1", "ResourceQuota", hard={"cpu": "1"})
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    kai_queue = Builder("scheduling.run.ai/v2", "Queue", "kq") | {"spec": {"resources": {"cpu": {"quota": 1, "limit": -1}}}}
    return [
        full,
        group,
        limits,
        runtime,
        quota,
        kai_queue,
        node("n").cpu("4").label("disk", "ssd").taint("k").annotate("volcano.sh/oversubscription-cpu", "10"),
        queue("q").capability(cpu=1).deserved(cpu=1).guarantee(cpu=1),
        priority_class("high", 5),
        namespace("default"),
        budget("b", {"app": "x"}, 1),
        workload("apps/v1", "Deployment", replicas=1, template=TEMPLATE),
        workload("apps/v1", "ReplicaSet", replicas=1, template=TEMPLATE),
        workload("apps/v1", "StatefulSet", replicas=1, template=TEMPLATE, volumeClaimTemplates=[claim]),
        workload("apps/v1", "DaemonSet", template=TEMPLATE),
        workload("batch/v1", "Job", parallelism=1, template=TEMPLATE),
        workload("batch.volcano.sh/v1alpha1", "Job", tasks=[{"name": "t", "replicas": 1, "template": TEMPLATE}]),
        {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "listed"}, "spec": {"containers": []}}]},
    ]


EVERYTHING = _everything()
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, [], {}, "", "x", "1e9999", 7, -1, 1.5, True, [1], ["x"], [None], [[]], {"a": 1}, {"x": None}, {1: 2}]
)


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        found += paths(child, (*at, key))
    return found


PATHS = [(i, path) for i, each in enumerate(EVERYTHING) for path in paths(each)]


def read(objects: list[dict[str, Any]]) -> Inventory:
    documents = [found for each in objects for found in objects_in(each) if isinstance(found, Document)]
    return Inventory(documents, Settings())


def test_all_is_well_without_junk() -> None:
    found = read(deepcopy(EVERYTHING))
    assert [str(mistake) for mistake in found.mistakes] == []
    assert len(found.tasks) == 8


@settings(max_examples=250, deadline=None)
@given(place=st.sampled_from(PATHS), junk=JUNK)
def test_junk_anywhere_is_a_mistake_at_most(place: tuple[int, tuple[Any, ...]], junk: Any) -> None:
    number, path = place
    objects = deepcopy(EVERYTHING)
    at: Any = objects[number]
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = junk
    found = read([*objects, pod("bystander", "apart")])
    assert "apart/bystander" in found.tasks
    for mistake in found.mistakes:
        assert mistake.kind and mistake.name and mistake.expected
