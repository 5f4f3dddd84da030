"""Every writer, how they are made, and which of them carries out which instruction of the core."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from msgspec import Struct

from navarch.engine.policy.values import Evictions
from navarch.kube.client import Client
from navarch.kube.write.pool import WritePool
from navarch.live.cache.assumed_pods import AssumedBind
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.core import LiveCore
from navarch.live.instructions import (
    AbandonEviction,
    BindPod,
    EvictPod,
    Instruction,
    MarkGang,
    NominateNode,
    WriteGroupStatus,
    WriteQueueStatuses,
    WriteRefusal,
    WriteRefusals,
)
from navarch.live.ops.metrics import Metrics, counting
from navarch.live.run_options import RunOptions
from navarch.live.writers.bind_requests import BindRequests
from navarch.live.writers.binder import Binder, OutcomeLookup
from navarch.live.writers.events import Events
from navarch.live.writers.evictor import Evictor
from navarch.live.writers.gang_marks import GangMarks
from navarch.live.writers.group_bodies import NOT_READY
from navarch.live.writers.group_status import GroupStatuses
from navarch.live.writers.outbox import Outbox
from navarch.live.writers.pod_status import PodStatuses
from navarch.live.writers.queue_status import QueueStatuses

_GATED = "SchedulingGated"
TOO_FEW = frozenset({NOT_READY, "NotEnoughTasks", "NotEnoughPodsOfTask"})
"""Reason codes of a gang that does not have all the pods that it needs."""


class LiveWriters(Struct):
    cache: ClusterCache
    binder: Binder
    evictor: Evictor
    pods: PodStatuses
    groups: GroupStatuses
    queues: QueueStatuses
    marks: GangMarks

    def carry_out(self, instruction: Instruction) -> None:
        """Start to write. Instructions that write nothing are ignored."""
        match instruction:
            case WriteGroupStatus(job=job, decision=decision):
                self.groups.mark(job, _now(), decision)
            case BindPod(bind=bind):
                self.pods.forget(bind.uid)
                self.binder.bind(bind)
            case WriteRefusals():
                self._refuse(instruction)
            case WriteRefusal(task=task, reason=reason, message=message, at_once=at_once):
                self.pods.refuse(task, reason, message, _now(), at_once=at_once)
            case EvictPod(eviction=eviction, task=task):
                self.evictor.evict(eviction, task)
            case AbandonEviction(task=task, reason=reason):
                self.evictor.abandon(task, reason)
            case NominateNode(nomination=nomination, task=task):
                self.pods.nominate(task, nomination.node, _now())
            case WriteQueueStatuses(figures=figures):
                self.queues.take(figures)
            case MarkGang(task=task, complete=complete):
                self.marks.mark(task, complete)

    def _refuse(self, refused: WriteRefusals) -> None:
        now, cluster, decision = _now(), self.cache.cluster, refused.decision
        lacking = bool(decision.reasons) and decision.reasons[0].code in TOO_FEW
        for refusal in decision.refusals:
            task = cluster.task(refusal.uid)
            if task is not None and not task.node and refusal.reason != _GATED and refused.job.mark_unschedulable:
                promised = refusal.uid in refused.nominated
                self.pods.refuse(task, refusal.reason, refusal.message, now, promised=promised, lacking=lacking)

    def flush(self, now: float, contained: Callable[[str], AbstractContextManager[object]] = nullcontext) -> None:
        """Write what is due. `contained(name)` keeps a failure of one writer from the others. The object on which it failed is
        skipped; the rest of its kind is written by the next call."""
        with contained("bind requests"):
            self.binder.flush()
        with contained("pod statuses"):
            self.pods.flush(now)
        with contained("group statuses"):
            self.groups.flush(now)
        with contained("queue statuses"):
            self.queues.flush(now)

    def busy(self) -> int:
        """Binds and evictions without an outcome."""
        return len(self.binder.outbox) + self.evictor.on_the_wire

    def _outboxes(self) -> tuple[Outbox, ...]:
        return self.binder.outbox, self.pods.outbox, self.groups.outbox, self.queues.outbox

    def pause(self) -> None:
        """We do not lead any more: send nothing that was not sent yet."""
        for outbox in self._outboxes():
            outbox.pause()
        self.evictor.stop()

    def forget_all(self) -> None:
        """We start to lead. Another scheduler may have led since, so what we wrote last may not be what the objects show."""
        self.pods.forget_all()
        self.groups.forget_all()
        self.queues.forget_all()

    def resume(self) -> None:
        """Send again."""
        for outbox in self._outboxes():
            outbox.resume()


def make_writers(
    options: RunOptions,
    core: LiveCore,
    client: Client,
    pool: WritePool,
    events: Events,
    metrics: Metrics,
    clock: Callable[[], float],
    *,
    resync: OutcomeLookup,
    prepare: Callable[[AssumedBind, Callable[[], None]], None],
    requests: BindRequests,
    evictions: Callable[[], Evictions],
) -> LiveWriters:
    """The writers of a scheduler. `evictions()` says how the policy in force removes a victim. For the others see the writers."""
    cache, live, count = core.cache, not options.dry_run, counting(metrics.status_writes)
    return LiveWriters(
        cache,
        Binder(pool, core, resync, prepare=prepare, requests=requests, label_gpus=options.gpu_sharing == "annotations"),
        Evictor(
            pool,
            cache,
            core.assumed,
            events,
            clock,
            evictions=evictions,
            rate=options.eviction_rate,
            timeout=options.eviction_timeout,
            count=counting(metrics.evictions),
        ),
        PodStatuses(pool, cache, events, clock, enabled=live, count=count),
        GroupStatuses(pool, client, cache, core.assumed, events, clock, enabled=live, count=count),
        QueueStatuses(pool, cache, enabled=live, count=count),
        GangMarks(pool, clock),
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
