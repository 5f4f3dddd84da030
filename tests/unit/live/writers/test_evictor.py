"""Evictions one by one: marked, asked for, waited for, given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import cache, pod, put
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.engine.record import Eviction
from navarch.kube.errors import Conflict, Forbidden, NotFound, Status, TooManyRequests
from navarch.live.cache.assumed_pods import AssumedPods
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.events import Events, Regarding
from navarch.live.writers.evictor import SCHEDULE, STALE_GANGS, Evictor
from navarch.model.objects.refused_evictions import REFUSED_EVICTIONS
from navarch.model.spec import JobSpec, NodeSpec, SubGroupSpec
from navarch.model.status import TaskStatus

pytestmark = pytest.mark.looptime
NOT_NOW = TooManyRequests(Status(code=429, reason="TooManyRequests", message="the budget allows none"))
WRITTEN_MEANWHILE = Conflict(Status(code=409, reason="Conflict", message="the object has been modified"))
GONE = NotFound(Status(code=404, reason="NotFound", message="no such pod"))


class Told(Events):
    """What would be said, without a wire."""

    def __init__(self) -> None:
        super().__init__(Submitted().pool)
        self.reasons: list[str] = []
        self.notes: list[str] = []
        self.annotations: list[dict[str, str] | None] = []

    def emit(
        self,
        regarding: Regarding,
        type_: str,
        reason: str,
        action: str,
        note: str,
        related: Regarding | None = None,
        *,
        repeats: bool = False,
        annotations: dict[str, str] | None = None,
    ) -> None:
        self.reasons.append(reason)
        self.notes.append(note)
        self.annotations.append(annotations)


def scene(events: Events | None = None, **options: Any) -> tuple[Evictor, ClusterCache, Submitted, list[tuple[str, str]]]:
    assumed = AssumedPods()
    made, _ = cache(assumed)
    for name in ("a", "b"):
        put(made, pod(name, "n1", "Running"))
    submitted, ends = Submitted(), list[tuple[str, str]]()

    def count(action: str, result: str) -> None:
        ends.append((action, result))

    evictor = Evictor(submitted.pool, made, assumed, events or Events(Submitted().pool), lambda: 1e9, count=count, **options)
    return evictor, made, submitted, ends


def evict(evictor: Evictor, made: ClusterCache, name: str) -> None:
    task = made.cluster.task(f"uid-{name}")
    assert task is not None
    made.assumed.evictions[task.uid] = 0.0
    made.refresh(task.uid)
    evictor.evict(Eviction(task.key, "n1", task.uid, task.job, "preempt", "default/winner", "preempt"), task)


async def accepted(evictor: Evictor, made: ClusterCache, submitted: Submitted, eviction: Eviction) -> None:
    """Evict, with the API server's yes to the mark and to the eviction."""
    task = made.cluster.task(eviction.uid)
    assert task is not None
    made.assumed.evictions[task.uid] = 0.0
    evictor.evict(eviction, task)
    if not submitted.open:
        await asyncio.sleep(1.0)  # evictions are paced
    submitted.end()
    submitted.end()


def status(made: ClusterCache, name: str) -> TaskStatus:
    task = made.cluster.task(f"uid-{name}")
    assert task is not None
    return task.status


async def test_a_victim_is_marked_and_then_evicted() -> None:
    evictor, made, submitted, ends = scene()
    evict(evictor, made, "a")
    (mark,) = submitted.bodies()[0]["status"]["conditions"]
    assert (mark["type"], mark["message"]) == ("DisruptionTarget", "preempt: default/winner")
    submitted.end()
    assert submitted.writes[1].path == "/api/v1/namespaces/default/pods/a/eviction"
    assert submitted.bodies()[1]["deleteOptions"]["preconditions"] == {"uid": "uid-a"}
    submitted.end()
    assert ends == [("preempt", "ok")]
    assert status(made, "a") == TaskStatus.RELEASING


async def test_evictions_keep_to_their_rate() -> None:
    evictor, made, submitted, _ = scene(rate=2.0)
    evict(evictor, made, "a")
    evict(evictor, made, "b")
    assert len(submitted.writes) == 1
    await asyncio.sleep(0.4)
    assert len(submitted.writes) == 1
    await asyncio.sleep(0.2)
    assert len(submitted.writes) == 2


