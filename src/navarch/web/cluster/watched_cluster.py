"""The cluster as watches of our own show it: informers fill the model through `ingest`, as they do for the scheduler.

Nothing is decided or assumed here. The dashboard shows what the API server shows.

A pod that starts changes several times within a second, and pages are made once a second. So pods that changed are collected, and
`flush` reads the last version of each.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable
from typing import Final

from navarch.apis.core.partial_pod import PartialPod, read_partial_pod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings, Spec
from navarch.apis.errors import ObjectError
from navarch.apis.operators.owners import Owners
from navarch.ingest.ingest import Ingest
from navarch.kube.client import Client
from navarch.kube.resources import PODS, Resource
from navarch.kube.watch.decoding import Metadata
from navarch.kube.watch.patience import Patience
from navarch.live.cache.informers import Informers
from navarch.model.cluster import Cluster
from navarch.object_types import ObjectKey
from navarch.web.cluster.changes import ClusterChanges
from navarch.web.cluster.shared_values import SharingReader

MOST_COLLECTED: Final = 5000
"""Pods that are collected at most."""
log = logging.getLogger(__name__)


class WatchedCluster:
    """What informers fill (`handlers.ObjectCache`)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pods: Final[dict[ObjectKey, Pod]] = {}
        """Pods without a node, as the API has them; of the others names and versions."""
        self.changes = ClusterChanges()
        self.invalid = 0
        """Versions of objects that could not be read."""
        self.collecting = False
        """Whether pods are collected until `flush`. Not while all objects are read for the first time: they would fill memory."""
        self._informers: Informers | None = None
        self._collected: dict[str, Pod | None] = {}
        """uid -> the last version of a pod; None: it is gone."""
        self._ingest = Ingest(
            settings,
            reader=SharingReader(settings),
            owners=Owners(will_arrive=self._watches_owners),
            changes=self.changes,
        )

    @property
    def cluster(self) -> Cluster:
        return self._ingest.cluster

    def watch(self, client: Client, rng: random.Random, patience: Patience | None = None) -> Informers:
        """The informers that fill it; their `run` is the caller's to call."""
        self._informers = Informers(client, self, self._on_invalid, patience, rng)
        return self._informers

    def _watches_owners(self, kind: str) -> bool:
        return self._informers is not None and self._informers.watches_owners(kind)

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        return self.pods.get((namespace, name))

    def _on_invalid(self, kind: str, resource: Resource, metadata: Metadata, error: Exception) -> None:
        self.invalid += 1
        log.info("%s %s/%s cannot be read: %s", kind, metadata.namespace or "", metadata.name, error)

    @property
    def changed(self) -> bool:
        return bool(self._collected or self.changes)

    def flush(self) -> None:
        """Bring the model up to date."""
        collected, self._collected = self._collected, {}
        new: list[Pod] = []
        """Pods that the model does not have enter it together, which costs less than one by one."""
        for uid, pod in collected.items():
            if pod is None:
                self._ingest.remove_pod(uid)
            elif self.cluster.task(uid) is None:
                new.append(pod)
            else:
                try:
                    self._ingest.put_pod(pod)
                except ObjectError as error:
                    self._put_unread(pod, error)
        for unread, problem in self._ingest.put_new_pods(new) if new else ():
            self._put_unread(unread, problem)

    def _put_unread(self, pod: Pod, error: ObjectError) -> None:
        partial = read_partial_pod(pod, error)
        if partial is not None:
            self._ingest.put_partial(partial)
        self._on_invalid("Pod", PODS, pod.metadata, error)

    # for informers

    def put_pod(self, pod: Pod, old: Pod | None = None) -> None:
        if not self.collecting:
            self._ingest.put_pod(pod, old)
            return
        self._collected[pod.metadata.uid or pod.key] = pod
        if len(self._collected) >= MOST_COLLECTED:
            self.flush()

    def put_new_pods(self, pods: Iterable[Pod]) -> list[tuple[Pod, ObjectError]]:
        self.flush()
        return self._ingest.put_new_pods(pods)

    def put_partial(self, pod: PartialPod) -> str:
        self._collected.pop(pod.metadata.uid or pod.key, None)
        return self._ingest.put_partial(pod)

    def contradiction(self, pod: Pod) -> str:
        return ""

    def remove_pod(self, uid: str) -> None:
        if self.collecting:
            self._collected[uid] = None
        else:
            self._ingest.remove_pod(uid)

    def put(self, spec: Spec, version: int = 0) -> None:
        self._ingest.put(spec, version)

    def remove(self, spec: Spec) -> None:
        self._ingest.remove(spec)
