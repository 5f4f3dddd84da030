"""ResourceClaims of pods: made from the templates that pods name, freed and deleted when the pods have ended.

The pod owns the claim, and the pod's status names the claim: a scheduler waits for that. A claim that several pods share is only
freed: pods that ended are removed from its users, and devices without users are released.
"""

from __future__ import annotations

from collections.abc import Iterator

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.errors import ApiError
from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.event_recorder import Recorder
from navarch.embedded.controllers.work_queue import WorkQueue
from navarch.embedded.controllers.workloads.ownership import controller_of, owner_reference
from navarch.embedded.storage.feeds import Watch
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.timers import Timers
from navarch.object_types import Manifest

CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
POD_CLAIM_NAME, PROTECTION = "resource.kubernetes.io/pod-claim-name", "resource.kubernetes.io/delete-protection"
ENDED = ("Succeeded", "Failed")
Work = tuple[str, str, str]
"""(resource, namespace, name)"""


class ResourceClaims:
    """Start it on the loop; every pod and claim that exists is looked at once."""

    def __init__(self, operations: Operations, timers: Timers) -> None:
        self._operations = operations
        self._store = operations.store
        self._kind = operations.kind(CLAIMS)
        self._recorder = Recorder(operations, "resource_claim")
        self.queue: WorkQueue[Work] = WorkQueue("resource claims", self._look, timers)
        self._made: dict[tuple[str, str], str] = {}
        """(uid of a pod, its name for the claim) -> the claim that was made for it."""
        self._waiting: dict[tuple[str, str], dict[str, None]] = {}
        """Template that does not exist -> pods that ask for it."""
        self._watches: list[Watch] = []

    def start(self) -> None:
        # Claims first: what was made already is not made again.
        for resource, react in ((CLAIMS, self._on_claim), (TEMPLATES, self._on_template), ("pods", self._on_pod)):
            self._watches.append(self._store.subscribe(resource, react))

    def stop(self) -> None:
        for watch in self._watches:
            watch.close()
        self.queue.stop()

    # ------------------------------------------------------------------ events

    def _on_claim(self, event: Event) -> None:
        record = event.record
        owner = _pod_of(record)
        if owner is not None:
            name = (record.obj["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME, "")
            if event.type == "DELETED":
                if self._made.get((owner["uid"], name)) == record.name:
                    del self._made[owner["uid"], name]
                self.queue.add(("pods", record.namespace, owner["name"]))
            else:
                self._made[owner["uid"], name] = record.name
        if event.type != "DELETED":
            self.queue.add((CLAIMS, record.namespace, record.name))

    def _on_template(self, event: Event) -> None:
        record = event.record
        if event.type != "DELETED":
            for pod in self._waiting.pop((record.namespace, record.name), ()):
                self.queue.add(("pods", record.namespace, pod))

    def _on_pod(self, event: Event) -> None:
        record = event.record
        if not record.obj["spec"].get("resourceClaims") and not (record.obj.get("status") or {}).get("extendedResourceClaimStatus"):
            return
        if event.type == "DELETED" or _has_ended(record):
            for claim in _claims_of(record.obj):
                self.queue.add((CLAIMS, record.namespace, claim))
        else:
            self.queue.add(("pods", record.namespace, record.name))

    def _look(self, work: Work) -> None:
        resource, namespace, name = work
        record = self._store.find(resource, namespace, name)
        if record is not None:
            self._give(record) if resource == "pods" else self._clean(record)

    # ------------------------------------------------------------------ pods that need claims

    def _give(self, pod: Record) -> None:
        if _has_ended(pod) or pod.obj["metadata"].get("deletionTimestamp"):
            return
        given = {each["name"]: each for each in (pod.obj.get("status") or {}).get("resourceClaimStatuses") or ()}
        before = dict(given)
        for entry in pod.obj["spec"].get("resourceClaims") or ():
            template = entry.get("resourceClaimTemplateName")
            if template and not self._has(pod, given.get(entry["name"])):
                name = self._made.get((pod.uid, entry["name"])) or self._make(pod, entry["name"], template)
                if name:
                    given[entry["name"]] = {"name": entry["name"], "resourceClaimName": name}
        if given != before:

            def change(obj: Manifest) -> Manifest:
                obj.setdefault("status", {})["resourceClaimStatuses"] = list(given.values())
                return obj

            self._store.modify("pods", pod.namespace, pod.name, change)

    def _has(self, pod: Record, status: Manifest | None) -> bool:
        """Whether the claim that a pod's status names is there and the pod's own."""
        found = self._store.find(CLAIMS, pod.namespace, status["resourceClaimName"]) if status else None
        owner = _pod_of(found) if found is not None else None
        return owner is not None and owner["uid"] == pod.uid

    def _make(self, pod: Record, name: str, template_name: str) -> str:
        """The new claim's name; empty when it has to wait for its template."""
        template = self._store.find(TEMPLATES, pod.namespace, template_name)
        if template is None:
            self._waiting.setdefault((pod.namespace, template_name), {})[pod.name] = None
            message = f'PodResourceClaim {name}: resource claim template "{template_name}" not found'
            self._recorder.warning(pod, "FailedResourceClaimCreation", message)
            return ""
        wanted = template.obj["spec"]
        metadata = wanted.get("metadata") or {}
        body: Manifest = {
            "metadata": {
                "generateName": f"{pod.name}-{name}-",
                "annotations": {**(metadata.get("annotations") or {}), POD_CLAIM_NAME: name},
                "ownerReferences": [owner_reference(pod, "Pod", "v1")],
            },
            "spec": wanted.get("spec") or {},
        }
        if metadata.get("labels"):
            body["metadata"]["labels"] = metadata["labels"]
        made = self._operations.create(self._kind, pod.namespace, body)
        self._made[pod.uid, name] = made.name
        return made.name

    # ------------------------------------------------------------------ claims whose pods have ended

    def _clean(self, claim: Record) -> None:
        status = claim.obj.get("status") or {}
        users = status.get("reservedFor") or []
        left = [user for user in users if user.get("resource") != "pods" or self._runs(claim.namespace, user)]
        metadata = claim.obj["metadata"]
        if not left and (users or metadata.get("deletionTimestamp")):
            self._free(claim)
        elif len(left) < len(users):
            self._store.modify(CLAIMS, claim.namespace, claim.name, lambda obj: _reserved(obj, left))
        owner = _pod_of(claim)
        pod = self._store.find("pods", claim.namespace, owner["name"]) if owner is not None else None
        ended = pod is not None and owner is not None and pod.uid == owner["uid"] and _has_ended(pod)
        if ended and not metadata.get("deletionTimestamp"):
            try:
                self._operations.delete(self._kind, claim.namespace, claim.name, DeleteOptions(uid=claim.uid))
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    def _runs(self, namespace: str, user: Manifest) -> bool:
        pod = self._store.find("pods", namespace, user.get("name") or "")
        return pod is not None and pod.uid == user.get("uid") and not _has_ended(pod)

    def _free(self, claim: Record) -> None:
        """The claim has no users: release its devices and remove its finalizer."""

        def change(obj: Manifest) -> Manifest:
            _reserved(obj, [])["status"].pop("allocation", None)
            kept = [each for each in obj["metadata"].get("finalizers") or () if each != PROTECTION]
            obj["metadata"].pop("finalizers", None)
            if kept:
                obj["metadata"]["finalizers"] = kept
            return obj

        left = self._store.modify(CLAIMS, claim.namespace, claim.name, change).obj["metadata"]
        if left.get("deletionTimestamp") and not left.get("finalizers"):
            self._store.delete(CLAIMS, claim.namespace, claim.name)


def _reserved(claim: Manifest, users: list[Manifest]) -> Manifest:
    status = claim.setdefault("status", {})
    status.pop("reservedFor", None)
    if users:
        status["reservedFor"] = users
    return claim


def _pod_of(claim: Record) -> Manifest | None:
    owner = controller_of(claim.obj)
    return owner if owner is not None and owner["kind"] == "Pod" else None


def _has_ended(pod: Record) -> bool:
    return (pod.obj.get("status") or {}).get("phase") in ENDED


def _claims_of(pod: Manifest) -> Iterator[str]:
    """The claims that a pod names, and those that were made for it."""
    for entry in pod["spec"].get("resourceClaims") or ():
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]
    status = pod.get("status") or {}
    for each in (*(status.get("resourceClaimStatuses") or ()), status.get("extendedResourceClaimStatus") or {}):
        if each.get("resourceClaimName"):
            yield each["resourceClaimName"]
