"""One installation of the scheduler: the shipped objects with what a user chose filled in.

A cluster can have several (one for each pool of nodes, say): each has a name, which every object of it carries in the place of
`navarch`, those of the whole cluster as well, and the lease too, so that two of them never wait for each other.

>>> installation = Installation(namespace="batch", scheduler_names=("navarch", "volcano"))
>>> deployment = next(item for item in installation.objects() if item["kind"] == "Deployment")
>>> deployment["metadata"]["namespace"], deployment["spec"]["template"]["spec"]["containers"][0]["args"]
('batch', ['run', '--crash-dir=/var/lib/navarch', '--scheduler-name=navarch', '--scheduler-name=volcano'])
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from navarch import manifests
from navarch.object_types import Manifest
from navarch.yaml_loading import Loader

NAMESPACE = "navarch-system"
NAME = "navarch"
INSTANCE = "app.kubernetes.io/instance"
DIALECTS = {
    "coscheduling": frozenset({"scheduling.x-k8s.io"}),
    "kai": frozenset({"scheduling.run.ai", "kai.scheduler", "topology.node.k8s.io"}),
    "kube-batch": frozenset({"scheduling.incubator.k8s.io", "scheduling.sigs.dev"}),
    "volcano": frozenset({"scheduling.volcano.sh", "topology.volcano.sh", "nodeinfo.volcano.sh", "shard.volcano.sh"}),
}
"""API groups whose CRDs make up a dialect. What a name stands for is what a user of that system has installed."""

CUSTOM_METRICS: Manifest = {
    "apiGroups": ["custom.metrics.k8s.io"],
    "resources": ["nodes/node_cpu_usage_avg", "nodes/node_memory_usage_avg"],
    "verbs": ["get"],
}
"""The load of nodes from the Prometheus adapter (`live/node_load/custom_metrics.py`). The chart has the same rule."""


@dataclass(frozen=True)
class Installation:
    """What may differ between two clusters. `policy` is the text of a policy file; without one the built-in holds."""

    namespace: str = NAMESPACE
    name: str = NAME
    image: str | None = None
    replicas: int | None = None
    scheduler_names: tuple[str, ...] = ()
    policy: str | None = None
    run_options: tuple[str, ...] = ()
    """Added to the command line of `navarch run`."""
    dialects: tuple[str, ...] = tuple(DIALECTS)
    web: bool = False
    """With the dashboard."""

    def objects(self) -> list[Manifest]:
        """Every object, in the order in which an empty cluster accepts them."""
        return [
            *self._placed(manifests.namespace()),
            *self.crds(),
            *self._placed(self._rbac()),
            *self._placed(self._policy_object()),
            *self._placed(self._deployment()),
            *self._placed(manifests.service()),
            *self._placed(manifests.network_policy()),
            *self._placed(manifests.service_monitor()),
            *self._placed(self._web() if self.web else []),
        ]

    def crds(self) -> list[Manifest]:
        """The CRDs of the chosen dialects."""
        groups = frozenset[str]().union(*(DIALECTS[dialect] for dialect in self.dialects))
        return [crd for crd in manifests.crds() if crd["spec"]["group"] in groups]

    def _placed(self, objects: list[Manifest]) -> Iterator[Manifest]:
        """With namespace and name of this installation."""
        for item in objects:
            if item["kind"] == "Namespace":
                item["metadata"]["name"] = self.namespace
                yield item
                continue
            if "namespace" in item["metadata"]:
                item["metadata"]["namespace"] = self.namespace
            for subject in _accounts(item):
                subject["namespace"] = self.namespace
            yield self._named(item) if self.name != NAME else item

    def _named(self, item: Manifest) -> Manifest:
        """What refers to another object of ours follows its name; labels that select tell the installations apart."""
        for place in (item["metadata"], item.get("roleRef"), *_accounts(item)):
            if place:
                place["name"] = place["name"].replace(NAME, self.name, 1)
        for rule in item.get("rules", ()) if item["kind"] == "Role" else ():
            if "resourceNames" in rule:
                rule["resourceNames"] = [name.replace(NAME, self.name, 1) for name in rule["resourceNames"]]
        for labels in _labels(item):
            labels[INSTANCE] = self.name
        if item["kind"] == "Deployment":
            pod = item["spec"]["template"]["spec"]
            pod["serviceAccountName"] = pod["serviceAccountName"].replace(NAME, self.name, 1)
            for volume in pod.get("volumes", ()):
                if "configMap" in volume:
                    volume["configMap"]["name"] = f"{self.name}-policy"
        return item

    def _rbac(self) -> list[Manifest]:
        """The shipped rights, and those on custom metrics where the policy takes the load of nodes from them."""
        objects = manifests.rbac()
        if self.policy is not None and _reads_custom_metrics(self.policy):
            (role,) = (item for item in objects if item["kind"] == "ClusterRole" and item["metadata"]["name"] == NAME)
            role["rules"].append(CUSTOM_METRICS)
        return objects

    def _deployment(self) -> list[Manifest]:
        objects = manifests.deployment()
        deployment = objects[0]
        template = deployment["spec"]["template"]
        container = template["spec"]["containers"][0]
        if self.image is not None:
            container["image"] = self.image
        if self.replicas is not None:
            deployment["spec"]["replicas"] = self.replicas
        container["args"] += [f"--scheduler-name={name}" for name in self.scheduler_names]
        if self.name != NAME:
            container["args"].append(f"--lock-name={self.name}")
        if self.policy is not None:
            container["args"].append("--policy=/etc/navarch/policy.yaml")
            container["volumeMounts"].append({"name": "policy", "mountPath": "/etc/navarch", "readOnly": True})
            template["spec"]["volumes"].append({"name": "policy", "configMap": {"name": "navarch-policy"}})
        container["args"] += self.run_options
        return objects

    def _web(self) -> list[Manifest]:
        objects = manifests.web()
        for item in objects:
            if item["kind"] == "Deployment":
                container = item["spec"]["template"]["spec"]["containers"][0]
                container["image"] = self.image or container["image"]
                state = f"--state={self.namespace}/{self.name}"
                container["args"] = [state if each.startswith("--state=") else each for each in container["args"]]
        return objects

    def _policy_object(self) -> list[Manifest]:
        if self.policy is None:
            return []
        metadata = {
            "name": "navarch-policy",
            "namespace": self.namespace,
            "labels": {"app.kubernetes.io/name": NAME, INSTANCE: NAME},
            # Replicas reload the file by themselves; the digest only shows which text is installed.
            "annotations": {"navarch/policy-digest": hashlib.sha256(self.policy.encode()).hexdigest()[:16]},
        }
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy.yaml": self.policy}}]


def _reads_custom_metrics(policy: str) -> bool:
    """Whether the text of a policy file says `metrics: {type: prometheus_adaptor}`. A text that is no YAML is refused elsewhere.

    >>> _reads_custom_metrics("metrics: {type: prometheus_adaptor}"), _reads_custom_metrics("metrics: {type: prometheus}")
    (True, False)
    """
    try:
        document = yaml.load(policy, Loader)
    except yaml.YAMLError:
        return False
    metrics = document.get("metrics") if isinstance(document, dict) else None
    return isinstance(metrics, dict) and metrics.get("type") == "prometheus_adaptor"


def _accounts(binding: Manifest) -> list[dict[str, str]]:
    """The service accounts among the subjects of a binding. Groups belong to the whole cluster."""
    return [subject for subject in binding.get("subjects", ()) if subject["kind"] == "ServiceAccount"]


def _labels(value: Any) -> Iterator[dict[str, str]]:
    """Every set of labels, or of labels to select by, that says whose it is, however deep."""
    if isinstance(value, dict):
        if INSTANCE in value:
            yield value
        for each in value.values():
            yield from _labels(each)
    elif isinstance(value, list):
        for each in value:
            yield from _labels(each)
