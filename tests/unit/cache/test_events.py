"""Events: said once, then counted; a new text now and then; never more than anyone reads."""

from __future__ import annotations

from tests.unit.cache.fake_pool import Submitted

from navarch.cache import events
from navarch.cache.events import Events, pod_reference

POD = pod_reference("default", "a", "u1")


class Clock:
    now = 1_700_000_000.25

    def __call__(self) -> float:
        return self.now


def make() -> tuple[Events, Submitted, Clock]:
    submitted, clock = Submitted(), Clock()
    return Events(submitted.pool, instance="me", clock=clock), submitted, clock


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


def test_a_dry_run_says_nothing() -> None:
    submitted = Submitted()
    Events(submitted.pool, enabled=False).emit(POD, "Normal", "Scheduled", "Binding", "x")
    assert submitted.writes == []
