"""What pods and groups are told: when it has lasted, when it differs, the newest word only."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import cache, group, pod, put
from tests.worlds.live_parts.fake_pool import Submitted
from tests.worlds.live_parts.statuses import Asked, figures

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import PodStatus
from navarch.engine.record import JobDecision
from navarch.kube.client import Client
from navarch.kube.errors import Conflict, Forbidden, OutcomeUnknown, Status
from navarch.live.cache.assumed_pods import AssumedStatus
from navarch.live.cache.cluster_cache import ClusterCache
from navarch.live.writers.events import Events
from navarch.live.writers.group_status import GroupStatuses
from navarch.live.writers.pod_status import PodStatuses
from navarch.live.writers.queue_status import QueueStatuses
from navarch.model.spec import Condition, NodeSpec, QueueSpec


def pods(**options: Any) -> tuple[PodStatuses, ClusterCache, Submitted, Submitted]:
    made, _ = cache()
    put(made, pod("a"))
    statuses, said = Submitted(), Submitted()
    return PodStatuses(statuses.pool, made, Events(said.pool), lambda: 1e9, **options), made, statuses, said


def refuse(writer: PodStatuses, made: ClusterCache, message: str, now: float, **more: Any) -> None:
    task = made.cluster.task("uid-a")
    assert task is not None
    writer.refuse(task, "Unschedulable", message, now, **more)


def test_a_refusal_is_written_when_it_has_lasted() -> None:
    writer, made, statuses, said = pods()
    refuse(writer, made, "no room", 0.0)
    writer.flush(0.7)
    assert statuses.writes == []
    writer.flush(0.9)
    (body,) = statuses.bodies()
    assert body["metadata"] == {"uid": "uid-a"}
    assert body["status"]["conditions"][0]["message"] == "no room"
    assert said.bodies()[0]["reason"] == "FailedScheduling"


def test_a_pod_that_is_bound_meanwhile_is_told_nothing() -> None:
    writer, made, statuses, said = pods()
    refuse(writer, made, "no room", 0.0)
    put(made, pod("a", "n1"))
    writer.flush(2.0)
    assert (statuses.writes, said.writes) == ([], [])


def test_the_newest_word_is_told_and_new_words_wait_ten_seconds() -> None:
    writer, made, statuses, _ = pods()
    refuse(writer, made, "0/1 nodes", 0.0)
    refuse(writer, made, "0/2 nodes", 0.5)
    writer.flush(1.0)
    statuses.end()
    refuse(writer, made, "0/3 nodes", 2.0)
    writer.flush(5.0)
    assert len(statuses.writes) == 1
    writer.flush(11.0)
    assert [body["status"]["conditions"][0]["message"] for body in statuses.bodies()] == ["0/2 nodes", "0/3 nodes"]


def test_another_reason_is_written_within_a_second_and_the_moment_since_when_stays() -> None:
    writer, made, statuses, _ = pods()
    refuse(writer, made, "no room", 0.0)
    writer.flush(1.0)
    statuses.end()
    condition = statuses.bodies()[0]["status"]["conditions"][0]
    put(made, replace(pod("a"), status=from_manifest({"conditions": [condition]}, PodStatus)))
    task = made.cluster.task("uid-a")
    assert task is not None
    writer.refuse(task, "QueueLimit", "the queue is full", 2.0)
    writer.flush(2.9)
    after = statuses.bodies()[1]["status"]["conditions"][0]
    assert (after["reason"], after["lastTransitionTime"]) == ("QueueLimit", condition["lastTransitionTime"])


def test_the_reason_and_the_nominated_node_are_one_patch() -> None:
    writer, made, statuses, _ = pods()
    task = made.cluster.task("uid-a")
    assert task is not None
    writer.nominate(task, "n1", 0.0)
    writer.refuse(task, "Schedulable", "node n1 is promised to it", 0.0, promised=True)
    writer.flush(0.1)
    statuses.end()
    refuse(writer, made, "no room", 1.0)
    writer.flush(1.9)
    told = [(body["status"]["nominatedNodeName"], body["status"]["conditions"][0]["reason"]) for body in statuses.bodies()]
    assert told == [("n1", "Schedulable"), (None, "Unschedulable")]


def test_words_that_change_with_every_cycle_are_written_every_ten_seconds() -> None:
    """On a clock that, as an event loop's, does not begin at nought."""
    writer, made, statuses, _ = pods()
    times = []
    for tenth in range(300):
        now = 1e6 + tenth / 10
        refuse(writer, made, f"0/{tenth} nodes", now)
        writer.flush(now)
        while statuses.open:
            statuses.end()
            times.append(round(now - 1e6))
    assert times == [1, 11, 21]


