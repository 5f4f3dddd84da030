"""Requests and objects as a hostile or clumsy client sends them: good ones, and mutations of them."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.worlds.embedded.objects import binding, config_map, deployment, node, pod, widget_definition
from tests.worlds.embedded.server import Http

NAMESPACE = "/api/v1/namespaces/default"
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**70, 1.5, -0.0, 1e308, "", "a", "0", "None", " ", "é\u0000", "x" * 300, "../..",
    "$patch", [], {}, [None], [[]], [{}], {"": ""}, {"a": None}, {"$patch": "delete"}, {"$patch": "zz"}, ["a", 1],
    {"name": 5}, [{"name": None}], {"matchLabels": 3}, {"matchExpressions": [{}]}, "2024-13-45T00:00:00Z", "1Zi", "99999E",
]  # fmt: skip
REQUESTS: list[tuple[str, str, Any, str]] = [
    ("POST", f"{NAMESPACE}/pods", pod("fuzz", {"a": "b"}, volumes=[{"name": "v"}], tolerations=[{"key": "k"}]), "json"),
    ("POST", f"{NAMESPACE}/configmaps", config_map("fuzz"), "json"),
    ("POST", "/api/v1/nodes", node("fuzz"), "json"),
    ("POST", "/apis/apps/v1/namespaces/default/deployments", deployment("fuzz"), "json"),
    (
        "POST",
        "/apis/batch/v1/namespaces/default/jobs",
        {"metadata": {"name": "fuzz"}, "spec": {"template": {"spec": {**pod("x")["spec"], "restartPolicy": "Never"}}}},
        "json",
    ),
    ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widget_definition("fuzzes", "Fuzz", "fuzz.io"), "json"),
    ("POST", f"{NAMESPACE}/pods/kept/binding", binding("kept", "n"), "json"),
    ("POST", f"{NAMESPACE}/pods/gone/eviction", {"metadata": {"name": "gone"}, "deleteOptions": {"dryRun": ["All"]}}, "json"),
    ("POST", f"{NAMESPACE}/resourcequotas", {"metadata": {"name": "fuzz"}, "spec": {"hard": {"count/zz": "1"}}}, "json"),
    (
        "POST",
        f"{NAMESPACE}/limitranges",
        {"metadata": {"name": "fuzz"}, "spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}},
        "json",
    ),
    (
        "POST",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"metadata": {"name": "fuzz"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"zz": "b"}}}},
        "json",
    ),
    ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "fuzz"}, "value": 5}, "json"),
    ("POST", f"{NAMESPACE}/services", {"metadata": {"name": "fuzz"}, "spec": {"ports": [{"port": 80}]}}, "json"),
    ("POST", f"{NAMESPACE}/events", {"metadata": {"name": "fuzz"}, "involvedObject": {"namespace": "default"}}, "json"),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get"}}}, "json"),
    ("PUT", f"{NAMESPACE}/configmaps/kept", config_map("kept", {"z": "1"}), "json"),
    ("PUT", f"{NAMESPACE}/pods/kept", pod("kept"), "json"),
    (
        "PUT",
        "/apis/apps/v1/namespaces/default/deployments/kept/scale",
        {"metadata": {"name": "kept"}, "spec": {"replicas": 2}},
        "json",
    ),
    ("PATCH", f"{NAMESPACE}/pods/kept", {"metadata": {"labels": {"z": "1"}}}, "merge-patch+json"),
    ("PATCH", f"{NAMESPACE}/pods/kept", [{"op": "add", "path": "/metadata/labels/y", "value": "1"}], "json-patch+json"),
    (
        "PATCH",
        f"{NAMESPACE}/pods/kept/status",
        {"status": {"$setElementOrder/conditions": [{"type": "A"}], "conditions": [{"type": "A", "status": "True"}]}},
        "strategic-merge-patch+json",
    ),
    ("PATCH", f"{NAMESPACE}/configmaps/kept?fieldManager=f&force=true", config_map("kept", {"q": "1"}), "apply-patch+yaml"),
    ("PATCH", "/apis/apps/v1/namespaces/default/deployments/kept?fieldManager=f", deployment("kept"), "apply-patch+yaml"),
    ("DELETE", f"{NAMESPACE}/configmaps/none", {"gracePeriodSeconds": 1, "preconditions": {"uid": "x"}}, "json"),
]


OBJECTS: list[Any] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"zone": "a"}},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "2"}},
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d"},
        "spec": {"schedulerName": "navarch", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "q", "namespace": "d", "labels": {"a": "b"}, "annotations": {"gpu-fraction": "0.5"}},
        "spec": {
            "schedulerName": "navarch",
            "priorityClassName": "high",
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"a": "b"}},
                }
            ],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["1"]}]}]
                    }
                }
            },
            "containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}
            ],
        },
    },
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "research"},
        "spec": {"weight": 1, "capability": {"cpu": "4"}, "parent": "root", "reclaimable": True},
        "status": {"state": "Open"},
    },
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "d"},
        "spec": {"minMember": 2, "queue": "research", "minResources": {"cpu": "1"}, "minTaskMember": {"a": 1}},
    },
    {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "kai"},
        "spec": {"parentQueue": "", "resources": {"gpu": {"quota": 1, "limit": -1, "overQuotaWeight": 1}}},
    },
    {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "kg", "namespace": "d"},
        "spec": {"minMember": 1, "queue": "kai", "subGroups": [{"name": "a", "minMember": 1}]},
    },
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100},
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "d"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
    },
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "d"},
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "template": {"spec": {"schedulerName": "navarch", "containers": [{"name": "c", "image": "i"}]}},
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0", "attributes": {"model": {"string": "x"}}}],
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "d"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "r",
                        "exactly": {
                            "deviceClassName": "gpu",
                            "selectors": [{"cel": {"expression": "device.attributes['gpu.example.com'].model == 'x'"}}],
                        },
                    }
                ]
            }
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "r", "namespace": "d", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {
            "schedulerName": "navarch",
            "resourceClaims": [{"name": "x", "resourceClaimName": "c"}],
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "x"}]}}],
        },
    },
    {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "h"},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "n.*"}}}]},
    },
]
"""Objects that scheduling reads, one of most kinds, with the fields that rules look at."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path else []
    for key, each in inner:
        found += places(each, (*path, key))
    return found


def mutated(body: Any, chance: random.Random) -> Any:
    """A copy with one to three values replaced, removed or renamed."""
    copy = json.loads(json.dumps(body))
    for _ in range(chance.randint(1, 3)):
        spots = places(copy)
        if not spots:
            return chance.choice(VALUES)
        *steps, last = chance.choice(spots)
        holder = copy
        for step in steps:
            holder = holder[step]
        what = chance.random()
        if what < 0.7:
            holder[last] = json.loads(json.dumps(chance.choice(VALUES)))
        elif what < 0.85 or isinstance(holder, list):
            del holder[last]
        else:
            holder[chance.choice(["", "name", "$patch", "metadata", "zz", "$retainKeys"])] = holder.pop(last)
    return copy


def check_answer(code: int, body: Any, request: Any) -> None:
    """A client's mistake is never answered as the server's, and every refusal is a Status."""
    assert code < 500 or code == 504, f"{request}: {code} {body}"
    if code >= 400 and isinstance(body, dict):
        assert body.get("kind") == "Status" and body.get("code") == code, request


def prepare(api: Http) -> None:
    """Create the objects that some requests change."""
    api.post(f"{NAMESPACE}/configmaps", config_map("kept"))
    api.post(f"{NAMESPACE}/pods", pod("kept"))
    api.post("/apis/apps/v1/namespaces/default/deployments", deployment("kept"))