async def test_a_refusal_of_a_budget_is_given_up_at_once_and_the_pod_is_no_victim_for_a_while() -> None:
    said = Told()
    evictor, made, submitted, ends = scene(said, timeout=5.0)
    evict(evictor, made, "a")
    submitted.end()
    submitted.end(NOT_NOW)
    assert (ends, said.reasons) == ([("preempt", "given up")], ["EvictionGivenUp"])
    assert (status(made, "a"), made.assumed.evictions, len(evictor)) == (TaskStatus.RUNNING, {}, 0)
    (taken_back,) = submitted.bodies()[2]["status"]["conditions"]
    assert (taken_back["type"], taken_back["status"], taken_back["reason"]) == ("DisruptionTarget", "False", "EvictionGivenUp")
    assert made.cluster.objects[REFUSED_EVICTIONS] == {("", "uid-a"): made.cluster.tasks.rows.of["uid-a"]}
    await asyncio.sleep(5.1)
    assert made.cluster.objects[REFUSED_EVICTIONS] == {}


async def test_conditions_that_an_earlier_leader_left_are_taken_back() -> None:
    said = Told()
    evictor, made, submitted, _ = scene(said)
    made.cluster.put_node(NodeSpec("n1"))
    put(made, pod("c", "of-another-shard", "Running"))
    for name, state in (("a", TaskStatus.BOUND), ("b", TaskStatus.RUNNING), ("c", TaskStatus.RUNNING)):
        task = made.cluster.task(f"uid-{name}")
        assert task is not None
        made.cluster.put_task(replace(task, status=state, disruption_target=True, scheduler_name="navarch"))
    made.assumed.evictions["uid-b"] = 0.0
    evictor.take_back_marks()
    (body,) = submitted.bodies()
    (condition,) = body["status"]["conditions"]
    assert (body["metadata"]["uid"], condition["type"], condition["status"]) == ("uid-a", "DisruptionTarget", "False")
    assert said.reasons == ["EvictionGivenUp"]


async def test_refused_evictions_are_forgotten_when_the_lead_is_lost() -> None:
    evictor, made, submitted, _ = scene(timeout=60.0)
    evict(evictor, made, "a")
    submitted.end()
    submitted.end(NOT_NOW)
    evictor.stop()
    assert made.cluster.objects[REFUSED_EVICTIONS] == {}


async def test_a_victim_is_deleted_with_its_own_grace_period_where_the_policy_says_so() -> None:
    said = Told()
    evictor, made, submitted, ends = scene(said, evictions=lambda: "delete")
    evict(evictor, made, "a")
    submitted.end()
    assert (submitted.writes[1].method, submitted.writes[1].path) == ("DELETE", "/api/v1/namespaces/default/pods/a")
    assert submitted.bodies()[1] == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "uid-a"}}
    assert said.reasons == [], "nothing is said before the API server has accepted it"
    submitted.end()
    assert (ends, said.reasons) == ([("preempt", "ok")], ["Evicted"])


async def test_a_refusal_for_good_does_not_make_the_same_victim_chosen_in_every_cycle() -> None:
    """A namespace that is being deleted, a webhook that says no, a permission that was taken away."""
    evictor, made, submitted, ends = scene(timeout=60.0)
    for _ in range(3):
        evict(evictor, made, "a")
        submitted.end()
        asked = 0
        while submitted.open:
            submitted.end(Forbidden(Status(code=403, reason="Forbidden", message="the namespace is being terminated")))
            asked += 1
            await asyncio.sleep(11.0)
        assert 5 <= asked <= 10
    assert (ends, status(made, "a")) == ([("preempt", "given up")] * 3, TaskStatus.RUNNING)
    assert ("", "uid-a") in made.cluster.objects[REFUSED_EVICTIONS], "the next cycle chooses another one"
    assert asyncio.get_running_loop().time() > 150.0


async def test_a_pod_that_is_gone_is_no_failure() -> None:
    for answers in ([GONE], [None, GONE]):  # to the mark, to the eviction
        evictor, made, submitted, ends = scene()
        evict(evictor, made, "a")
        for outcome in answers:
            submitted.end(outcome)
        assert (ends, len(evictor), submitted.open) == ([("preempt", "gone")], 0, [])


