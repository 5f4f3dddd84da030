"""What groups of coscheduling and of Kubernetes say of themselves, from their first pod to their last."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.registry import KINDS
from navarch.engine.reasons import Reason
from navarch.engine.record import JobDecision
from navarch.ingest.pod_reader import PodReader
from navarch.live.writers.gang_bodies import coscheduling_body, coscheduling_seen, missing, upstream_body, upstream_seen
from navarch.live.writers.group_bodies import GroupBody, GroupState
from navarch.model.spec import Condition, JobSpec, TaskSpec
from navarch.model.status import TaskStatus

NOW, THEN = "2026-01-01T00:00:00Z", "2025-12-31T00:00:00Z"
CLOCK = 1767225600.0
FULL = Reason("QueueOverused", "queue default is full")


def read(version: str, spec: dict[str, Any], status: dict[str, Any] | None) -> JobSpec:
    kind = KINDS[version, "PodGroup"]
    manifest = {"apiVersion": version, "metadata": {"name": "g", "namespace": "team"}, "spec": spec, "status": status or {}}
    job = kind.read(from_manifest(manifest, kind.struct), Settings())
    assert isinstance(job, JobSpec)
    return job


def co(status: dict[str, Any] | None = None) -> JobSpec:
    return read("scheduling.x-k8s.io/v1alpha1", {"minMember": 2}, status)


def up(*conditions: dict[str, Any], version: str = "v1alpha2") -> JobSpec:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    return read(f"scheduling.k8s.io/{version}", spec, {"conditions": list(conditions)})


def task(name: str, scheduler: str = "navarch", owner: str = "") -> TaskSpec:
    references = [{"kind": "Job", "name": owner, "uid": "o", "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "team", "uid": name, "ownerReferences": references}
    found = PodReader(Settings()).read(from_manifest({"metadata": metadata, "spec": {"schedulerName": scheduler}}, Pod))
    assert found is not None
    return found


def news(job: JobSpec, *reasons: Reason, said: str = "", tasks: list[TaskSpec] | None = None, **counts: int) -> GroupState:
    return news_of(job, counts, *reasons, said=said, tasks=tasks)


def news_of(job: JobSpec, counts: dict[str, int], *reasons: Reason, said: str = "", tasks: list[TaskSpec] | None = None) -> GroupState:
    counted = [counts.get(status.name.lower(), 0) for status in TaskStatus]
    conditions = (Condition("Unschedulable", "True", "NotEnoughResources", said, "id"),) if said else ()
    decision = JobDecision(job.key, "default", "Inqueue", 2, {}, conditions=conditions, reasons=reasons)
    pods = [task(f"p-{i}") for i in range(sum(counted))] if tasks is None else tasks
    return GroupState(job, job, counted, decision, "", CLOCK, tasks=lambda: pods, scheduler_names=frozenset({"navarch"}))


def written(body: GroupBody) -> dict[str, Any]:
    assert body.status is not None
    return dict(body.status)


def condition(body: GroupBody) -> tuple[str, ...]:
    *_, last = written(body)["conditions"]
    return tuple(last[name] for name in ("type", "status", "reason", "message", "lastTransitionTime"))


@pytest.mark.parametrize(
    ("counts", "phase"),
    [
        ({"pending": 1}, "Pending"),
        ({"pending": 2}, "Scheduling"),
        ({"binding": 2}, "Scheduling"),
        ({"bound": 1, "running": 1}, "Scheduling"),
        ({"running": 2}, "Running"),
        ({"running": 1, "succeeded": 1}, "Running"),
        ({"running": 1, "failed": 1}, "Failed"),
        ({"pending": 1, "failed": 1}, "Scheduling"),
        ({"succeeded": 2, "failed": 1}, "Finished"),
    ],
)
def test_coschedulings_phase_follows_the_pods(counts: dict[str, int], phase: str) -> None:
    assert written(coscheduling_body(news_of(co(), counts)))["phase"] == phase


def test_coschedulings_counts_owner_and_start() -> None:
    pods = [task("b", owner="second"), task("a", owner="first")]
    body = coscheduling_body(news(co(), tasks=pods, bound=1, running=1))
    assert written(body) == {
        "phase": "Scheduling", "scheduled": 2, "running": 1, "succeeded": 0, "failed": 0,
        "occupiedBy": "team/first", "scheduleStartTime": NOW,
    }  # fmt: skip
    assert body.said == coscheduling_seen(co(written(body))), "what was written is what is read"
    later = written(coscheduling_body(news(co(written(body)), running=2)))
    assert (later["occupiedBy"], later["scheduleStartTime"], later["running"]) == ("team/first", NOW, 2)
    assert "scheduleStartTime" not in written(coscheduling_body(news(co(), pending=2)))


def test_an_api_that_dropped_the_count_of_scheduled_pods_is_not_asked_for_it_again() -> None:
    body = coscheduling_body(news(co(), running=2))
    kept = {name: value for name, value in written(body).items() if name != "scheduled"}
    again = coscheduling_body(news(co(kept), running=2))
    assert "scheduled" not in written(again) and again.said == coscheduling_seen(co(kept))


@pytest.mark.parametrize("phase", ["Finished", "Failed"])
def test_coscheduling_never_leaves_its_last_phases(phase: str) -> None:
    seen = co({"phase": phase, "running": 1})
    body = coscheduling_body(news(seen, running=2))
    assert body.status is None and body.said == coscheduling_seen(seen)


def test_the_words_of_coschedulings_first_controller_stand() -> None:
    assert written(coscheduling_body(news(co({"phase": "Scheduled", "scheduled": 2}), bound=2)))["phase"] == "Scheduled"
    assert written(coscheduling_body(news(co({"phase": "Scheduled", "scheduled": 2}), running=2)))["phase"] == "Running"


def test_groups_without_pods_of_ours_are_left_alone() -> None:
    others = [task("x", "default-scheduler")]
    assert coscheduling_body(news(co(), tasks=others, bound=1)).status is None
    assert upstream_body(news(up(), tasks=others * 2, bound=2)).status is None
    assert coscheduling_body(news(co())).status is None, "it is not known which scheduler it is for"
    gone = coscheduling_body(news(co({"phase": "Running", "running": 2})))
    assert (written(gone)["phase"], written(gone)["running"]) == ("Pending", 0), "its pods are gone, whichever scheduler they were for"


@pytest.mark.parametrize(("version", "kind"), [("v1alpha2", "PodGroupScheduled"), ("v1beta1", "PodGroupInitiallyScheduled")])
def test_kubernetes_is_told_that_the_group_has_started(version: str, kind: str) -> None:
    body = upstream_body(news(up(version=version), bound=1, running=1))
    assert condition(body) == (kind, "True", "Scheduled", "", NOW)
    seen = up(*written(body)["conditions"], version=version)
    assert body.said == upstream_seen(seen)
    assert upstream_body(news(seen, FULL, said="one is missing", pending=1, running=1)).status is None, "True stays"


def test_kubernetes_is_told_what_is_missing() -> None:
    body = upstream_body(news(up(), FULL, said="2/2 tasks in gang unschedulable", pending=2))
    text = "2/2 tasks in gang unschedulable; queue default is full"
    assert condition(body) == ("PodGroupScheduled", "False", "Unschedulable", text, NOW)
    seen = up({**written(body)["conditions"][0], "lastTransitionTime": THEN})
    assert body.said == upstream_seen(seen), "the same news is no news"
    other = upstream_body(news(seen, FULL, said="1/2 tasks in gang unschedulable", pending=2))
    assert condition(other)[3:] == ("1/2 tasks in gang unschedulable; queue default is full", THEN)
    started = upstream_body(news(seen, bound=2))
    assert condition(started) == ("PodGroupScheduled", "True", "Scheduled", "", NOW)


def test_a_condition_names_the_generation_that_it_tells_of() -> None:
    other = {"type": "Other", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": THEN, "observedGeneration": 1}
    third = replace(up(other), generation=3)
    body = upstream_body(news(third, FULL, said="no room", pending=2))
    assert [each["observedGeneration"] for each in written(body)["conditions"]] == [1, 3]
    seen = replace(up(*written(body)["conditions"]), generation=3)
    assert body.said == upstream_seen(seen)
    again = upstream_body(news(replace(seen, generation=4), FULL, said="no room", pending=2))
    assert again.said != upstream_seen(seen) and written(again)["conditions"][1]["observedGeneration"] == 4
    plain = upstream_body(news(up(), FULL, said="no room", pending=2))
    assert "observedGeneration" not in written(plain)["conditions"][0], "the server counts none"


def test_a_gang_on_its_way_is_not_called_unschedulable() -> None:
    """Two of three are being bound, which is enough; the third waits."""
    assert upstream_body(news(up(), FULL, said="no room for one", pending=1, binding=2)).status is None
    assert upstream_body(news(up(), pending=2)).status is None, "no cycle has looked at it"


def test_conditions_of_others_stay() -> None:
    theirs = {"type": "DisruptionTarget", "status": "True", "reason": "Preempted", "message": "m", "lastTransitionTime": THEN}
    assert written(upstream_body(news(up(theirs), bound=2)))["conditions"][0] == theirs


def test_a_message_that_was_only_read_back_is_not_repeated() -> None:
    """Without the gang plugin it is not renewed."""
    stale = Condition("Unschedulable", "True", "NotEnoughResources", "an hour ago")
    decision = JobDecision("team/g", "default", "Inqueue", 2, {}, conditions=(stale,), reasons=(FULL, FULL))
    assert missing(decision) == "queue default is full"