def test_a_gang_that_has_its_pods_by_now_is_not_told_for_long_that_it_lacks_some() -> None:
    writer, made, statuses, _ = pods()
    refuse(writer, made, "2 of 3 pods", 0.0, lacking=True)
    writer.flush(1.0)
    statuses.end()
    refuse(writer, made, "1 of 3 pods", 2.0, lacking=True)
    writer.flush(5.0)
    assert len(statuses.writes) == 1
    refuse(writer, made, "no room for 3 pods", 5.0)
    writer.flush(6.0)
    assert [body["status"]["conditions"][0]["message"] for body in statuses.bodies()] == ["2 of 3 pods", "no room for 3 pods"]


def test_pods_that_are_deleted_while_they_wait_are_not_remembered() -> None:
    writer, made, statuses, _ = pods()
    refuse(writer, made, "no room", 1e6)
    writer.flush(1e6 + 1)
    statuses.end()
    made.remove_pod("uid-a")
    writer.flush(1e6 + 100)
    assert len(writer) == 0


def test_the_same_word_is_not_written_twice_even_after_a_restart() -> None:
    writer, made, statuses, _ = pods()
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    found = pod("a")
    put(made, msgspec.structs.replace(found, status=from_manifest({"conditions": [told]}, PodStatus)))
    refuse(writer, made, "no room", 0.0)
    writer.flush(100.0)
    assert statuses.writes == []


def test_a_promise_is_told_at_once_and_taken_back_when_it_is_void() -> None:
    writer, made, statuses, _ = pods()
    task = made.cluster.task("uid-a")
    assert task is not None
    writer.nominate(task, "n1", 0.0)
    refuse(writer, made, "waits for victims", 0.0, promised=True)
    writer.flush(0.0)
    statuses.end()
    refuse(writer, made, "no room", 5.0)
    writer.flush(6.0)
    assert [body["status"]["nominatedNodeName"] for body in statuses.bodies()] == ["n1", None]


def test_a_promise_that_was_never_written_is_taken_back_as_well() -> None:
    writer, made, statuses, _ = pods()
    task = made.cluster.task("uid-a")
    assert task is not None
    made.assumed.nominations["uid-a"] = "n1"
    made.refresh("uid-a")
    writer.nominate(task, "n1", 0.0)
    writer.flush(0.0)
    statuses.end(OutcomeUnknown("cut"))
    refuse(writer, made, "no room", 5.0)
    task = made.cluster.task("uid-a")
    assert task is not None
    assert (task.nominated_node, made.assumed.nominations) == ("", {})


def test_a_nomination_of_an_earlier_leader_is_withdrawn_when_there_is_no_room() -> None:
    writer, made, statuses, _ = pods()
    put(made, replace(pod("a"), status=from_manifest({"nominatedNodeName": "n1"}, PodStatus)))
    refuse(writer, made, "no room", 0.0)
    writer.flush(1.0)
    assert statuses.bodies()[0]["status"]["nominatedNodeName"] is None


def test_a_status_that_could_not_be_written_is_written_again() -> None:
    writer, made, statuses, _ = pods()
    refuse(writer, made, "no room", 0.0)
    writer.flush(1.0)
    statuses.end(OutcomeUnknown("cut"))
    refuse(writer, made, "no room", 2.0)
    writer.flush(3.0)
    assert len(statuses.writes) == 2


