"""All workload controllers on one store, fed by its events."""

from __future__ import annotations

from importlib import resources

import yaml

from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.workloads.controller import Controller
from navarch.embedded.controllers.workloads.daemon_set import DaemonSets
from navarch.embedded.controllers.workloads.deployment import Deployments
from navarch.embedded.controllers.workloads.job import Jobs
from navarch.embedded.controllers.workloads.ownership import OwnerIndex
from navarch.embedded.controllers.workloads.replica_set import ReplicaSets, ReplicationControllers
from navarch.embedded.controllers.workloads.revisions import REVISIONS
from navarch.embedded.controllers.workloads.stateful_set import StatefulSets
from navarch.embedded.controllers.workloads.volcano_commands import RESOURCE as COMMANDS
from navarch.embedded.controllers.workloads.volcano_commands import VolcanoCommands
from navarch.embedded.controllers.workloads.volcano_job import VolcanoJobs
from navarch.embedded.create_objects import create_all
from navarch.embedded.storage.feeds import Watch
from navarch.embedded.storage.record import Event
from navarch.embedded.timers import Timers

OWNED = ("pods", "replicasets.apps", REVISIONS)


class Workloads:
    """Start it on the loop; every existing object is looked at once."""

    def __init__(self, operations: Operations, timers: Timers) -> None:
        self._operations = operations
        self._store = operations.store
        self.owner_indexes = {resource: OwnerIndex(operations.store, resource) for resource in OWNED}
        kinds: tuple[type[Controller], ...] = (
            Jobs, ReplicaSets, ReplicationControllers, Deployments, StatefulSets, DaemonSets, VolcanoJobs,
        )  # fmt: skip
        self.controllers = [kind(operations, timers, self.owner_indexes) for kind in kinds]
        self._commands = VolcanoCommands(operations, timers)
        self._watches: list[Watch] = []

    def start(self) -> None:
        text = (resources.files("navarch.embedded.controllers.workloads") / "volcano_job_crd.yaml").read_bytes()
        create_all(self._operations, yaml.load_all(text, Loader=yaml.CSafeLoader))
        # Children first: an owner must not be looked at before it is known what it has.
        for resource in OWNED:
            self._watches.append(self._store.subscribe(resource, self._on_child))
        for controller in self.controllers:
            self._watches.append(self._store.subscribe(controller.resource, controller.on_owner))
            if isinstance(controller, DaemonSets):
                self._watches.append(self._store.subscribe("nodes", controller.on_node))
        self._watches.append(self._store.subscribe(COMMANDS, self._commands.on_command))

    def stop(self) -> None:
        for watch in self._watches:
            watch.close()
        for controller in self.controllers:
            controller.queue.stop()
            controller.strays.stop()

    @property
    def is_idle(self) -> bool:
        return all(controller.queue.is_idle and controller.strays.is_idle for controller in self.controllers)

    def _on_child(self, event: Event) -> None:
        resource = event.record.resource
        self.owner_indexes[resource].note(event)
        for controller in self.controllers:
            if controller.owns == resource:
                controller.on_child(event)
