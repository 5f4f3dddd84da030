"""The scheduler names that Navarch serves: the values of `spec.schedulerName` of the pods that it decides for.

`navarch run` serves the name `navarch`, or the names in its options. The embedded cluster has no other scheduler, so there it serves
the names of all schedulers that it is compatible with. A cluster does not say which names its scheduler serves; an embedded cluster is
recognised by the kubelet version of its hollow nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

OURS: Final = ("navarch",)
EMBEDDED: Final = ("navarch", "default-scheduler", "volcano", "kai-scheduler", "kube-batch")
DEFAULT: Final = "default-scheduler"
"""What a pod without `spec.schedulerName` names."""
_HOLLOW = "-navarch"


def served(given: Iterable[str], nodes: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The names that the user gives; otherwise the names that are served in the cluster of these Nodes.

    >>> sorted(served((), [])), sorted(served(["a"], []))
    (['navarch'], ['a'])
    >>> "volcano" in served((), [{"status": {"nodeInfo": {"kubeletVersion": "v1.36.0-navarch"}}}])
    True
    """
    names = frozenset(given)
    if names:
        return names
    return frozenset(EMBEDDED if any(_is_hollow(node) for node in nodes) else OURS)


def names_default_scheduler(document: Mapping[str, object]) -> bool:
    """Whether a KubeSchedulerConfiguration says `schedulerName: default-scheduler` itself. It means that name where it says none, too;
    but then it may be meant for a scheduler beside the one of the cluster.

    >>> names_default_scheduler({"profiles": [{"schedulerName": "default-scheduler"}]}), names_default_scheduler({"profiles": [{}]})
    (True, False)
    """
    profiles = document.get("profiles")
    return isinstance(profiles, list) and any(isinstance(each, Mapping) and each.get("schedulerName") == DEFAULT for each in profiles)


def waiting_for_others(manifests: Iterable[Mapping[str, Any]], names: Collection[str]) -> list[str]:
    """A line for each scheduler name that is not among these and that pods without a node name.

    >>> waiting_for_others([{"kind": "Pod", "spec": {"schedulerName": "volcano"}}], ["navarch"])
    ['1 pod without a node names the scheduler volcano, and is left out: --scheduler-name volcano decides for it']
    """
    found: Counter[str] = Counter()
    for manifest in manifests:
        spec, status = manifest.get("spec"), manifest.get("status")
        if manifest.get("kind") != "Pod" or not isinstance(spec, Mapping) or spec.get("nodeName"):
            continue
        if not isinstance(status, Mapping) or status.get("phase") not in ("Succeeded", "Failed"):
            found[str(spec.get("schedulerName") or DEFAULT)] += 1
    return [
        f"{count} pod{'s' if count > 1 else ''} without a node name{'s' if count == 1 else ''} the scheduler {name}, and "
        f"{'are' if count > 1 else 'is'} left out: --scheduler-name {name} decides for {'them' if count > 1 else 'it'}"
        for name, count in sorted(found.items())
        if name not in names
    ]


def _is_hollow(node: Mapping[str, Any]) -> bool:
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("kubeletVersion", "")).endswith(_HOLLOW)