def test_a_refusal_decided_during_a_pods_status_write_is_written_after_it() -> None:
    writer, made, statuses, _ = pods()
    refuse(writer, made, "no room", 0.0)
    writer.flush(1.0)
    refuse(writer, made, "no queue", 1.0, news=True)
    writer.flush(2.0)
    assert len(statuses.writes) == 1, "one at a time, or the older could come last"
    statuses.end()
    writer.flush(2.2)
    assert [body["status"]["conditions"][0]["message"] for body in statuses.bodies()] == ["no room", "no queue"]


def test_other_words_wait_for_a_second_and_those_that_would_be_lost_for_nothing() -> None:
    for more, told_at in (({"news": True}, 2.8), ({"at_once": True}, 2.0), ({}, 11.0)):
        writer, made, statuses, _ = pods()
        refuse(writer, made, "0/1 nodes", 0.0)
        writer.flush(1.0)
        statuses.end()
        refuse(writer, made, "something else", 2.0, **more)
        writer.flush(told_at - 0.1)
        assert len(statuses.writes) == 1, more
        writer.flush(told_at)
        assert len(statuses.writes) == 2, more


def test_a_word_that_did_not_last_is_never_written() -> None:
    writer, made, statuses, _ = pods()
    refuse(writer, made, "no room", 0.0)
    writer.flush(1.0)
    statuses.end()
    refuse(writer, made, "no queue", 2.0, news=True)
    refuse(writer, made, "no room", 2.5)
    writer.flush(100.0)
    assert len(statuses.writes) == 1


def test_a_pod_that_goes_on_waiting_keeps_the_moment_since_when() -> None:
    writer, made, statuses, _ = pods()
    told = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2001-01-01T00:00:00Z", "message": "no room"}
    put(made, replace(pod("a"), status=from_manifest({"conditions": [told]}, PodStatus)))
    refuse(writer, made, "still no room", 0.0)
    writer.flush(1.0)
    assert statuses.bodies()[0]["status"]["conditions"][0]["lastTransitionTime"] == "2001-01-01T00:00:00Z"


def test_without_status_updates_pods_are_told_by_events_alone_and_what_is_written_is_counted() -> None:
    made, _ = cache()
    put(made, pod("a"))
    statuses, said = Submitted(), Submitted()
    silent = PodStatuses(statuses.pool, made, Events(said.pool), lambda: 1e9, enabled=False)
    refuse(silent, made, "no room", 0.0)
    silent.flush(1.0)
    assert (statuses.writes, len(said.writes)) == ([], 1)
    ends: list[tuple[str, str]] = []
    writer, made, statuses, _ = pods(count=lambda kind, result: ends.append((kind, result)))
    for now, outcome in ((0.0, OutcomeUnknown("cut")), (10.0, None)):
        refuse(writer, made, "no room", now)
        writer.flush(now + 1.0)
        statuses.end(outcome)
    assert ends == [("Pod", "error"), ("Pod", "ok")]


def test_words_are_for_one_version_of_the_pod_and_are_made_anew_if_it_has_changed() -> None:
    writer, made, statuses, _ = pods()
    for version in ("5", "6"):
        shown = pod("a")
        made.pods["default", "a"] = replace(shown, metadata=replace(shown.metadata, resource_version=version))
        if version == "5":
            refuse(writer, made, "no room", 0.0)
            writer.flush(1.0)
            statuses.end(Conflict(Status(code=409, reason="Conflict", message="the object has been modified")))
            writer.flush(1.5)
            assert len(statuses.writes) == 1
    writer.flush(2.0)
    statuses.end()
    assert [body["metadata"]["resourceVersion"] for body in statuses.bodies()] == ["5", "6"]
    writer.flush(100.0)
    assert len(statuses.writes) == 2


SCHEDULED = Condition("Scheduled", "True", "tasks in gang are ready to be scheduled", "", "cycle-1", 1e9)


def groups(subresource: bool = False) -> tuple[GroupStatuses, ClusterCache, Submitted]:
    made, _ = cache()
    made.put(group("g", 2))
    submitted = Submitted()
    client = cast(Client, Asked(subresource))
    writer = GroupStatuses(submitted.pool, client, made, made.assumed, Events(Submitted().pool), lambda: 1e9)
    return writer, made, submitted


