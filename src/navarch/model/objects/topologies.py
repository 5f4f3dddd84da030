"""Which nodes lie close together: levels of node labels (KAI's Topology), and HyperNodes (Volcano)."""

from __future__ import annotations

from navarch.model.spec import LabelSelector, Spec


class LevelSpec(Spec, frozen=True):
    """One level of a topology: nodes with equal values of this label, and of all levels above, lie together."""

    label: str
    alias: str = ""


class TopologySpec(Spec, frozen=True):
    """Levels from coarse to fine."""

    name: str
    levels: tuple[LevelSpec, ...] = ()


class MemberSpec(Spec, frozen=True):
    """The members of a HyperNode: one by `name`, all whose name matches `pattern`, or all that `selector` selects.
    Only `nodes` can be found by pattern or labels; a HyperNode is a member by name."""

    nodes: bool = True
    name: str = ""
    pattern: str | None = None
    selector: LabelSelector | None = None


class HyperNodeSpec(Spec, frozen=True):
    """Nodes that lie together, and smaller such sets inside it. The lower the tier, the closer."""

    name: str
    tier: int = 0
    tier_name: str = ""
    members: tuple[MemberSpec, ...] = ()
