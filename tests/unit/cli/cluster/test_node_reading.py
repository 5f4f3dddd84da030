"""Rows of nodes from lists of nodes and pods: they are the rows of the whole overview, and say what could not be read."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from navarch.apis.dialect import Settings
from navarch.cli.cluster.listing import Fetched, Listed, Refused
from navarch.cli.cluster.node_reading import rows_of
from navarch.cli.cluster.reading import overview_of
from navarch.installed import installed
from navarch.kube.errors import Forbidden, Status
from navarch.offline.manifests import Document
from navarch.testing.builders import node, pod
from navarch.views.nodes import NodeRow

Manifest = dict[str, Any]


def fetched(kind: str, *objects: Manifest | bytes) -> Fetched:
    raw = [msgspec.Raw(each if isinstance(each, bytes) else msgspec.json.encode(each)) for each in objects]
    return Fetched(kind, "v1", raw, False)


def read(nodes: Fetched, pods: Fetched | Refused) -> tuple[dict[str, NodeRow], list[str]]:
    told: list[str] = []
    return {row.name: row for row in rows_of(Settings(), nodes, pods, told.append)}, told


def half_gpu(name: str, fraction: str, where: str) -> Manifest:
    made = pod(name).on(where)
    made["metadata"]["annotations"] = {"gpu-fraction": fraction, "runai-gpu-group": "g0"}
    return made


def test_rows_are_those_of_the_overview() -> None:
    nodes = [node("a").cpu(8).gpu(2), node("b").cpu(4)]
    pods = [pod("one").cpu(3).on("a"), pod("two").cpu(1).on("b"), pod("waits").cpu(1), half_gpu("half", "0.5", "a")]
    found, told = read(fetched("Node", *nodes), fetched("Pod", *pods))
    documents = [Document(each) for each in (*nodes, *pods)]
    whole = asyncio.run(overview_of(Listed(documents), "navarch", installed(), told.append))
    assert list(found.values()) == whole.nodes and told == []
    assert found["a"].used["nvidia.com/gpu"] == 1000 and found["b"].used["cpu"] == 1000


def test_what_cannot_be_read_is_told_and_a_pod_holds_what_can_be_read() -> None:
    bad_node, bad_pod = node("odd"), pod("early").cpu(2).on("a")
    bad_node["metadata"]["labels"] = {"tier": 1}
    bad_pod["spec"]["priority"] = "high"
    cut = msgspec.json.encode(node("deep").cpu(1)).replace(b'"kind"', b'"annotations": ' + b"[" * 5000 + b"]" * 5000 + b', "kind"', 1)
    pods = fetched("Pod", bad_pod, half_gpu("dot", "abc", "b"), half_gpu("dash", "abc", ""))
    found, told = read(fetched("Node", node("a").cpu(8), node("b").cpu(8), bad_node, cut), pods)
    assert list(found) == ["a", "b", "deep"] and found["a"].used["cpu"] == 2000
    assert "left out: Node odd: metadata.labels[tier]: found 1, expected text" in told
    assert any(line.startswith("Pod default/early: spec.priority: found 'high'") for line in told)
    assert any("Pod default/dot: metadata.annotations[gpu-fraction]" in line for line in told)
    assert any(line.startswith("left out: Pod default/dash: ") for line in told)


def test_pods_that_may_not_be_listed_are_told() -> None:
    refused = Refused("Pod", "pods", Forbidden(Status(message="no"), method="GET", path="/api/v1/pods"))
    found, told = read(fetched("Node", node("a").cpu(8)), refused)
    assert found["a"].used == {} and told[0].startswith("not shown, since they may not be listed: pods (")
