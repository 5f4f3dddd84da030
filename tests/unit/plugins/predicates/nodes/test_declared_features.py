"""Pods that need a feature of the kubelet go to nodes that declare it."""

from __future__ import annotations

from typing import Any

import pytest

import navarch
from navarch.testing.builders import node, pod

RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


def declaring(name: str, *features: str) -> Any:
    made = node(name)
    made.child("status")["declaredFeatures"] = list(features)
    return made


def restarting(kind: str = "containers") -> Any:
    made = pod("p")
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    made["spec"].setdefault(kind, [{"name": "i", "image": "x"}])[0]["restartPolicyRules"] = [rule]
    return made


def own_users() -> Any:
    made = pod("p")
    made["spec"] |= {"hostNetwork": True, "hostUsers": False}
    return made


@pytest.mark.parametrize(
    ("user", "feature"),
    [(restarting(), RESTART), (restarting("initContainers"), RESTART), (own_users(), USERS)],
)
def test_a_pod_that_needs_a_feature(user: Any, feature: str) -> None:
    others = [each for each in (RESTART, USERS) if each != feature]
    objects = [declaring("a"), declaring("b", *others), declaring("c", feature, *others), user]
    record = navarch.plan(objects, policy="kube-scheduler").records[0]
    assert [bind.node for bind in record.binds] == ["c"]
    record = navarch.plan([*objects[:2], user], policy="kube-scheduler").records[0]
    (words,) = [each.message for job in record.jobs for each in job.refusals]
    assert words.startswith("0/2 nodes are available: 2 node(s) didn't match Pod's required features.")


@pytest.mark.parametrize("spec", [{"hostNetwork": True}, {"hostUsers": False}, {"hostNetwork": True, "hostUsers": True}])
def test_a_pod_that_needs_none(spec: dict[str, bool]) -> None:
    made = pod("p")
    made["spec"] |= spec
    assert navarch.plan([declaring("a"), made], policy="kube-scheduler").records[0].binds
