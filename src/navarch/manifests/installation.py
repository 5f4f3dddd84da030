"""One installation of the scheduler: the shipped objects with what a user chose filled in.

>>> installation = Installation(namespace="batch", scheduler_names=("navarch", "volcano"))
>>> deployment = next(item for item in installation.objects() if item["kind"] == "Deployment")
>>> deployment["metadata"]["namespace"], deployment["spec"]["template"]["spec"]["containers"][0]["args"]
('batch', ['run', '--scheduler-name=navarch', '--scheduler-name=volcano'])
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from navarch import manifests
from navarch.manifests import Manifest

NAMESPACE = "navarch-system"
#: API groups whose CRDs make up a dialect. What a name stands for is what a user of that system has installed.
DIALECTS = {
    "coscheduling": frozenset({"scheduling.x-k8s.io"}),
    "kai": frozenset({"scheduling.run.ai", "kai.scheduler", "topology.node.k8s.io"}),
    "kube-batch": frozenset({"scheduling.incubator.k8s.io", "scheduling.sigs.dev"}),
    "volcano": frozenset({"scheduling.volcano.sh", "topology.volcano.sh", "nodeinfo.volcano.sh", "shard.volcano.sh"}),
}


@dataclass(frozen=True)
class Installation:
    """What may differ between two clusters. `policy` is the text of a policy file; without one the built-in holds."""

    namespace: str = NAMESPACE
    image: str | None = None
    replicas: int | None = None
    scheduler_names: tuple[str, ...] = ()
    policy: str | None = None
    dialects: tuple[str, ...] = tuple(DIALECTS)

    def objects(self) -> list[Manifest]:
        """Every object, in the order in which an empty cluster accepts them."""
        return [
            *self._namespaced(manifests.namespace()),
            *self.crds(),
            *self._namespaced(manifests.rbac()),
            *self._policy_object(),
            *self._namespaced(self._deployment()),
            *self._namespaced(manifests.service()),
            *self._namespaced(manifests.service_monitor()),
        ]

    def crds(self) -> list[Manifest]:
        """The CRDs of the chosen dialects."""
        groups = frozenset[str]().union(*(DIALECTS[dialect] for dialect in self.dialects))
        return [crd for crd in manifests.crds() if crd["spec"]["group"] in groups]

    def _namespaced(self, objects: list[Manifest]) -> Iterator[Manifest]:
        for item in objects:
            if item["kind"] == "Namespace":
                item["metadata"]["name"] = self.namespace
            elif "namespace" in item["metadata"]:
                item["metadata"]["namespace"] = self.namespace
            for subject in item.get("subjects", ()):
                subject["namespace"] = self.namespace
            yield item

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
        if self.policy is not None:
            container["args"].append("--policy=/etc/navarch/policy.yaml")
            container["volumeMounts"] = [{"name": "policy", "mountPath": "/etc/navarch", "readOnly": True}]
            template["spec"]["volumes"] = [{"name": "policy", "configMap": {"name": "navarch-policy"}}]
        return objects

    def _policy_object(self) -> list[Manifest]:
        if self.policy is None:
            return []
        metadata = {
            "name": "navarch-policy",
            "namespace": self.namespace,
            "labels": {"app.kubernetes.io/name": "navarch"},
            # Replicas reload the file by themselves; the digest only shows which text is installed.
            "annotations": {"navarch/policy-digest": hashlib.sha256(self.policy.encode()).hexdigest()[:16]},
        }
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy.yaml": self.policy}}]