def decided(phase: str, *conditions: Condition) -> JobDecision:
    return JobDecision("default/g", "default", phase, 2, {"Running": 2}, conditions)


def settle(made: ClusterCache, phase: str, *conditions: Condition) -> None:
    row = made.cluster.jobs.rows.of["default/g"]
    spec = made.cluster.jobs.specs[row]
    assert spec is not None
    made.assumed.statuses["default/g"] = AssumedStatus(spec.uid, phase, conditions)
    made.put_status(replace(spec, phase=phase, conditions=conditions))


async def flushed(writer: GroupStatuses, now: float) -> None:
    """Until it is known whether the kind has a status subresource."""
    writer.flush(now)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    writer.flush(now + 0.2)


@pytest.mark.parametrize(("subresource", "path"), [(False, ""), (True, "/status")])
async def test_a_groups_status_goes_where_its_kind_keeps_it(subresource: bool, path: str) -> None:
    writer, made, submitted = groups(subresource)
    settle(made, "Running", SCHEDULED)
    writer.mark("default/g", 0.0, decided("Running", SCHEDULED))
    await flushed(writer, 1.0)
    assert submitted.writes[0].path == f"/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/g{path}"
    status = submitted.bodies()[0]["status"]
    assert (status["phase"], status["running"], status["conditions"][0]["type"]) == ("Running", 0, "Scheduled")


async def test_many_marks_make_one_write_and_an_equal_status_none() -> None:
    writer, made, submitted = groups()
    settle(made, "Running", SCHEDULED)
    for i in range(20):
        writer.mark("default/g", i * 0.01)
    await flushed(writer, 1.0)
    submitted.end({"metadata": {"resourceVersion": "77"}})
    assert made.assumed.statuses["default/g"].version == 77
    writer.mark("default/g", 2.0)
    writer.flush(10.0)
    assert len(submitted.writes) == 1


async def test_pods_that_start_are_counted_into_the_status() -> None:
    writer, made, submitted = groups()
    settle(made, "Running", SCHEDULED)
    writer.mark("default/g", 0.0)
    await flushed(writer, 1.0)
    submitted.end({"metadata": {"resourceVersion": "77"}})
    put(made, pod("a", "n1", "Running", "g"))
    put(made, pod("b", "n1", "Succeeded", "g"))
    writer.mark("default/g", 3.0)
    writer.flush(5.0)
    status = submitted.bodies()[-1]["status"]
    assert (status["running"], status["succeeded"], status["failed"]) == (1, 1, 0)


async def test_a_status_that_could_not_be_written_is_tried_again() -> None:
    writer, made, submitted = groups()
    settle(made, "Running", SCHEDULED)
    writer.mark("default/g", 0.0)
    await flushed(writer, 1.0)
    submitted.end(OutcomeUnknown("cut"))
    writer.flush(asyncio.get_running_loop().time() + 2.0)
    assert len(submitted.writes) == 2


@pytest.mark.parametrize("body", [b'{"metadata":null}', b'{"metadata":{"resourceVersion":7}}', b'{"status":"\xff"}', b"{", b"[1]"])
async def test_a_reply_that_cannot_be_read_is_a_failure_of_its_group_alone(body: bytes) -> None:
    writer, made, submitted = groups()
    settle(made, "Running", SCHEDULED)
    writer.mark("default/g", 0.0)
    await flushed(writer, 1.0)
    submitted.reply(body)
    writer.flush(asyncio.get_running_loop().time() + 2.0)
    assert len(submitted.writes) == 2, "it is written again"


async def test_groups_that_are_gone_are_not_remembered_and_another_of_the_name_is_told_all() -> None:
    writer, made, submitted = groups()
    settle(made, "Running", SCHEDULED)
    writer.mark("default/g", 0.0, decided("Running", SCHEDULED))
    await flushed(writer, 1.0)
    submitted.end({"metadata": {"resourceVersion": "77"}})
    made.remove(group("g", 2))
    made.put(replace(group("g", 2), uid="another"))
    settle(made, "Running", SCHEDULED)
    writer.mark("default/g", 10.0, decided("Running", SCHEDULED))
    writer.flush(11.0)
    assert [body["metadata"]["uid"] for body in submitted.bodies()][1:] == ["another"]
    submitted.end({"metadata": {"resourceVersion": "78"}})
    made.remove(replace(group("g", 2), uid="another"))
    writer.flush(100.0)
    assert len(writer) == 0


