"""Events: written once, then counted; a new text now and then; a bounded backlog."""

from __future__ import annotations

from tests.worlds.live_parts.events import POD, make
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.kube.errors import BadRequest, NotFound, Status
from navarch.live.writers import events
from navarch.live.writers.events import Events, pod_reference


def test_an_event_is_what_the_api_wants() -> None:
    recorder, submitted, _ = make()
    recorder.emit(POD, "Normal", "Scheduled", "Binding", "Successfully assigned default/a to n1", repeats=False)
    (body,) = submitted.bodies()
    assert submitted.writes[0].path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert body["eventTime"] == "2023-11-14T22:13:20.250000Z"
    assert body["regarding"] == {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "default", "uid": "u1"}
    assert (body["reportingController"], body["reportingInstance"]) == ("navarch", "me")


def test_the_same_again_becomes_a_series_written_at_most_every_half_minute() -> None:
    recorder, submitted, clock = make()
    for _ in range(10):
        recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "no room")
    assert len(submitted.writes) == 1
    clock.now += 31
    recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "no room")
    assert [write.method for write in submitted.writes] == ["POST", "PATCH"]
    assert submitted.bodies()[1]["series"]["count"] == 11
    assert submitted.writes[1].path.endswith(submitted.bodies()[0]["metadata"]["name"])


def test_a_new_text_is_a_new_event_but_not_at_once() -> None:
    recorder, submitted, clock = make()
    recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "0/1 nodes")
    recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "0/2 nodes")
    assert len(submitted.writes) == 1
    clock.now += 31
    recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "0/3 nodes")
    assert [body.get("note") for body in submitted.bodies()] == ["0/1 nodes", "0/3 nodes"]


def test_after_a_long_silence_the_same_is_news() -> None:
    recorder, submitted, clock = make()
    recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "no room")
    clock.now += events.SERIES_LIFE + 1
    recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "no room")
    assert [write.method for write in submitted.writes] == ["POST", "POST"]


def test_a_note_is_cut_to_what_the_api_takes() -> None:
    recorder, submitted, _ = make()
    recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "ä" * 2000)
    note = submitted.bodies()[0]["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith(" ...")


def test_a_clock_that_is_set_back_does_not_suppress_events() -> None:
    recorder, submitted, clock = make()
    recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "no room")
    clock.now -= 86400
    recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "no room")
    recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "no room")
    assert [write.method for write in submitted.writes] == ["POST", "POST"]


def test_a_series_whose_event_is_gone_begins_anew() -> None:
    recorder, submitted, clock = make()
    for outcome in (None, NotFound(Status(code=404)), None):
        recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "no room")
        submitted.end(outcome)
        clock.now += 31
    assert [write.method for write in submitted.writes] == ["POST", "PATCH", "POST"]


def test_an_event_that_was_not_written_is_not_counted_and_is_written_again() -> None:
    counted: list[tuple[str, str]] = []
    recorder, submitted, _ = make(lambda type_, reason: counted.append((type_, reason)))
    for outcome in (BadRequest(Status(code=422)), None):
        recorder.emit(POD, "Warning", "FailedScheduling", "Scheduling", "no room")
        submitted.end(outcome)
    assert [write.method for write in submitted.writes] == ["POST", "POST"]
    assert counted == [("Warning", "FailedScheduling")]


def test_names_that_the_api_would_refuse_every_event_for() -> None:
    submitted = Submitted()
    recorder = Events(submitted.pool, controller="two words", instance="x" * 300)
    recorder.emit(pod_reference("default", "a" * 199 + "-b", "u"), "Normal", "Scheduled", "Binding", "", repeats=False)
    (body,) = submitted.bodies()
    assert (body["reportingController"], len(body["reportingInstance"])) == ("navarch", 128)
    assert body["metadata"]["name"].startswith("a" * 199 + ".")


def test_an_event_carries_the_scheduler_that_its_pod_names() -> None:
    submitted = Submitted()
    named = {"a": "second", "b": "", "c": "two words"}
    recorder = Events(submitted.pool, controller="first", scheduler_of=lambda regarding: named[regarding.name])
    for name in named:
        recorder.emit(pod_reference("default", name, name), "Normal", "Scheduled", "Binding", "", repeats=False)
    assert [body["reportingController"] for body in submitted.bodies()] == ["second", "first", "navarch"]


def test_a_dry_run_says_nothing() -> None:
    submitted = Submitted()
    Events(submitted.pool, enabled=False).emit(POD, "Normal", "Scheduled", "Binding", "x")
    assert submitted.writes == []
