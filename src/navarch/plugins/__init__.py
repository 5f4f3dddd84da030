"""Plugins: the rules of a policy, one file each."""

from __future__ import annotations

from navarch.engine.plugin import Plugin


def builtin_plugins() -> tuple[type[Plugin], ...]:
    """Every plugin that comes with Navarch."""
    from navarch.plugins.binpack import Binpack
    from navarch.plugins.capacity import Capacity
    from navarch.plugins.conformance import Conformance
    from navarch.plugins.drf import Drf
    from navarch.plugins.gang import Gang
    from navarch.plugins.kube_scheduler import KUBE_PLUGINS
    from navarch.plugins.nodegroup import NodeGroup
    from navarch.plugins.nodeorder.plugin import NodeOrder
    from navarch.plugins.overcommit import Overcommit
    from navarch.plugins.predicates.plugin import Predicates
    from navarch.plugins.priority import Priority
    from navarch.plugins.proportion import Proportion

    return (
        Binpack,
        Capacity,
        Conformance,
        Drf,
        Gang,
        NodeGroup,
        NodeOrder,
        Overcommit,
        Predicates,
        Priority,
        Proportion,
        *KUBE_PLUGINS,
    )
