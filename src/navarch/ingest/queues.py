"""The queues of the model: those that have an object, and those that exist without one.

Queues without an object (see `Settings`): `root` and the default queue, and with `namespace_as_queue` one for each namespace that
exists or holds a job. An object of the same name replaces an implied queue; when the object is removed, the implied queue
returns. The cost of a change does not depend on the number of queues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from navarch.apis.dialect import Settings
from navarch.ingest.api_precedence import ApiPrecedence
from navarch.model.cluster import Cluster
from navarch.model.spec import QueueSpec

ROOT = "root"


class Queues:
    """Keeps `cluster.queues`. Each change returns whether the model's queues changed."""

    def __init__(self, settings: Settings, cluster: Cluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._objects: ApiPrecedence[QueueSpec] = ApiPrecedence()
        self._implied: set[str] = set()
        self._dialects: Counter[str] = Counter()
        """Dialect -> how many queues of the model it gives."""
        self._jobs: Counter[str] = Counter()
        """Namespace -> its jobs; counted only with `namespace_as_queue`."""
        self._imply((ROOT, settings.default_queue))

    def put(self, spec: QueueSpec) -> bool:
        return self._take(spec.name, self._objects.put(spec.name, spec.dialect, spec.api_version, spec))

    def remove(self, spec: QueueSpec) -> bool:
        if spec.name not in self._objects:
            return False
        return self._take(spec.name, self._objects.remove(spec.name, spec.dialect, spec.api_version))

    def namespace_changed(self, name: str) -> bool:
        """A namespace came or went."""
        return self._settings.namespace_as_queue and self._imply((name,))

    def job_added(self, namespace: str) -> bool:
        if not self._settings.namespace_as_queue:
            return False
        self._jobs[namespace] += 1
        return self._jobs[namespace] == 1 and self._imply((namespace,))

    def job_removed(self, namespace: str) -> bool:
        if not self._settings.namespace_as_queue:
            return False
        self._jobs[namespace] -= 1
        if self._jobs[namespace] > 0:
            return False
        del self._jobs[namespace]
        return self._imply((namespace,))

    def _take(self, name: str, spec: QueueSpec | None) -> bool:
        """`spec` is the object that has the name now."""
        queues, implied = self._cluster.queues, name in self._implied
        before = None if implied else queues.get(name)
        if before is not None and before == spec:
            return False
        self._implied.discard(name)
        if before is not None:
            self._dialects[before.dialect] -= 1
        if spec is not None:
            self._dialects[spec.dialect] += 1
            self._cluster.put_queue(spec)
        else:
            self._cluster.remove_queue(name)
        self._imply((name, ROOT, self._settings.default_queue))
        return True

    def _imply(self, names: Iterable[str]) -> bool:
        """Add or remove the implied queues of these names; whether one came or went."""
        changed = False
        for name in dict.fromkeys(names):
            wanted = name not in self._objects and self._exists_without_object(name)
            if wanted == (name in self._implied):
                continue
            changed = True
            if wanted:
                self._implied.add(name)
                self._cluster.put_queue(QueueSpec(name=name, uid=name, reclaimable=name != ROOT, state="Open"))
            else:
                self._implied.remove(name)
                self._cluster.remove_queue(name)
        return changed

    def _exists_without_object(self, name: str) -> bool:
        """Without any Queue object both `root` and the default queue exist: Volcano creates them when it starts. With Volcano Queues
        `root` always exists, because manifests leave it out."""
        settings = self._settings
        if name in (ROOT, settings.default_queue) and (settings.imply_queues or not len(self._objects)):
            return True
        if name == ROOT and self._dialects["volcano"]:
            return True
        return settings.namespace_as_queue and (name in self._cluster.namespaces or self._jobs[name] > 0)
