"""Volcano's HyperNodes (topology.volcano.sh/v1alpha1): which nodes share a switch, and which switches share a higher switch."""

from __future__ import annotations

from typing import Final

from navarch.apis.core.objects import Int32, KubeObject, LabelSelectorPart, Part
from navarch.apis.core.selection import label_selector
from navarch.apis.dialect import Kind, Settings
from navarch.apis.errors import ObjectError
from navarch.model.objects.topologies import HyperNodeSpec, MemberSpec
from navarch.model.patterns import PatternError, compile_pattern
from navarch.model.selectors import label_selector_errors
from navarch.model.spec import ObjectSpec

VERSIONS: Final = ("topology.volcano.sh/v1alpha1",)


class ExactMatch(Part, frozen=True):
    name: str = ""


class RegexMatch(Part, frozen=True):
    pattern: str = ""


class MemberSelector(Part, frozen=True):
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelectorPart | None = None


class Member(Part, frozen=True):
    type: str = ""
    selector: MemberSelector = MemberSelector()


class HyperNodePart(Part, frozen=True):
    tier: Int32 = 0
    tier_name: str | None = None
    members: tuple[Member, ...] | None = None


class HyperNode(KubeObject, frozen=True):
    spec: HyperNodePart = HyperNodePart()


def read_hyper_node(found: HyperNode, settings: Settings) -> ObjectSpec:
    name, spec = found.metadata.name, found.spec
    members = tuple(part for i, member in enumerate(spec.members or ()) for part in _members(name, i, member))
    return ObjectSpec("HyperNode", "", name, HyperNodeSpec(name, spec.tier, spec.tier_name or "", members))


def _members(name: str, number: int, member: Member) -> list[MemberSpec]:
    """One entry for each kind of selector. Empty names and empty selectors match no member."""
    path, selector = f"spec.members[{number}]", member.selector
    if member.type not in ("Node", "HyperNode"):
        raise ObjectError("HyperNode", name, f"{path}.type", repr(member.type), "Node or HyperNode")
    nodes = member.type == "Node"
    found = []
    if selector.exact_match is not None and selector.exact_match.name:
        found.append(MemberSpec(nodes, name=selector.exact_match.name))
    if not nodes:
        return found
    if selector.regex_match is not None:
        pattern = selector.regex_match.pattern
        try:
            compile_pattern(pattern)
        except PatternError as error:
            expected = f"a regular expression ({error})"
            raise ObjectError("HyperNode", name, f"{path}.selector.regexMatch.pattern", repr(pattern), expected) from None
        found.append(MemberSpec(pattern=pattern))
    labels = label_selector(selector.label_match)
    if labels is not None and labels.requirements:
        errors = label_selector_errors(labels)
        if errors:
            raise ObjectError("HyperNode", name, f"{path}.selector.labelMatch", errors[0], "a label selector")
        found.append(MemberSpec(selector=labels))
    return found


KINDS: Final = (Kind(VERSIONS, "HyperNode", "hypernodes", HyperNode, read_hyper_node, namespaced=False),)
