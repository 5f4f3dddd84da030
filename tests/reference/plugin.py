"""The calls every plugin answers, with the answers of a plugin that does not care."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.reference.cluster import Cluster, Object
from tests.reference.status import SUCCESS, Status


class Plugin:
    """One pod's passage through one plugin; state between the calls lives in the instance."""

    def __init__(self, cluster: Cluster, pod: Object, args: Mapping[str, Any] | None = None) -> None:
        self.cluster = cluster
        self.pod = pod
        self.args = args or {}
        self.start()

    def start(self) -> None:
        """Read the pod and the arguments."""

    def pre_filter(self) -> Status:
        return SUCCESS

    def filter(self, node: Object) -> Status:
        return SUCCESS

    def pod_added(self, pod: Object, node: Object) -> None:
        """After PreFilter: a pod came to the node in a dry run. Called before the cluster changes."""

    def pod_removed(self, pod: Object, node: Object) -> None:
        """After PreFilter: a pod left the node in a dry run."""

    def pre_score(self, candidates: Sequence[Object]) -> Status:
        return SUCCESS

    def score(self, node: Object) -> int:
        return 0

    def normalise(self, scores: dict[str, int]) -> dict[str, int]:
        return scores
