"""Runs the sample of `navarch up` step by step, and detects when the cluster has settled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from navarch.cli.up.cluster import UpCluster
from navarch.cli.up.event_log import EventLog, job_of
from navarch.cli.up.sample_fit import evicts
from navarch.embedded.create_objects import create_all
from navarch.embedded.kubelets.pod_behaviour import behaviour_of
from navarch.embedded.sample import STEPS, Step, documents
from navarch.embedded.storage.record import Record
from navarch.embedded.storage.store import Store
from navarch.object_types import Manifest

PAUSE = 2.0
"""Seconds of the cluster's time between steps, so that a user can follow."""
PATIENCE = 60.0
"""Seconds of the cluster's time after which the next step begins even if this one has not taken effect."""
REST = 1.5
"""The cluster has settled when nothing changes for this many seconds, which is more than the scheduler's period."""
SETTLING = 120.0
"""Seconds of real time without a change: a slow machine needs them for one cycle, however fast the cluster's time passes."""
LOOK = 0.1


class Sample:
    def __init__(self, cluster: UpCluster, events: EventLog) -> None:
        self._cluster = cluster
        self._events = events
        self._store: Store = cluster.server.store
        self.played = False

    async def play(self) -> None:
        """Run all steps. The cluster's time is not accelerated before the last step: pods that a step preempts must still run when it
        begins, also on a slow machine."""
        size, timers = self._cluster.size(), self._cluster.hollow.timers
        figures, speed, pace = size.figures(), timers.speed, min(timers.speed, 1.0)
        patient = evicts(self._cluster.policy)
        timers.pass_at(pace)
        for step in STEPS:
            self._events.add(f"--- {step.title}")
            create_all(self._cluster.server.operations, documents(step, size, kai=self._cluster.policy.dialect == "kai"))
            if patient or step is STEPS[0]:
                await self._wait(partial(self._took_effect, step, figures), PATIENCE / pace)
            await asyncio.sleep(PAUSE / speed)
        timers.pass_at(speed)
        self.played = True

    def _took_effect(self, step: Step, figures: dict[str, int]) -> bool:
        running: dict[str, int] = {}
        for pod in self._store.list("pods"):
            if (pod.obj.get("status") or {}).get("phase") in ("Running", "Succeeded"):
                job = job_of(pod)
                running[job] = running.get(job, 0) + 1
        return all(running.get(job, 0) >= figures[figure] for job, figure in step.wants)

    async def _wait(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether the condition became true within this many seconds of real time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not holds():
            if loop.time() > until:
                return False
            await asyncio.sleep(LOOK)
        return True

    async def settled(self, seconds: float) -> bool:
        """Wait until every pod rests; False if nothing changes for this many seconds of the cluster's time before that. A slow machine
        takes as long as it needs while something changes."""
        loop = asyncio.get_running_loop()
        patience = max(SETTLING, seconds / self._cluster.options.speed)
        revision, changed = 0, loop.time()
        while True:
            newest = max((record.revision for record in self._store.list("pods")), default=0)
            if newest != revision or not self.played:
                revision, changed = newest, loop.time()
            quiet = loop.time() - changed
            if quiet >= REST and at_rest(self._cluster):
                return True
            if quiet > patience:
                return False
            await asyncio.sleep(LOOK)


def at_rest(cluster: UpCluster) -> bool:
    """Whether every pod has ended, runs for ever, or is unschedulable, and no controller has work left."""
    hollow = cluster.hollow
    if not hollow.kubelets.is_idle or not hollow.workloads.is_idle:
        return False
    options = hollow.kubelets.options
    return all(_rests(pod, lambda obj: behaviour_of(obj, options).run_for is None) for pod in cluster.server.store.list("pods"))


def _rests(pod: Record, runs_for_ever: Callable[[Manifest], bool]) -> bool:
    obj = pod.obj
    if obj["metadata"].get("deletionTimestamp"):
        return False
    match (obj.get("status") or {}).get("phase"):
        case "Succeeded" | "Failed":
            return True
        case "Running":
            return runs_for_ever(obj)
        case _:
            conditions = (obj.get("status") or {}).get("conditions") or ()
            return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)
