"""`schedulerParams`: what other schedulers take as command-line flags and what still changes a decision.

Each has one name here, in camelCase; the flag's own spelling (`max-consolidation-preemptees`) is taken as well, so that a
Deployment's arguments can be copied into the policy file.
"""

from __future__ import annotations

from collections.abc import Mapping

from navarch.engine.arguments import Argument

_ALL_NODES = "every feasible node is scored, so no search stops early"
_ALL: tuple[Argument, ...] = (
    Argument("schedulerName", "str", "", "whose pending pods are decided; empty: everyone's"),
    Argument("defaultQueue", "str", "default", "the queue of a group that names none"),
    Argument("namespaceAsQueue", "bool", False, "a group that names no queue belongs to the queue of its namespace"),
    Argument("groupRequired", "bool", False, "pods with neither a group nor a disruption budget of their controller wait"),
    Argument("shardingMode", "str", "none", "whether this scheduler keeps to its shard's nodes", ("none", "hard", "soft")),
    Argument("shardName", "str", "volcano", "the NodeShard whose nodes are this scheduler's"),
    Argument("nodesInShard", "list", (), "the nodes of this scheduler's shard"),
    Argument("ignoredProvisioners", "list", (), "volumes of every provisioner are looked at", has_effect=False),
    Argument("percentageNodesToFind", "int", 100, _ALL_NODES, has_effect=False),
    Argument("minimumFeasibleNodes", "int", 100, _ALL_NODES, has_effect=False),
    Argument("minimumPercentageNodesToFind", "int", 5, _ALL_NODES, has_effect=False),
    Argument("maxNumberConsolidationPreemptees", "int", 16, "how many pods one consolidation may move; -1: no limit"),
    Argument("allowConsolidatingReclaim", "bool", True, "victims that get a new place do not count as reclaimed"),
    Argument("fullHierarchyFairness", "bool", True, "fair shares follow the whole tree of queues, not two levels"),
    Argument("useSchedulingSignatures", "bool", True, "jobs equal to one that failed are not tried again in the cycle"),
    Argument("globalDefaultStalenessGracePeriod", "duration", 60.0, "how long a broken gang may stay; negative: for ever"),
    Argument("stuckInReleasingThreshold", "duration", 120.0, "after this long a terminating pod is not waited for"),
    Argument("restrictSchedulingNodes", "bool", False, "GPU pods go to GPU workers and other pods to CPU workers only"),
    Argument("scheduleCSIStorage", "bool", False, "storage capacity always counts, by the driver's own figures", has_effect=False),
    Argument("queueLabelKey", "str", "kai.scheduler/queue", "the label of a pod that names its queue"),
    Argument("nodePoolLabelKey", "str", "kai.scheduler/node-pool", "the label that divides nodes among schedulers"),
    Argument("partitionLabelValue", "str", "", "the pool of this scheduler; empty: nodes without the label"),
    Argument("cpuWorkerNodeLabelKey", "str", "node-role.kubernetes.io/cpu-worker", "the label of CPU workers"),
    Argument("gpuWorkerNodeLabelKey", "str", "node-role.kubernetes.io/gpu-worker", "the label of GPU workers"),
    Argument("migWorkerNodeLabelKey", "str", "node-role.kubernetes.io/mig-enabled", "the label of nodes with MIG"),
    Argument("detailedFitErrors", "bool", False, "reasons count nodes; `navarch explain` names them", has_effect=False),
)
PARAMETERS: Mapping[str, Argument] = {a.name: a for a in _ALL}

FLAGS: Mapping[str, str] = {
    "scheduler-name": "schedulerName",
    "default-queue": "defaultQueue",
    "enable-namespace-as-queue": "namespaceAsQueue",
    "scheduler-sharding-mode": "shardingMode",
    "scheduler-sharding-name": "shardName",
    "ignored-provisioners": "ignoredProvisioners",
    "percentage-nodes-to-find": "percentageNodesToFind",
    "minimum-feasible-nodes": "minimumFeasibleNodes",
    "minimum-percentage-nodes-to-find": "minimumPercentageNodesToFind",
    "max-consolidation-preemptees": "maxNumberConsolidationPreemptees",
    "allow-consolidating-reclaim": "allowConsolidatingReclaim",
    "full-hierarchy-fairness": "fullHierarchyFairness",
    "use-scheduling-signatures": "useSchedulingSignatures",
    "default-staleness-grace-period": "globalDefaultStalenessGracePeriod",
    "stuck-in-releasing-threshold": "stuckInReleasingThreshold",
    "restrict-node-scheduling": "restrictSchedulingNodes",
    "schedule-csi-storage": "scheduleCSIStorage",
    "queue-label-key": "queueLabelKey",
    "nodepool-label-key": "nodePoolLabelKey",
    "partition-label-value": "partitionLabelValue",
    "cpu-worker-node-label-key": "cpuWorkerNodeLabelKey",
    "gpu-worker-node-label-key": "gpuWorkerNodeLabelKey",
    "mig-worker-node-label-key": "migWorkerNodeLabelKey",
    "detailed-fit-errors": "detailedFitErrors",
}