async def test_a_refusal_is_asked_less_and_less_often() -> None:
    evictor, made, submitted, _ = scene(timeout=60.0)
    evict(evictor, made, "a")
    submitted.end()
    waits: list[float] = []
    for _ in range(6):
        submitted.end(WRITTEN_MEANWHILE)
        since = asyncio.get_running_loop().time()
        while not submitted.open:
            await asyncio.sleep(0.25)
        waits.append(round(asyncio.get_running_loop().time() - since))
    assert waits == [1, 2, 4, 8, 10, 10]


async def test_stopped_what_waits_is_forgotten() -> None:
    said = Told()
    evictor, made, submitted, _ = scene(said, rate=0.1)
    evict(evictor, made, "a")
    evict(evictor, made, "b")
    evictor.stop()
    assert status(made, "b") == TaskStatus.RUNNING
    assert len(submitted.writes) == 1
    assert said.reasons == [], "nothing was evicted or given up: the next leader decides"
    # Nor is the pace another when it leads again.
    await asyncio.sleep(5.0)
    evict(evictor, made, "b")
    assert len(submitted.writes) == 2
    evict(evictor, made, "a")
    await asyncio.sleep(9.0)
    assert len(submitted.writes) == 2
    await asyncio.sleep(2.0)
    assert len(submitted.writes) == 3


async def test_a_victim_is_told_what_it_goes_for() -> None:
    for eviction, note in (
        (
            Eviction("default/a", "n1", "uid-a", "default/pod/a", "preempt", "default/winner", "p"),
            "Evicted by preempt for default/winner",
        ),
        (Eviction("default/a", "n1", "uid-a", "default/pod/a", "shuffle", "", "p"), "Evicted by shuffle"),
        (Eviction("default/a", "n1", "uid-a", "default/pod/a", "preempt", "lab/pod/b", "p"), "Evicted by preempt for lab/b"),
        (Eviction("default/a", "n1", "uid-a", "default/pod/a", "release", "x/y", "p", "the gang is released"), "the gang is released"),
    ):
        said = Told()
        evictor, made, submitted, _ = scene(said)
        await accepted(evictor, made, submitted, eviction)
        assert said.notes == [note]


async def test_a_conflict_is_asked_again_since_the_pod_may_run_on() -> None:
    evictor, made, submitted, ends = scene(timeout=5.0)
    evict(evictor, made, "a")
    submitted.end(WRITTEN_MEANWHILE)
    assert evictor.on_the_wire == 1
    submitted.end(WRITTEN_MEANWHILE)
    assert (len(evictor), evictor.on_the_wire) == (1, 0)
    await asyncio.sleep(1.1)
    assert (len(evictor), evictor.on_the_wire) == (1, 1)
    submitted.end()
    assert (len(evictor), evictor.on_the_wire) == (0, 0)
    assert [write.path.rpartition("/")[2] for write in submitted.writes] == ["status", "eviction", "eviction"]
    assert ends == [("preempt", "ok")]


async def test_a_conflict_because_another_pod_has_the_name_ends_when_the_watch_shows_it() -> None:
    evictor, made, submitted, ends = scene(timeout=5.0)
    evict(evictor, made, "a")
    submitted.end()
    submitted.end(WRITTEN_MEANWHILE)
    made.remove_pod("uid-a")
    await asyncio.sleep(1.1)
    assert (ends, len(evictor), submitted.open) == ([("preempt", "gone")], 0, [])


@pytest.mark.parametrize("lost", [False, True])
async def test_a_stale_gang_is_evicted_whatever_is_left_of_its_group(lost: bool) -> None:
    said = Told()
    evictor, made, submitted, ends = scene(said)
    made.put(JobSpec("default/g", "default", namespace="default", name="g", dialect="kai", min_member=3))
    if lost:
        made.cluster.remove_job("default/g")
    task = made.cluster.task("uid-a")
    assert task is not None
    made.assumed.evictions[task.uid] = 0.0
    evictor.evict(Eviction(task.key, "n1", task.uid, "default/g", STALE_GANGS, "", "stale"), task)
    submitted.end()
    submitted.end()
    assert ends == [(STALE_GANGS, "ok")]
    assert said.reasons == ["Evicted", "Evict", "StaleJob"]
    assert said.notes[1:] == [f"Pod default/a: {said.notes[0]}", "Job is stale. 0 pods are active, minMember is 3"]


