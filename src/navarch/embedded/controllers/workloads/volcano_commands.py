"""Volcano's Command (bus.volcano.sh): a request to act on a Volcano Job, removed once it is carried out.

A Command that names no Job, another Job of the same name, or an unknown action is removed without effect, as in Volcano.
"""

from __future__ import annotations

from typing import Final

from navarch.embedded.api.deletion import DeleteOptions
from navarch.embedded.api.operations import Operations
from navarch.embedded.controllers.workloads.volcano_job import ACTIONS, OVER, VolcanoJobs
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.timers import Timers
from navarch.object_types import Manifest

RESOURCE: Final = "commands.bus.volcano.sh"
RESUMABLE: Final = ("Aborting", "Aborted")


class VolcanoCommands:
    def __init__(self, operations: Operations, timers: Timers) -> None:
        self._operations = operations
        self._timers = timers

    def on_command(self, event: Event) -> None:
        if event.type == "ADDED":
            # after the write that is being announced
            self._timers.after_real(f"command {event.record.uid}", 0.0, lambda: self._carry_out(event.record))

    def _carry_out(self, asked: Record) -> None:
        store, target = self._operations.store, asked.obj.get("target") or {}
        job = store.find(VolcanoJobs.resource, asked.namespace, str(target.get("name")))
        if job is not None and target.get("uid") in (None, job.uid):
            phase = str(((job.obj.get("status") or {}).get("state") or {}).get("phase") or "Pending")
            following = next_phase(str(asked.obj.get("action")), phase)
            if following:
                store.modify(VolcanoJobs.resource, job.namespace, job.name, lambda obj: _with_phase(obj, following))
        if store.find(RESOURCE, asked.namespace, asked.name) is not None:
            self._operations.delete(self._operations.kind(RESOURCE), asked.namespace, asked.name, DeleteOptions())


def next_phase(action: str, phase: str) -> str:
    """The phase that an action leads to; empty: it has no effect in this phase.

    >>> next_phase("AbortJob", "Running"), next_phase("ResumeJob", "Aborted"), next_phase("AbortJob", "Completed")
    ('Aborting', 'Restarting', '')
    """
    if action == "ResumeJob":
        return "Restarting" if phase in RESUMABLE else ""
    return ACTIONS.get(action, "") if phase not in OVER else ""


def _with_phase(obj: Manifest, phase: str) -> Manifest:
    status = dict(obj.get("status") or {})
    status["state"] = {**(status.get("state") or {}), "phase": phase}
    obj["status"] = status
    return obj