def phase(made: ClusterCache) -> str:
    spec = made.cluster.jobs.specs[made.cluster.jobs.rows.of["default/g"]]
    assert spec is not None
    return spec.phase


async def test_an_overwritten_status_is_written_again() -> None:
    """Although ours was never seen by itself: both were there before the first read."""
    writer, made, submitted = groups()
    settle(made, "Running", SCHEDULED)
    writer.mark("default/g", 0.0)
    await flushed(writer, 1.0)
    submitted.end({"metadata": {"resourceVersion": "77"}})
    made.put(replace(group("g", 2), phase="Pending"), version=80)
    assert phase(made) == "Pending"
    settle(made, "Running", SCHEDULED)
    writer.mark("default/g", 3.0)
    writer.flush(5.0)
    assert [body["status"]["phase"] for body in submitted.bodies()] == ["Running", "Running"]


async def test_a_kind_that_does_not_keep_all_of_a_status_is_not_told_again_and_again() -> None:
    writer, made, submitted = groups()
    settle(made, "Running", SCHEDULED)
    writer.mark("default/g", 0.0)
    await flushed(writer, 1.0)
    submitted.end({"metadata": {"resourceVersion": "77"}})
    made.put(replace(group("g", 2), phase="Running"), version=77)
    settle(made, "Running", SCHEDULED)
    for now in (3.0, 10.0, 30.0):
        writer.mark("default/g", now)
        writer.flush(now + 2.0)
    assert len(submitted.writes) == 1


async def test_a_group_status_decided_during_a_write_is_kept() -> None:
    writer, made, submitted = groups()
    settle(made, "Inqueue")
    writer.mark("default/g", 0.0)
    await flushed(writer, 1.0)
    settle(made, "Running", SCHEDULED)
    submitted.end({"metadata": {"resourceVersion": "77"}})
    made.put(replace(group("g", 2), phase="Inqueue"), version=77)
    assert phase(made) == "Running"


async def test_a_status_that_is_due_while_another_is_on_its_way_is_written_after_it() -> None:
    writer, made, submitted = groups()
    settle(made, "Inqueue")
    writer.mark("default/g", 0.0)
    await flushed(writer, 1.0)
    settle(made, "Running", SCHEDULED)
    writer.mark("default/g", 1.0)
    await flushed(writer, 5.0)
    assert len(submitted.writes) == 1, "one at a time, or the older could come last"
    submitted.end({"metadata": {"resourceVersion": "77"}})
    await flushed(writer, 6.0)
    assert [body["status"]["phase"] for body in submitted.bodies()] == ["Inqueue", "Running"]


async def test_group_statuses_of_an_earlier_term_are_written_again() -> None:
    writer, made, submitted = groups()
    settle(made, "Running", SCHEDULED)
    for now in (0.0, 10.0):
        writer.mark("default/g", now)
        await flushed(writer, now + 5.0)
        submitted.end({"metadata": {"resourceVersion": "77"}})
        writer.forget_all()
    assert len(submitted.writes) == 2


async def test_moments_of_a_kai_group_are_written_each_time_they_change() -> None:
    """Also if the next change comes before the result of the last write is read."""
    writer, made, submitted = groups()
    made.remove(group("g", 2))
    kai = replace(group("g", 2), dialect="kai", api_version="scheduling.run.ai/v2alpha2")
    made.put(kai, version=1)
    for number, moment in enumerate((1e9, 2e9, 3e9), 2):
        writer.mark("default/g", number * 10.0, replace(decided("Running"), last_started=moment))
        await flushed(writer, number * 10.0 + 1)
        submitted.end({"metadata": {"resourceVersion": str(number)}})
        made.put(replace(kai, last_started=moment), version=number)
    said = [list(body["metadata"]["annotations"].values()) for body in submitted.bodies()]
    assert said == [["2001-09-09T01:46:40Z"], ["2033-05-18T03:33:20Z"], ["2065-01-24T05:20:00Z"]]


