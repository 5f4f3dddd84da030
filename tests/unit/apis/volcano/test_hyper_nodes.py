"""HyperNodes: members by name, pattern and labels; what makes no sense names the object and the field."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.apis.core.objects import from_manifest
from navarch.apis.dialect import Settings
from navarch.apis.errors import ObjectError
from navarch.apis.volcano.hyper_nodes import HyperNode, read_hyper_node
from navarch.model.objects.topologies import HyperNodeSpec, MemberSpec
from navarch.model.spec import LabelSelector, ObjectSpec, Requirement


def read(*members: dict[str, Any], **spec: Any) -> ObjectSpec:
    manifest = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "s0"},
        "spec": {"tier": 1, "members": list(members), **spec},
    }
    return read_hyper_node(from_manifest(manifest, HyperNode), Settings())


def node(**selector: Any) -> dict[str, Any]:
    return {"type": "Node", "selector": selector}


def test_members_are_read_in_every_way_that_finds_them() -> None:
    found = read(
        node(exactMatch={"name": "n1"}),
        node(regexMatch={"pattern": "^gpu-"}),
        node(labelMatch={"matchLabels": {"rack": "r1"}}),
        {"type": "HyperNode", "selector": {"exactMatch": {"name": "s1"}}},
        tierName="rack",
    )
    selector = LabelSelector((Requirement("rack", "In", ("r1",)),))
    members = (
        MemberSpec(name="n1"),
        MemberSpec(pattern="^gpu-"),
        MemberSpec(selector=selector),
        MemberSpec(nodes=False, name="s1"),
    )
    assert found == ObjectSpec("HyperNode", "", "s0", HyperNodeSpec("s0", 1, "rack", members))


def test_empty_names_and_selectors_find_no_node() -> None:
    by_pattern = {"type": "HyperNode", "selector": {"regexMatch": {"pattern": "x"}}}
    empty = read(node(exactMatch={"name": ""}), node(labelMatch={}), by_pattern)
    assert empty.value == HyperNodeSpec("s0", 1)


@pytest.mark.parametrize(
    ("member", "text"),
    [
        ({"type": "Rack", "selector": {}}, "HyperNode s0: spec.members[0].type: found 'Rack', expected Node or HyperNode"),
        (node(regexMatch={"pattern": "("}), "HyperNode s0: spec.members[0].selector.regexMatch.pattern: found '('"),
        (node(labelMatch={"matchExpressions": [{"key": "a", "operator": "Near"}]}), "spec.members[0].selector.labelMatch"),
    ],
)
def test_mistakes_name_the_object_and_the_field(member: dict[str, Any], text: str) -> None:
    with pytest.raises(ObjectError) as mistake:
        read(member)
    assert text in str(mistake.value)
