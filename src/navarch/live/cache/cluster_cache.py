"""The cluster as the API server shows it, with the decisions that it does not show yet, kept up to date change by change.

`ingest` turns objects into the columns of the model. This class adds what is live: assumed binds, evictions, statuses and objects lie
over what the informers show (`decision_overlay`), and each change becomes events for waiting jobs (`change_events`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from navarch.apis.core.nodes import Node, read_node
from navarch.apis.core.partial_pod import PartialPod
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings, Spec
from navarch.apis.errors import ObjectError
from navarch.apis.kai.awaited_groups import AwaitedGroups
from navarch.apis.operators.owners import Owners
from navarch.apis.operators.workload import PodMaker
from navarch.ingest.groups import ShadowGroups
from navarch.ingest.ingest import Ingest
from navarch.ingest.pod_reader import PodReader
from navarch.ingest.unreadable_pods import UnreadablePods
from navarch.live.cache.assumed_objects import AssumedObjects
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.live.cache.change_events import ChangeEvents, PodWatcher, RaiseEvent
from navarch.live.cache.decision_overlay import DecisionOverlay
from navarch.model.spec import JobSpec, TaskSpec
from navarch.object_types import ObjectKey

__all__ = ("ClusterCache", "RaiseEvent")


class ClusterCache(AssumedObjects):
    """For `raise_event` and the three callbacks see `ChangeEvents`. `owners_watched(kind)`: whether every owner of this kind is put
    sooner or later (see `Owners`)."""

    def __init__(
        self,
        settings: Settings,
        assumed: AssumedPods,
        raise_event: RaiseEvent,
        *,
        on_job_removed: Callable[[str], object] = lambda job: None,
        on_demand_changed: Callable[[str], object] = lambda job: None,
        on_volumes_changed: Callable[[], object] = lambda: None,
        owners_watched: Callable[[str], bool] = lambda kind: False,
        pod_watcher: PodWatcher | None = None,
        awaited_groups: AwaitedGroups | None = None,
    ) -> None:
        self._pod_watcher = pod_watcher
        self.assumed = assumed
        self.pods: Final[dict[ObjectKey, Pod]] = {}
        """The pod informer's store. Of pods that have a node it holds only names and versions (see `handlers`)."""
        self._raise_event = raise_event
        self._on_job_removed = on_job_removed
        self._on_demand_changed = on_demand_changed
        self._on_volumes_changed = on_volumes_changed
        self._owners_watched = owners_watched
        self.awaited_groups = awaited_groups
        super().__init__()
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Start again under these settings with nothing but what is assumed; every object has to be put again."""
        self.settings = settings
        self.clear()
        self._ingest = Ingest(
            settings,
            self.cluster,
            owners=Owners(will_arrive=self._owners_watched),
            overlay=DecisionOverlay(self.assumed, self, self._uid_of),
            changes=ChangeEvents(
                self.cluster,
                self._raise_event,
                on_job_removed=self._on_job_removed,
                on_demand_changed=self._on_demand_changed,
                on_volumes_changed=self._on_volumes_changed,
                pods=self._pod_watcher,
            ),
            awaited=self.awaited_groups,
        )

    @property
    def reader(self) -> PodReader:
        return self._ingest.reader

    @property
    def shadows(self) -> ShadowGroups:
        return self._ingest.shadows

    @property
    def unreadable(self) -> UnreadablePods:
        return self._ingest.unreadable

    def unattended_makers(self, before: float) -> list[PodMaker]:
        """Our Volcano Jobs from before that moment that no controller has taken up."""
        return self._ingest.groups.unattended_makers(before)

    # pods

    def put_pod(self, pod: Pod, old: Pod | None = None) -> None:
        """Raises ObjectError for a pod that cannot be read; its last version then stays. `old` is the version that was put last."""
        self._ingest.put_pod(pod, old)

    def put_new_pods(self, pods: Iterable[Pod]) -> list[tuple[Pod, ObjectError]]:
        """Put pods of a list that were not put before. Returns those that cannot be read, with what is wrong with them."""
        return self._ingest.put_new_pods(pods)

    def put_partial(self, pod: PartialPod) -> str:
        """A pod on a node that can be read only in part; returns what follows from it, for messages."""
        return self._ingest.put_partial(pod)

    def remove_pod(self, uid: str) -> None:
        self._ingest.remove_pod(uid)

    def agrees_with_pod(self, pod: Pod) -> bool:
        """Whether what is kept of this version of the pod is what it says: its node, and what it asks for."""
        task = self.api_task(pod.metadata.uid or "")
        if task is None:
            return True  # finished, or it cannot be read
        try:
            read = self.reader.read(pod)
        except ObjectError:
            return True
        return read is None or (read.node, read.shape.requests) == (task.node, task.shape.requests)

    def agrees_with_node(self, node: Node) -> bool:
        row = self.cluster.nodes.rows.of.get(node.metadata.name)
        known = self.cluster.nodes.specs[row] if row is not None else None
        try:
            return known is None or known.allocatable == read_node(node, self.settings).allocatable
        except ObjectError:
            return True

    def contradiction(self, pod: Pod) -> str:
        """A pod that has a node keeps it, and a binding of ours that the API server accepted names the node."""
        task, bind = self.api_task(pod.metadata.uid or ""), self.assumed.binds.get(pod.metadata.uid or "")
        if task is not None and task.node:
            return "" if pod.spec.node_name == task.node else f"spec.nodeName was {task.node} and is {pod.spec.node_name!r}"
        if bind is not None and bind.written and not bind.delegated and pod.spec.node_name not in (None, "", bind.node):
            return f"it was bound to {bind.node}, and spec.nodeName is {pod.spec.node_name!r}"
        return ""

    def end_waits(self) -> None:
        """Let pods that waited long enough for KAI's pod grouper go on without it."""
        self._ingest.end_waits()

    def api_task(self, uid: str) -> TaskSpec | None:
        """The pod as the API shows it, without what is assumed."""
        return self._ingest.api_task(uid)

    def refresh(self, uid: str) -> None:
        """What is assumed of this pod changed."""
        self._ingest.refresh_task(uid)

    def _uid_of(self, namespace: str, name: str) -> str:
        pod = self.pods.get((namespace, name))
        return (pod.metadata.uid or "") if pod is not None else ""

    # everything else

    def put(self, spec: Spec, version: int = 0) -> None:
        """What a reader of `apis` made of an object; `version` is the object's resourceVersion."""
        self._ingest.put(spec, version)

    def remove(self, spec: Spec) -> None:
        self._ingest.remove(spec)

    def group(self, key: str) -> JobSpec | None:
        """The group's own object as read, without what other objects or decisions add to it."""
        return self._ingest.groups.get(key)

    def group_version(self, key: str) -> int:
        """The resourceVersion of what `group` gives; 0: none is known."""
        return self._ingest.groups.version(key)

    def groups(self) -> list[str]:
        """Keys of all groups that have an object."""
        return self._ingest.groups.keys()

    def is_foreign_group(self, key: str) -> bool:
        """Whether another scheduler decides for this group (see `PodGroups`)."""
        return self._ingest.groups.is_foreign(key)

    def put_status(self, job: JobSpec) -> None:
        """A job whose phase or conditions a cycle decided."""
        self.cluster.put_job(job)

    def refresh_group(self, key: str) -> None:
        """Take the group as the informer shows it, with what is assumed now."""
        self._ingest.groups.refresh(key)
