"""How objects are read under a policy: the `Settings` that follow from its parameters and switches."""

from __future__ import annotations

from collections.abc import Iterable

from navarch.apis.dialect import Settings
from navarch.engine.policy.values import Policy


def settings_for(
    policy: Policy,
    scheduler_names: Iterable[str] | str | None = None,
    namespace_as_queue: bool = False,
    node_pool_label_key: str = "",
    partition_label_value: str = "",
) -> Settings:
    """How objects are read under this policy. `scheduler_names` replaces the name in the policy's parameters, and a
    `node_pool_label_key` the node pool there."""
    if partition_label_value and not node_pool_label_key:
        raise ValueError("partition_label_value: expected node_pool_label_key beside it, which label has that value")
    semantics = policy.semantics
    names = _names(scheduler_names)
    if names is None and policy.params.get("schedulerName"):
        names = frozenset({str(policy.params["schedulerName"])})
    pooled = semantics.nodes_are_pooled or "partitionLabelValue" in policy.params
    return Settings(
        scheduler_names=names,
        node_pool_key=node_pool_label_key or (str(policy.param("nodePoolLabelKey")) if pooled else ""),
        node_pool=partition_label_value if node_pool_label_key else str(policy.param("partitionLabelValue")),
        node_labels=_labels(policy.param("nodeSelector")),
        namespace_as_queue=namespace_as_queue or bool(policy.param("namespaceAsQueue")),
        default_queue=str(policy.param("defaultQueue")),
        shadow_groups=not policy.param("groupRequired"),
        imply_queues=semantics.implied_queues,
        composite_groups="schedule" in policy.actions,
        queue_label=str(policy.param("queueLabelKey")),
    )


def _labels(texts: object) -> frozenset[tuple[str, str]]:
    """Labels that are written as KEY:VALUE. The reader of policies refuses an entry that has no value."""
    given = texts if isinstance(texts, list | tuple) else ()
    pairs = (str(text).partition(":")[::2] for text in given)
    return frozenset((key.strip(), value.strip()) for key, value in pairs if value.strip())


def _names(given: Iterable[str] | str | None) -> frozenset[str] | None:
    """Scheduler names; None stays None."""
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise ValueError(f"scheduler_names: found {given!r}, expected a name or names")
    return frozenset(names)
