"""Jobs that take no part in cycles, because the group that their pods name or the queue of the group does not exist.

A session does not have these jobs, so a cycle makes no decision about them. `absent` makes one: `navarch plan` lists it, and the
live scheduler writes it to the pods and to the group.
"""

from __future__ import annotations

from collections.abc import Sequence

from navarch.apis.kai.awaited_groups import awaited_text
from navarch.apis.kai.sub_groups import SKIP_GROUPER, UNGROUPED
from navarch.apis.upstream.workloads import absence, is_member
from navarch.engine.reasons import Event, Reason
from navarch.engine.record import JobDecision
from navarch.ingest.groups import is_shadow
from navarch.model.spec import JobSpec
from navarch.model.status import STATUS_NAMES, TaskStatus

_NO_GROUP = "the policy requires a PodGroup, or a disruption budget with the controller of the pod, and there is neither"

_LEFT_ALONE = f"{SKIP_GROUPER} keeps a group from being made for it, and it names no PodGroup"


def why_absent(key: str, spec: JobSpec | None, *, group_required: bool = False, awaited_since: float | None = None) -> Reason:
    """`group_required`: no group is made in memory for pods without one. `awaited_since`: the creation of pods that wait for KAI's
    pod grouper."""
    if spec is None and awaited_since is not None:
        return Reason("PodGroupNotFound", awaited_text(awaited_since), undone_by=(Event.JOB_CHANGED, Event.POD_CHANGED))
    if spec is None and is_shadow(key) and key.split("/")[1] == UNGROUPED:
        return Reason("PodGroupNotFound", _LEFT_ALONE, undone_by=(Event.JOB_CHANGED, Event.POD_CHANGED))
    if spec is None and is_shadow(key) and not is_member(key) and (group_required or key.split("/")[1] == "pod"):
        return Reason("PodGroupNotFound", _NO_GROUP, undone_by=(Event.JOB_CHANGED, Event.POD_CHANGED))
    if spec is None:
        return Reason("PodGroupNotFound", absence(key), undone_by=(Event.JOB_CHANGED,))
    text, undone = f'the queue "{spec.queue}" does not exist', (Event.QUEUE_CHANGED, Event.JOB_CHANGED)
    return Reason("QueueNotFound", text, figures={"queue": spec.queue}, undone_by=undone)


def absent(
    key: str,
    spec: JobSpec | None,
    counts: Sequence[int],
    *,
    group_required: bool = False,
    awaited_since: float | None = None,
) -> JobDecision:
    """`counts`: its pods by TaskStatus. The decision has a reason only if pods wait. For the others see `why_absent`."""
    return JobDecision(
        job=key,
        queue=spec.queue if spec else "",
        phase=spec.phase if spec else "Pending",
        min_member=spec.min_member if spec else 0,
        pods={STATUS_NAMES[i]: count for i, count in enumerate(counts) if count},
        conditions=spec.conditions if spec else (),
        reasons=(why_absent(key, spec, group_required=group_required, awaited_since=awaited_since),)
        if counts[TaskStatus.PENDING]
        else (),
        shadow=spec.shadow if spec else False,
        dialect=spec.dialect if spec else "pod",
        changed=False,
        last_started=spec.last_started if spec else None,
        last_evicted=spec.last_evicted if spec else None,
        stale_since=spec.stale_since if spec else None,
    )
