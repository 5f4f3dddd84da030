"""Which annotations a recording keeps.

Users put tokens, whole manifests and notes into annotations, and a recording leaves the cluster. So it keeps the annotations that
scheduling rules read and leaves the others out. A plugin of your own that reads another annotation names it (`--record-annotation`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DOMAINS = (
    "volcano.sh",
    "kai.scheduler",
    "run.ai",
    "navarch.io",
    "scheduling.k8s.io",
    "scheduling.x-k8s.io",
    "scheduling.incubator.k8s.io",
    "scheduling.sigs.dev",
    "sigs.k8s.io",
    "controller.kubernetes.io",
    "batch.kubernetes.io",
    "volume.kubernetes.io",
    "pv.kubernetes.io",
    "node.kubernetes.io",
    "kubeflow.org",
    "nvidia.com",
    "ray.io",
)
"""An annotation is kept if its domain is one of these or lies below one of these."""
PLAIN = ("gpu-", "runai-", "pod-group-name", "received-resource-type", "sla-waiting-time", "hierarchy")
"""Beginnings of annotations without a domain that rules read."""


def kept_annotations(annotations: Mapping[str, str], more: Sequence[str] = ()) -> Mapping[str, str]:
    """
    >>> kept_annotations({"volcano.sh/cooldown-time": "10m", "example.com/token": "s3cret", "gpu-fraction": "0.5"})
    {'volcano.sh/cooldown-time': '10m', 'gpu-fraction': '0.5'}
    """
    kept = {name: text for name, text in annotations.items() if _is_read(name, more)}
    return annotations if len(kept) == len(annotations) else kept


def _is_read(name: str, more: Sequence[str]) -> bool:
    domain, slash, _ = name.partition("/")
    if name in more:
        return True
    if not slash:
        return name.startswith(PLAIN)
    return any(domain == known or domain.endswith(f".{known}") for known in DOMAINS)
