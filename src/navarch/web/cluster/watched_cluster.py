"""The cluster as watches of our own show it: informers fill the model through `ingest`, as they do for the scheduler.

Nothing is decided or assumed here. The dashboard shows what the API server shows.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping

from navarch.apis.core.partial_pod import PartialPod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings, Spec
from navarch.apis.errors import ObjectError
from navarch.apis.operators.owners import Owners
from navarch.ingest.ingest import Ingest
from navarch.kube.client import Client
from navarch.kube.resources import Resource
from navarch.kube.watch.decoding import Metadata
from navarch.kube.watch.informer import Patience
from navarch.live.cache.informers import Informers
from navarch.model.cluster import Cluster
from navarch.web.cluster.changes import ClusterChanges
from navarch.web.cluster.shared_values import SharingReader

log = logging.getLogger(__name__)


class WatchedCluster:
    """What informers fill (`handlers.ObjectCache`)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pods: Mapping[tuple[str, str], Pod] = {}
        """Pods without a node, as the API has them; of the others names and versions."""
        self.changes = ClusterChanges()
        self.invalid = 0
        """Versions of objects that could not be read."""
        self._informers: Informers | None = None
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

    # for informers

    def put_pod(self, pod: Pod, old: Pod | None = None) -> None:
        self._ingest.put_pod(pod, old)

    def put_new_pods(self, pods: Iterable[Pod]) -> list[tuple[Pod, ObjectError]]:
        return self._ingest.put_new_pods(pods)

    def put_partial(self, pod: PartialPod) -> str:
        return self._ingest.put_partial(pod)

    def remove_pod(self, uid: str) -> None:
        self._ingest.remove_pod(uid)

    def put(self, spec: Spec, version: int = 0) -> None:
        self._ingest.put(spec, version)

    def remove(self, spec: Spec) -> None:
        self._ingest.remove(spec)
