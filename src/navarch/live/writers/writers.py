"""All writers behind the one face that `commit` knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from navarch.engine.record import Eviction, JobDecision, Nomination, QueueFigures
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.binder import Binder
from navarch.live.writers.evictor import Evictor
from navarch.live.writers.group_bodies import NOT_READY
from navarch.live.writers.group_status import GroupStatuses
from navarch.live.writers.pod_status import PodStatuses
from navarch.live.writers.queue_status import QueueStatuses
from navarch.model.spec import JobSpec, TaskSpec

_GATED = "SchedulingGated"
TOO_FEW = frozenset({NOT_READY, "NotEnoughTasks", "NotEnoughPodsOfTask"})
"""Reasons of a gang that has not all the pods that it needs."""


class LiveWriters(Struct):
    cache: ClusterCache
    binder: Binder
    evictor: Evictor
    pods: PodStatuses
    groups: GroupStatuses
    queue_statuses: QueueStatuses

    def bind(self, bind: AssumedBind) -> None:
        self.pods.forget(bind.uid)
        self.binder.bind(bind)

    def cannot(self, task: TaskSpec, why: str) -> None:
        self.pods.refuse(task, "Unschedulable", why, _now())

    def evict(self, eviction: Eviction, task: TaskSpec) -> None:
        self.evictor.evict(eviction, task)

    def nominate(self, nomination: Nomination, task: TaskSpec) -> None:
        self.pods.nominate(task, nomination.node, _now())

    def group(self, decision: JobDecision, job: JobSpec) -> None:
        if not job.shadow:
            self.groups.mark(job.key, _now(), decision)

    def refuse(self, decision: JobDecision, job: JobSpec, promised: frozenset[str]) -> None:
        now, cluster = _now(), self.cache.cluster
        lacking = bool(decision.reasons) and decision.reasons[0].code in TOO_FEW
        for refusal in decision.refusals:
            task = cluster.task(refusal.uid)
            if task is not None and not task.node and refusal.reason != _GATED and job.mark_unschedulable:
                self.pods.refuse(task, refusal.reason, refusal.message, now, promised=refusal.uid in promised, lacking=lacking)

    def queues(self, figures: list[QueueFigures]) -> None:
        self.queue_statuses.take(figures)

    def flush(self, now: float) -> None:
        """Write what is due."""
        self.pods.flush(now)
        self.groups.flush(now)
        self.queue_statuses.flush(now)

    def busy(self) -> int:
        """Writes that decisions depend on and that have no outcome yet."""
        return len(self.binder.outbox) + self.evictor.on_the_wire

    def pause(self) -> None:
        """Not the leader any more: send nothing that is not sent."""
        for outbox in (self.binder.outbox, self.pods.outbox, self.groups.outbox, self.queue_statuses.outbox):
            outbox.pause()
        self.evictor.stop()

    def resume(self, now: float) -> None:
        """We lead from now on. What was decided when we last did and was not sent is void, and what we last wrote is no longer what
        the objects say: another may have led since."""
        self.binder.void_before(now)
        self.pods.forget_all()
        self.groups.forget_all()
        self.queue_statuses.forget_all()
        assumed = self.cache.assumed
        promised, told = list(assumed.nominations), list(assumed.statuses)
        assumed.nominations.clear()
        assumed.statuses.clear()
        for uid in promised:
            self.cache.refresh(uid)
        for key in told:
            self.cache.refresh_group(key)
        for outbox in (self.binder.outbox, self.pods.outbox, self.groups.outbox, self.queue_statuses.outbox):
            outbox.resume()


class DryWriters:
    """Writes nothing: decisions are logged and forgotten, so each cycle decides them again."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: set[tuple[str, str, str]] = set()

    def tell(self, verb: str, pod: str, where: str) -> bool:
        """Once for each decision, however often it is taken. True: it is news."""
        if (verb, pod, where) in self._said:
            return False
        if len(self._said) > 100_000:
            self._said.clear()
        self._said.add((verb, pod, where))
        self._say(f"dry run: would {verb} {pod} {where}")
        return True


def _now() -> float:
    return asyncio.get_running_loop().time()