async def test_a_moment_outlasts_the_cycles_that_come_before_it_is_written() -> None:
    """A cycle that adds a pod to a group knows nothing of the start that the one before it decided; another group of the name does
    not start with it."""
    writer, made, submitted = groups()
    made.remove(group("g", 2))
    kai = replace(group("g", 2), dialect="kai", api_version="scheduling.run.ai/v2alpha2")
    made.put(kai, version=1)
    writer.mark("default/g", 0.0, replace(decided("Running"), last_started=1e9 + 0.7, last_evicted=1e9))
    writer.mark("default/g", 0.1, decided("Running"))
    await flushed(writer, 1.0)
    submitted.end({"metadata": {"resourceVersion": "2"}})
    (body,) = submitted.bodies()
    assert sorted(body["metadata"]["annotations"].values()) == ["2001-09-09T01:46:40Z"] * 2
    made.put(replace(kai, last_started=1e9, last_evicted=1e9), version=2)
    writer.mark("default/g", 5.0, replace(decided("Running"), last_started=1e9, last_evicted=1e9))
    writer.flush(6.0)
    made.put(replace(kai, uid="another"), version=3)
    writer.mark("default/g", 10.0, decided("Running"))
    writer.flush(12.0)
    assert len(submitted.writes) == 1


def test_a_queue_shows_what_its_subtree_holds_and_is_opened_if_it_has_no_state() -> None:
    made, _ = cache()
    made.put(QueueSpec("root", dialect="volcano", state="Open"))
    made.put(QueueSpec("team", dialect="volcano", parent="root"))
    submitted = Submitted()
    writer = QueueStatuses(submitted.pool, made)
    writer.take([figures("default", 0), figures("root", 500), figures("team", 1500)])
    writer.flush(0.0)
    assert {write.path.split("/")[-2]: body["status"] for write, body in zip(submitted.writes, submitted.bodies())} == {
        "root": {"allocated": {"cpu": "2", "memory": None, "pods": None}},
        "team": {"allocated": {"cpu": "1500m", "memory": None, "pods": None}, "state": "Open"},
    }
    submitted.end()
    submitted.end()
    writer.take([figures("root", 0), figures("team", 0)])
    writer.flush(0.5)
    assert len(submitted.writes) == 2
    writer.flush(1.0)
    assert submitted.bodies()[2]["status"]["allocated"] == {"cpu": None}


def test_queues_that_are_each_others_parents_are_summed_up_once() -> None:
    made, _ = cache()
    made.cluster.queues["a"] = QueueSpec("a", dialect="volcano", parent="b", state="Open")
    made.cluster.queues["b"] = QueueSpec("b", dialect="volcano", parent="a", state="Open")
    submitted = Submitted()
    writer = QueueStatuses(submitted.pool, made)
    writer.take([figures("a", 500), figures("b", 1500)])
    writer.flush(0.0)
    assert [body["status"]["allocated"]["cpu"] for body in submitted.bodies()] == ["2", "2"]


def test_a_queues_status_is_on_its_way_once_and_is_counted() -> None:
    made, _ = cache()
    made.put(QueueSpec("root", dialect="volcano", state="Open"))
    submitted, ends = Submitted(), list[tuple[str, str]]()
    writer = QueueStatuses(submitted.pool, made, count=lambda kind, result: ends.append((kind, result)))
    for now, held in ((0.0, 500), (2.0, 600)):
        writer.take([figures("root", held)])
        writer.flush(now)
    assert len(submitted.writes) == 1, "one at a time, or the older could come last"
    submitted.end()
    writer.flush(4.0)
    submitted.end(OutcomeUnknown("cut"))
    assert [body["status"]["allocated"]["cpu"] for body in submitted.bodies()] == ["500m", "600m"]
    assert ends == [("Queue", "ok"), ("Queue", "error")]


