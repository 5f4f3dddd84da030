"""`schedulerParams`: what other schedulers take as command-line flags and what still changes a decision.

Each has one name here, in camelCase; the flag's own spelling (`max-consolidation-preemptees`) is taken as well, so that a
Deployment's arguments can be copied into the policy file. Flags that set up the process of such a scheduler are known too: each is
told by the option of `navarch run` that does the same, or by the reason why there is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from navarch.engine.arguments import Argument, WrongKind


def _check_label(text: object) -> None:
    key, _, value = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not key.strip() or not value.strip():
        raise WrongKind(f"found {text!r}, expected a label as KEY:VALUE")


_ALL_NODES = "every feasible node is scored, so no search stops early"
_ALL: tuple[Argument, ...] = (
    Argument("schedulerName", "str", "", "whose pending pods are decided; empty: everyone's"),
    Argument("defaultQueue", "str", "default", "the queue of a group that names none"),
    Argument("namespaceAsQueue", "bool", False, "a group that names no queue belongs to the queue of its namespace"),
    Argument("groupRequired", "bool", False, "pods with neither a group nor a disruption budget of their controller wait"),
    Argument("shardingMode", "str", "none", "whether this scheduler keeps to its shard's nodes", ("none", "hard", "soft")),
    Argument("shardName", "str", "volcano", "the NodeShard whose nodes are this scheduler's"),
    Argument("nodesInShard", "list", (), "the nodes of this scheduler's shard"),
    Argument("nodeSelector", "list", (), "labels KEY:VALUE; nodes with none of them are not ours", check_entry=_check_label),
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
    "node-selector": "nodeSelector",
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
"""Flags of Volcano and KAI that are parameters of a policy."""

_LISTEN, _LOG = "--listen ADDR", "--log-level LEVEL, --log-format text|json"
OPTIONS: Mapping[str, str] = {
    "scheduler-conf": "--policy FILE",
    "config": "--policy FILE",
    "schedule-period": "--period SECONDS",
    **dict.fromkeys(("listen-address", "healthz-address", "bind-address", "secure-port"), _LISTEN),
    "tls-private-key-file": "--tls-key-file FILE",
    "leader-elect-lease-duration": "--lease-duration SECONDS",
    "leader-elect-renew-deadline": "--renew-deadline SECONDS",
    "leader-elect-retry-period": "--retry-period SECONDS",
    **dict.fromkeys(("leader-elect-resource-namespace", "lock-object-namespace", "namespace"), "--lock-namespace NAMESPACE"),
    "leader-elect-resource-name": "--lock-name NAME",
    "nodepool-label-key": "--node-pool-label-key KEY",
    "enable-namespace-as-queue": "--namespace-as-queue",
    "plugins-dir": "--plugin-dir DIR, for plugins in Python; shared libraries of Go cannot be loaded",
    "cache-dump-dir": "--record DIR",
    **dict.fromkeys(("v", "vmodule", "logging-format", "log-json", "logtostderr", "alsologtostderr"), _LOG),
    "metrics-namespace": "--metrics-names SYSTEM, with the default names of that system",
}
"""Flags of the processes of other schedulers -> the option of `navarch run` that does the same."""

_RATE = "requests are bounded by the number in flight, not by a rate"
_WORKERS = "there are no worker threads to count"
_PROFILES = "no profile is served"
_CERTIFICATES = "the endpoint for health and metrics has its own settings: --listen, --tls-cert-file, --protect-metrics"
_METRICS = "all metrics are served"
WITHOUT_OPTION: Mapping[str, str] = {
    **dict.fromkeys(("kube-api-qps", "kube-api-burst", "qps", "burst"), _RATE),
    "kube-api-content-type": "requests are JSON",
    "master": "the kubeconfig has the address of the API server",
    **dict.fromkeys(("node-worker-threads", "num-of-status-recording-workers", "gate-removal-worker-num"), _WORKERS),
    **dict.fromkeys(("enable-healthz", "enable-metrics"), "health and metrics are served wherever --listen names an address"),
    **dict.fromkeys(("profiling", "contention-profiling", "enable-pprof", "enable-profiler", "profiler-port"), _PROFILES),
    **dict.fromkeys(("pyroscope-address", "pyroscope-mutex-profiler-rate", "pyroscope-block-profiler-rate"), _PROFILES),
    "plugin-server-port": "/debug/snapshot and /state/waiting of --listen take the place of the plugins' server",
    "cache-dumper": "/debug/snapshot has the input and outcome of the last cycle",
    **dict.fromkeys(("resync-period", "resource-sync-timeout"), "watches are read until they are complete, and are not read again"),
    "disable-default-scheduler-config": "a policy file with mistakes is refused, and the last good one stays in force",
    "priority-class": "priority classes always count",
    "csi-storage": "storage capacity always counts",
    "update-pod-eviction-condition": "every victim gets the condition DisruptionTarget",
    "resource-reservation-app-label": "KAI's binder and its reservation pods stay as they are installed",
    "feature-gates": "there are no feature gates; docs/parity.md says what stands in their place",
    **dict.fromkeys(("emulated-version", "min-compatibility-version"), "there is one version of the rules"),
    "write-config-to": "`navarch policy check -o json` prints the policy in effect",
    "leader-elect-resource-lock": "the lock is always a Lease",
    "pod-max-in-unschedulable-pods-duration": "a refused pod is tried again by its back-off, after ten seconds at most",
    **dict.fromkeys(("log-flush-frequency", "log-text-info-buffer-size", "log-text-split-stream"), "the log is not buffered"),
    **dict.fromkeys(("allow-metric-labels", "allow-metric-labels-manifest", "disabled-metrics"), _METRICS),
    "show-hidden-metrics-for-version": _METRICS,
    **dict.fromkeys(("ca-cert-file", "cert-dir", "client-ca-file", "tls-cipher-suites", "tls-curve-preferences"), _CERTIFICATES),
    **dict.fromkeys(
        ("tls-min-version", "tls-sni-cert-key", "disable-http2-serving", "http2-max-streams-per-connection"), _CERTIFICATES
    ),
    **dict.fromkeys(("permit-address-sharing", "permit-port-sharing"), _CERTIFICATES),
    **dict.fromkeys(
        (
            "authentication-kubeconfig",
            "authentication-skip-lookup",
            "authentication-token-webhook-cache-ttl",
            "authentication-tolerate-lookup-failure",
            "authorization-always-allow-paths",
            "authorization-kubeconfig",
            "authorization-webhook-cache-authorized-ttl",
            "authorization-webhook-cache-unauthorized-ttl",
            "requestheader-allowed-names",
            "requestheader-client-ca-file",
            "requestheader-extra-headers-prefix",
            "requestheader-group-headers",
            "requestheader-uid-headers",
            "requestheader-username-headers",
        ),
        "the API server of the kubeconfig says who may read protected pages (--protect-metrics)",
    ),
}
"""Flags of the processes of other schedulers -> why `navarch run` has no such option."""


def about_flag(name: str) -> str:
    """Why a flag of another scheduler has no effect here. Empty: no such flag is known.

    >>> about_flag("--scheduler-conf")
    'it is an option of `navarch run`: --policy FILE'
    >>> about_flag("numOfStatusRecordingWorkers")
    'there are no worker threads to count'
    """
    flag = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.lstrip("-")).lower()
    if flag in OPTIONS:
        return f"it is an option of `navarch run`: {OPTIONS[flag]}"
    return WITHOUT_OPTION.get(flag, "")
