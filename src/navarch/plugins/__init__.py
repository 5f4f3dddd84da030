"""Plugins: the rules of a policy, one file each."""

from __future__ import annotations

from navarch.engine.plugin import Plugin


def builtin_plugins() -> tuple[type[Plugin], ...]:
    """Every plugin that comes with Navarch."""
    from navarch.plugins.binpack import Binpack
    from navarch.plugins.capacity import Capacity
    from navarch.plugins.cdp import Cdp
    from navarch.plugins.conformance import Conformance
    from navarch.plugins.drf import Drf, KubeBatchDrf
    from navarch.plugins.gang import Gang
    from navarch.plugins.kube_batch_proportion import KubeBatchProportion
    from navarch.plugins.kube_scheduler import KUBE_PLUGINS
    from navarch.plugins.network_topology_aware import NetworkTopologyAware
    from navarch.plugins.nodegroup import NodeGroup
    from navarch.plugins.nodeorder.plugin import NodeOrder
    from navarch.plugins.overcommit import Overcommit
    from navarch.plugins.pdb import Pdb
    from navarch.plugins.predicates.plugin import Predicates
    from navarch.plugins.priority import Priority
    from navarch.plugins.proportion import Proportion
    from navarch.plugins.resource_strategy_fit import ResourceStrategyFit
    from navarch.plugins.resourcequota import ResourceQuota
    from navarch.plugins.sla import Sla
    from navarch.plugins.tdm import Tdm

    return (
        Binpack,
        Capacity,
        Cdp,
        Conformance,
        Drf,
        Gang,
        *KUBE_PLUGINS,
        KubeBatchDrf,
        KubeBatchProportion,
        NetworkTopologyAware,
        NodeGroup,
        NodeOrder,
        Overcommit,
        Pdb,
        Predicates,
        Priority,
        Proportion,
        ResourceQuota,
        ResourceStrategyFit,
        Sla,
        Tdm,
    )
