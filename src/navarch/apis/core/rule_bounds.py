"""How many rules one pod may have. Each term is looked up for each node or pod: thousands of them in a few pods would cost everybody.

A waiting pod with more is refused, with a reason that names the rule, how many there are and the bound. Of a pod that has a node the
first ones count, up to the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from navarch.apis.core.pod_objects import NodeAffinityPart, PodAffinityPart, PodSpec

MOST = 256
"""Terms of each kind of affinity, tolerations, and spread constraints of one pod."""


def bounded(spec: PodSpec, *, placed: bool) -> tuple[PodSpec, tuple[str, ...]]:
    """The pod's rules within the bound, and for a waiting pod what exceeds it."""
    affinity, most = spec.affinity, MOST if placed else 0
    told: list[str] = []

    def cut(rules: Sequence[Any] | None, what: str) -> Any:
        if rules is None or len(rules) <= MOST:
            return rules
        told.append(f"{len(rules)} {what} (at most {MOST})")
        return tuple(rules[:most])

    def pods(part: PodAffinityPart | None, what: str) -> PodAffinityPart | None:
        if part is None:
            return None
        return replace(part, required=cut(part.required, what), preferred=cut(part.preferred, f"preferred {what}"))

    def nodes(part: NodeAffinityPart | None) -> NodeAffinityPart | None:
        if part is None:
            return None
        required, what = part.required, "terms of node affinity"
        if required is not None:
            required = replace(required, node_selector_terms=cut(required.node_selector_terms, what))
        return replace(part, required=required, preferred=cut(part.preferred, f"preferred {what}"))

    if affinity is not None:
        affinity = replace(
            affinity,
            node_affinity=nodes(affinity.node_affinity),
            pod_affinity=pods(affinity.pod_affinity, "terms of pod affinity"),
            pod_anti_affinity=pods(affinity.pod_anti_affinity, "terms of pod anti-affinity"),
        )
    tolerations = cut(spec.tolerations, "tolerations")
    spread = cut(spec.topology_spread_constraints, "topology spread constraints")
    if not told:
        return spec, ()
    within = replace(spec, affinity=affinity, tolerations=tolerations, topology_spread_constraints=spread)
    return within, () if placed else tuple(told)
