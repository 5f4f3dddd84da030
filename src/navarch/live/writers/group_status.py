"""PodGroup status: compares the status that a group should have with what its object shows, and writes the difference.

Every change that may matter (a decision, a pod that starts or ends) marks the group. A moment later the status is built, compared and,
if it differs, written, with one write in flight per group. So a hundred pods that start together cause one write, and the last write
always has the present state, in whatever order the marks came.

A kind with a status subresource ignores a status that is written with the object. A kind without one does not serve the path of the
subresource. Which case it is, is looked up once for each API, and again when an answer suggests that the CRD was replaced.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from navarch.engine.record import JobDecision
from navarch.kube.client import Client
from navarch.kube.errors import KubeError, NotFound, NotServed
from navarch.kube.resources import Resource
from navarch.kube.watch.decoding import decoded
from navarch.kube.write.pool import Done, Outcome, Priority, Write, WritePool
from navarch.live.cache.assumed_pods import AssumedPods, AssumedStatus
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.events import Events, Regarding
from navarch.live.writers.gang_bodies import coscheduling_body, coscheduling_seen, missing, upstream_body, upstream_seen
from navarch.live.writers.group_bodies import (
    NOT_READY,
    GroupBody,
    GroupState,
    all_reasons,
    counted_body,
    counted_seen,
    kai_body,
    kai_seen,
)
from navarch.live.writers.outbox import Count, Outbox, uncounted
from navarch.live.writers.workload_reference import workload_reference
from navarch.model.spec import JobSpec, TaskSpec

log = logging.getLogger(__name__)

SETTLE = 0.5
WRITE_INTERVAL = 1.0
CLEANUP_INTERVAL = 60.0
"""Seconds between two removals of groups that are gone: a group that is deleted after its last pod is not marked."""
MERGE = "application/merge-patch+json"
_NOT_ADMITTED = frozenset({"ClusterOverused", "QueueQuotaInsufficient", "QuotaExceeded"})
"""Codes of what keeps a group out of its queue. Volcano says it in an event of its own."""
_WAITING = ("Pending", "Inqueue", "Unknown")
_TOLD_IN_FULL = ("coscheduling", "upstream")
"""Dialects without a fixed message for a pending gang: they get every reason of the refusal."""


Body = Callable[[GroupState], GroupBody]
Seen = Callable[[JobSpec], object]
BODIES: Mapping[str, tuple[Body, Seen]] = {
    "kube-batch": (counted_body, counted_seen),
    "volcano": (counted_body, counted_seen),
    "kai": (kai_body, lambda seen: (kai_seen(seen), ())),
    "coscheduling": (coscheduling_body, coscheduling_seen),
    "upstream": (upstream_body, upstream_seen),
}
"""Dialect -> how its status is built, and how the present one is read."""


class _Versioned(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Reply(msgspec.Struct, frozen=True):
    metadata: _Versioned = _Versioned()
    status: dict[str, Any] | None = None

    def says(self, status: Mapping[str, Any]) -> bool:
        """Whether plain fields are as they were written. Lists are not compared: the API adds defaults to them."""
        said = self.status or {}
        return all(said.get(name) == value for name, value in status.items() if isinstance(value, str | int))


_REPLY = msgspec.json.Decoder(_Reply)


class _Group(Struct):
    uid: str = ""
    """uid of the group: another group may have the same name later."""
    due: float | None = None
    sent: object = None
    """What was written last and is not shown yet."""
    version: int | None = None
    """resourceVersion that this write made, once it is known."""
    sent_at: float = -WRITE_INTERVAL
    in_flight: bool = False
    failures: int = 0
    decision: JobDecision | None = None
    told: str = ""
    """The last event."""


class GroupStatuses:
    def __init__(
        self,
        pool: WritePool,
        client: Client,
        cache: ClusterCache,
        assumed: AssumedPods,
        events: Events,
        clock: Callable[[], float],
        *,
        enabled: bool = True,
        count: Count = uncounted,
    ) -> None:
        self.outbox = Outbox(pool, room=16)
        self._count = count
        self._client = client
        self._cache = cache
        self._assumed = assumed
        self._events = events
        self._clock = clock
        self._enabled = enabled
        self._groups: dict[str, _Group] = {}
        self._due: list[tuple[float, str]] = []
        self._subresource: dict[str, bool] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._doubted: dict[str, set[str]] = {}
        """API version -> groups whose last write went to the wrong path, if the CRD was replaced."""
        self._cleaned = 0.0

    def __len__(self) -> int:
        """How many groups are remembered."""
        return len(self._groups)

    def mark(self, key: str, now: float, decision: JobDecision | None = None) -> None:
        """The status of this group may have changed."""
        group, seen = self._groups.get(key), self._cache.group(key)
        if group is None:
            group = self._groups[key] = _Group("")
        if not group.uid and seen is not None:  # its pods may be shown before the group itself
            group.uid = seen.uid
        if decision is not None:
            group.decision = self._with_moments(key, group, decision)
        if group.due is None:
            self._schedule(key, group, max(now + SETTLE, group.sent_at + WRITE_INTERVAL))

    def _with_moments(self, key: str, group: _Group, decision: JobDecision) -> JobDecision:
        """A decision has the times of the last start and eviction if this cycle caused them or the group shows them. Those of the
        cycle before may not be shown yet, so they are kept."""
        before, seen = group.decision, self._cache.group(key)
        if before is None or seen is None or seen.uid != group.uid:
            return decision
        started, evicted = _later(before.last_started, decision.last_started), _later(before.last_evicted, decision.last_evicted)
        if (started, evicted) == (decision.last_started, decision.last_evicted):
            return decision
        return replace(decision, last_started=started, last_evicted=evicted)

    def forget_all(self) -> None:
        """Forget what was written: only what groups show counts."""
        self._groups.clear()

    def flush(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            due, key = heapq.heappop(self._due)
            group = self._groups.get(key)
            if group is None or group.due != due:
                continue
            group.due = None
            if group.in_flight:
                self._schedule(key, group, now + 0.1)
                continue
            body = self._wanted(key, group)
            if body is None:
                continue
            if self._enabled:
                self._send(key, group, now)
        if now - self._cleaned >= CLEANUP_INTERVAL:
            self._cleaned = now
            known = self._cache.group
            self._groups = {key: each for key, each in self._groups.items() if each.in_flight or known(key) is not None}

    def _schedule(self, key: str, group: _Group, due: float) -> None:
        group.due = due
        heapq.heappush(self._due, (due, key))

    def _wanted(self, key: str, group: _Group) -> GroupBody | None:
        """The status to write; None if the object says it, or what we last wrote does."""
        cache = self._cache
        seen = cache.group(key)
        jobs = cache.cluster.jobs
        row = jobs.rows.of.get(key)
        job = jobs.specs[row] if row is not None else None
        if seen is None or job is None or row is None or job.dialect not in BODIES or cache.is_foreign_group(key):
            self._groups.pop(key, None)
            return None
        if group.uid != seen.uid:
            group.uid, group.sent, group.told = seen.uid, None, ""
        self._tell(group, seen)
        make, read = BODIES[job.dialect]
        state = GroupState(
            job,
            seen,
            jobs.counts[row].tolist(),
            group.decision,
            cache.settings.node_pool,
            self._clock(),
            queues=cache.cluster.queues,
            tasks=lambda: self._members(row),
            scheduler_names=cache.settings.scheduler_names,
        )
        body = make(state)
        if body.said == read(seen):
            group.sent = None
            return None
        if group.version is not None and cache.group_version(key) > group.version:
            group.sent = group.version = None  # it was shown, and another writer replaced it
        if body.status is None and body.annotations is None:
            return None
        return None if body.said == group.sent else body

    def _members(self, row: int) -> list[TaskSpec]:
        cluster = self._cache.cluster
        found = (cluster.tasks.specs[task] for task in cluster.jobs.tasks[row])
        return [task for task in found if task is not None]

    def _tell(self, group: _Group, seen: JobSpec) -> None:
        """Events about the group, and about the Job that it is made for."""
        decision = group.decision
        if decision is None:
            return
        namespace, _, name = seen.key.partition("/")
        references = [Regarding("PodGroup", namespace, name, seen.uid, seen.api_version)]
        if (workload := workload_reference(seen)) is not None:
            references.append(workload)
        if decision.dialect == "volcano" and decision.phase == "Pending":
            for refused in (reason for reason in decision.reasons if reason.code in _NOT_ADMITTED):
                self._events.emit(references[0], "Normal", "Unschedulable", "Enqueue", refused.message)
        waits = bool(decision.reasons) and decision.phase in _WAITING
        if waits and decision.reasons[0].code == NOT_READY:
            note = f"Job is not ready for scheduling. {decision.reasons[0].message}"
            for reference in references:
                self._events.emit(reference, "Normal", NOT_READY, "Scheduling", note)
            group.told = NOT_READY
        elif waits:
            if decision.dialect in _TOLD_IN_FULL:
                said = missing(decision)
            else:
                said = next((c.message for c in decision.conditions if c.type == "Unschedulable"), "") or all_reasons(decision)
            for reference in references:
                self._events.emit(reference, "Warning", "Unschedulable", "Scheduling", said)
            group.told = "Unschedulable"
        elif group.told != "Scheduled" and any(c.type == "Scheduled" for c in decision.conditions):
            if not decision.pods.get("Pending") and decision.phase != "Completed":
                for reference in references:
                    self._events.emit(reference, "Normal", "Scheduled", "Scheduling", "pod group is ready", repeats=False)
            group.told = "Scheduled"

    def _send(self, key: str, group: _Group, now: float) -> None:
        seen = self._cache.group(key)
        assert seen is not None
        served = self._subresource.get(seen.api_version)
        if served is None:
            self._ask_for(seen.api_version)
            self._schedule(key, group, now + 0.1)
            return
        group.in_flight, group.sent_at = True, now
        self.outbox.put(lambda: self._make(key, group, served))

    def _ask_for(self, api_version: str) -> None:
        if api_version not in self._asking:
            task = asyncio.get_running_loop().create_task(self._ask(api_version))
            self._asking[api_version] = task

    async def _ask(self, api_version: str) -> None:
        before, served = self._subresource.get(api_version), None
        try:
            served = self._subresource[api_version] = await self._client.discovery.serves(_resource(api_version), "status")
        except KubeError as error:
            log.warning("%s: not known whether status is a subresource: %s", api_version, error)
            await asyncio.sleep(1.0)
        finally:
            self._asking.pop(api_version, None)
        doubted = self._doubted.pop(api_version, ())
        if served != before:
            # Also where there was no answer: they are written once more, and doubted once more.
            for key in sorted(doubted):
                if (group := self._groups.get(key)) is not None:
                    group.sent = None
                    self._schedule(key, group, asyncio.get_running_loop().time())

    def _doubt(self, api_version: str, key: str) -> None:
        """The answer suggests that the write went to the wrong path. If it did not, nothing changes."""
        self._doubted.setdefault(api_version, set()).add(key)
        self._ask_for(api_version)

    def _make(self, key: str, group: _Group, subresource: bool) -> tuple[Write, Done] | None:
        body = self._wanted(key, group) if self._groups.get(key) is group else None
        seen = self._cache.group(key)
        if body is None or seen is None:
            group.in_flight = False
            return None
        group.sent, group.version = body.said, None
        path = _resource(seen.api_version).path(seen.namespace, seen.name)
        patch: dict[str, object] = {"metadata": {"uid": seen.uid}}
        whole = not subresource or body.status is None
        if body.annotations and whole:
            patch["metadata"] = {"uid": seen.uid, "annotations": dict(body.annotations)}
        elif body.annotations:
            group.sent = None  # the annotations follow in a write of their own
        if body.status is not None:
            patch["status"] = body.status
            path += "/status" if subresource else ""
        write = Write("PATCH", path, msgspec.json.encode(patch), content_type=MERGE, priority=Priority.STATUS, repeatable=True)
        whole_status, ours = None if subresource else body.status, self._assumed.statuses.get(key)
        return write, lambda outcome: self._ended(key, group, seen.api_version, whole_status, ours, outcome)

    def _ended(
        self,
        key: str,
        group: _Group,
        api_version: str,
        whole: Mapping[str, Any] | None,
        ours: AssumedStatus | None,
        outcome: Outcome,
    ) -> None:
        """`whole`: the status, if it was written with the object. `ours`: what was assumed when it was written; a newer one is
        still on its way."""
        group.in_flight = False
        now = asyncio.get_running_loop().time()
        reply = _reply(outcome)
        if isinstance(reply, _Reply):
            self._count("PodGroup", "ok")
            group.failures = 0
            if whole is not None and not reply.says(whole):
                self._doubt(api_version, key)
            version = reply.metadata.resource_version
            if version.isdecimal():
                group.version = int(version)
                if ours is not None:
                    ours.version = int(version)
            if group.sent is None:
                self._schedule(key, group, now)
            return
        self._count("PodGroup", "error")
        group.sent = None
        if isinstance(reply, NotFound | NotServed):
            if whole is None:
                self._doubt(api_version, key)
            return
        group.failures += 1
        wait = min(30.0, 0.5 * 2 ** min(group.failures, 10))
        log.warning("status of PodGroup %s was not written: %s; retry in %.1f s", key, reply, wait)
        self._schedule(key, group, now + wait)


def _reply(outcome: Outcome) -> _Reply | KubeError:
    """A reply that cannot be read says as little as none: the status is written again."""
    if isinstance(outcome, KubeError):
        return outcome
    try:
        found: _Reply = decoded(_REPLY, outcome.body, "PATCH", "PodGroup", whole=False)
    except KubeError as error:
        return error
    return found


def _later(a: float | None, b: float | None) -> float | None:
    return max((moment for moment in (a, b) if moment is not None), default=None)


def _resource(api_version: str) -> Resource:
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, "podgroups")
