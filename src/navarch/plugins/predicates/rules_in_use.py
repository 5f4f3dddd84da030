"""Which filters can refuse any pod of the cluster.

A filter that no shape and no node of the cluster concerns passes every node. To make it in every cycle and to ask it about every class
of tasks would be half of the cost of a cycle with one new pod. The answers are kept while shapes and nodes stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from navarch.model.memo import memoised
from navarch.model.objects.devices import DEVICE_CLASS
from navarch.model.objects.workloads import CONTROLLERS, SERVICE
from navarch.model.selectors import HARD_EFFECTS
from navarch.model.shape_facts import of_shapes
from navarch.model.snapshot import Snapshot
from navarch.model.spec import Shape
from navarch.plugins.predicates.devices.unserved_cards import is_npu_part
from navarch.plugins.predicates.nodes.affinity import has_demand
from navarch.plugins.predicates.nodes.properties import node_properties

_SELECTING = (SERVICE, *CONTROLLERS)
"""Kinds of objects from which default spread constraints are made."""


class RulesInUse(Struct, frozen=True):
    """True: some pod or node may have what the rule is about."""

    unsupported: bool
    unserved_cards: bool
    node_demand: bool
    ports: bool
    pod_affinity: bool
    volumes: bool
    spread: bool
    claims: bool
    extended: bool
    """Extended resources: where there are device classes, they may be claims."""
    cordoned: bool = False
    hard_taints: bool = False


def rules_in_use(snapshot: Snapshot) -> RulesInUse:
    found = of_shapes(snapshot, "rules in use", _used_by_shapes)
    cordoned, hard_taints = memoised(snapshot, "closed nodes", snapshot.nodes.version, lambda: _closed(snapshot))
    return replace(
        found,
        spread=found.spread or any(kind in snapshot.objects for kind in _SELECTING),
        claims=found.claims or (found.extended and DEVICE_CLASS in snapshot.objects),
        cordoned=cordoned,
        hard_taints=hard_taints,
    )


def _used_by_shapes(shapes: Sequence[Shape]) -> RulesInUse:
    """What pods alone say, without the nodes and the other objects."""
    return RulesInUse(
        unsupported=any(shape.unsupported for shape in shapes),
        unserved_cards=any(shape.cards is not None or any(is_npu_part(name) for name, _ in shape.requests) for shape in shapes),
        node_demand=any(map(has_demand, shapes)),
        ports=any(shape.ports for shape in shapes),
        pod_affinity=any(shape.pod_affinity is not None for shape in shapes),
        volumes=any(shape.volumes is not None for shape in shapes),
        spread=any(shape.spread for shape in shapes),
        claims=any(shape.claims for shape in shapes),
        extended=any(shape.extended for shape in shapes),
    )


def _closed(snapshot: Snapshot) -> tuple[bool, bool]:
    """Whether a node is cordoned, and whether one has a hard taint."""
    columns = node_properties(snapshot)
    _, lists = columns.taints
    hard = any(taint.effect in HARD_EFFECTS for taints in lists for taint in taints)
    return bool(columns.unschedulable.any()), hard