async def test_the_event_of_a_group_names_the_preemptor() -> None:
    said = Told()
    evictor, made, submitted, _ = scene(said)
    parts = (SubGroupSpec("a", min_member=2), SubGroupSpec("b", min_member=3))
    made.put(JobSpec("default/g", "default", namespace="default", name="g", dialect="kai", min_member=1, sub_groups=parts))
    gained = Eviction("default/a", "n1", "uid-a", "default/g", "preempt", "lab/winner", "p", together=3)
    await accepted(evictor, made, submitted, gained)
    assert said.reasons == ["Evicted", "Evict"]
    assert said.annotations[-1] == {
        "num-evicted-pods": "3",
        "evictor-action-type": "preempt",
        "evictor-pod-group-namespace": "lab",
        "evictor-pod-group-name": "winner",
    }
    await accepted(evictor, made, submitted, Eviction("default/b", "n1", "uid-b", "default/g", STALE_GANGS, "", "stale"))
    assert said.annotations[-2] == {"num-evicted-pods": "1", "evictor-action-type": STALE_GANGS}
    assert said.notes[-1].endswith("minMember is 5"), "of all its parts"


async def test_the_event_of_a_group_of_volcano_has_no_annotations_of_kai() -> None:
    said = Told()
    evictor, made, submitted, _ = scene(said)
    made.put(JobSpec("default/g", "default", namespace="default", name="g", dialect="volcano", min_member=1))
    await accepted(evictor, made, submitted, Eviction("default/a", "n1", "uid-a", "default/g", "preempt", "lab/winner", "p"))
    assert (said.reasons, said.annotations) == (["Evicted", "Evict"], [None, None])


async def test_a_victim_of_kube_schedulers_rules_is_told_in_its_words() -> None:
    said = Submitted()
    evictor, made, submitted, _ = scene(Events(said.pool, clock=lambda: 1e9))
    words = "Preempted by pod uid-b on node n1"
    await accepted(evictor, made, submitted, Eviction("default/a", "n1", "uid-a", "", SCHEDULE, "default/b", "preempt", words))
    (body,) = said.bodies()
    assert (body["type"], body["reason"], body["action"], body["note"]) == ("Normal", "Preempted", "Preempting", words)


async def test_one_that_waits_to_be_asked_again_is_forgotten_as_well_when_the_lead_is_lost() -> None:
    """And not asked for when it comes back: another scheduler may have led, and the place may not be needed any more."""
    for answered in (0, 1, 2):
        said = Told()
        evictor, made, submitted, _ = scene(said, timeout=60.0)
        evict(evictor, made, "a")
        answers = [None, WRITTEN_MEANWHILE]  # to the mark, to the eviction
        for outcome in answers[:answered]:
            submitted.end(outcome)
        evictor.stop()
        for outcome in answers[answered:]:
            if submitted.open:
                submitted.end(outcome)
        await asyncio.sleep(30.0)
        asked = len(submitted.writes)
        assert asked == min(answered + 1, 2)
        assert (status(made, "a"), made.assumed.evictions) == (TaskStatus.RUNNING, {})
        assert (len(evictor), evictor.on_the_wire, said.reasons) == (0, 0, [])
        evict(evictor, made, "a")
        submitted.end()
        submitted.end()
        assert (len(submitted.writes), len(evictor)) == (asked + 2, 0)


async def test_a_pod_that_its_budget_protects_is_told_of_it_in_a_series() -> None:
    said = Submitted()
    evictor, made, submitted, _ = scene(Events(said.pool, clock=lambda: 1e9 + asyncio.get_running_loop().time()), timeout=5.0)
    for _ in range(5):
        evict(evictor, made, "a")
        submitted.end()
        submitted.end(NOT_NOW)
        submitted.end()
        await asyncio.sleep(5.5)
        while said.open:
            said.end()
    assert [body["reason"] for body in said.bodies() if "reason" in body] == ["EvictionGivenUp"]


async def test_a_pod_that_stays_although_its_eviction_was_accepted_is_no_victim_for_a_while() -> None:
    evictor, made, submitted, _ = scene(timeout=60.0)
    task = made.cluster.task("uid-a")
    assert task is not None
    evictor.abandon(replace(task, disruption_target=True), "the pod does not leave")
    assert list(made.cluster.objects[REFUSED_EVICTIONS]) == [("", "uid-a")]
    (body,) = submitted.bodies()
    assert (body["status"]["conditions"][0]["type"], body["status"]["conditions"][0]["status"]) == ("DisruptionTarget", "False")
    await asyncio.sleep(61.0)
    assert not made.cluster.objects.get(REFUSED_EVICTIONS)