def test_a_queue_that_is_gone_is_not_written_any_more() -> None:
    made, _ = cache()
    made.put(QueueSpec("root", dialect="volcano", state="Open"))
    submitted = Submitted()
    writer = QueueStatuses(submitted.pool, made)
    writer.take([figures("root", 500)])
    writer.flush(0.0)
    submitted.end(OutcomeUnknown("cut"))
    writer.take([figures("default", 0)])
    for now in range(1, 100):
        writer.flush(float(now))
    assert len(submitted.writes) == 1


def test_a_queue_whose_policy_has_summed_up_the_tree_is_not_summed_up_again() -> None:
    made, _ = cache()
    made.put(QueueSpec("team", dialect="volcano", state="Open"))
    made.put(QueueSpec("team-dev", dialect="volcano", state="Open", parent="team"))
    submitted = Submitted()
    writer = QueueStatuses(submitted.pool, made)
    writer.take([replace(figures(name, 1500), with_below=True) for name in ("team", "team-dev")])
    writer.flush(0.0)
    assert [body["status"]["allocated"]["cpu"] for body in submitted.bodies()] == ["1500m", "1500m"]


def test_stale_fields_of_a_queue_status_are_removed() -> None:
    made, _ = cache()
    made.put(NodeSpec("n1", allocatable=(("cpu", 1000), ("nvidia.com/gpu", 8000))))
    made.put(QueueSpec("root", dialect="volcano", state="Open"))
    submitted = Submitted()
    writer = QueueStatuses(submitted.pool, made)
    for now, cpu, outcome in ((0.0, 500, OutcomeUnknown("cut")), (1.0, 0, None), (2.0, 500, None)):
        writer.take([figures("root", cpu)])
        writer.flush(now)
        submitted.end(outcome)
    first, second, third = (body["status"]["allocated"] for body in submitted.bodies())
    assert (first["cpu"], first["nvidia.com/gpu"]) == ("500m", None)
    assert (second["cpu"], second["nvidia.com/gpu"]) == (None, None)
    assert third == {"cpu": "500m"}


def test_a_queue_that_is_closed_while_its_figures_are_on_their_way_stays_closed() -> None:
    """What we know of its state may be old: it is written only where there is none, and once."""
    made, _ = cache()
    made.put(QueueSpec("root", dialect="volcano"))
    submitted = Submitted()
    writer = QueueStatuses(submitted.pool, made)
    for now, state, cpu in ((0.0, "", 500), (1.0, "Open", 500), (2.0, "Open", 1000), (3.0, "", 1000)):
        made.put(QueueSpec("root", dialect="volcano", state=state))
        writer.take([figures("root", cpu)])
        writer.flush(now)
        if submitted.open:
            submitted.end()
    said = [(body["status"]["allocated"]["cpu"], body["status"].get("state")) for body in submitted.bodies()]
    assert said == [("500m", "Open"), ("1", None), ("1", "Open")]


def test_another_queue_of_the_same_name_is_told_all() -> None:
    """Deleted and made again between two looks: nothing of what the first was told is in it."""
    made, _ = cache()
    submitted = Submitted()
    writer = QueueStatuses(submitted.pool, made)
    for now, uid in ((0.0, "first"), (1.0, "second")):
        made.put(QueueSpec("root", uid=uid, dialect="volcano"))
        writer.take([figures("root", 500)])
        writer.flush(now)
        submitted.end()
    assert [body["status"]["state"] for body in submitted.bodies()] == ["Open", "Open"]


def test_a_queue_whose_status_is_refused_is_asked_less_and_less_often() -> None:
    made, _ = cache()
    made.put(QueueSpec("root", dialect="volcano"))
    submitted = Submitted()
    writer = QueueStatuses(submitted.pool, made)
    times = []
    for now in range(100):
        writer.take([figures("root", now)])
        writer.flush(float(now))
        while submitted.open:
            submitted.end(Forbidden(Status(code=403, reason="Forbidden", message="no")))
            times.append(now)
    assert times == [0, 1, 3, 7, 15, 31, 61, 91]
