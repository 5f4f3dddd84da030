"""Events on their way to the API server: what is written, with which priority, and what is remembered of it."""

from __future__ import annotations

import logging

import pytest
from tests.worlds.live_parts.events import POD, make
from tests.worlds.live_parts.fake_pool import Submitted

from navarch.kube.errors import AlreadyExists, BadRequest, NotFound, Status, Unreachable
from navarch.kube.write.pool import Priority
from navarch.live.writers import events
from navarch.live.writers.events import AT_ONCE, Events, Regarding, pod_reference, truncated


def say(recorder: Events, note: str = "no room", about: Regarding = POD) -> None:
    recorder.emit(about, "Warning", "FailedScheduling", "Scheduling", note)


def test_an_event_goes_behind_everything_else_and_may_be_sent_twice() -> None:
    """Its name is fixed before it is sent: the second time it exists already."""
    recorder, submitted, clock = make()
    say(recorder)
    clock.now += 31
    say(recorder)
    assert [(write.method, write.priority, write.repeatable) for write in submitted.writes] == [
        ("POST", Priority.EVENT, True),
        ("PATCH", Priority.EVENT, True),
    ]
    assert submitted.writes[1].content_type == "application/merge-patch+json"
    assert submitted.bodies()[1]["series"] == {"count": 2, "lastObservedTime": "2023-11-14T22:13:51.250000Z"}


def test_an_event_refers_to_its_object_and_to_a_related_one() -> None:
    recorder, submitted, _ = make()
    node = Regarding("Node", "", "n1")
    recorder.emit(node, "Normal", "Freed", "Evicting", "x", POD, repeats=False, annotations={"a": "b"})
    recorder.emit(POD, "Normal", "Scheduled", "Binding", "x", repeats=False)
    about_node, about_pod = submitted.bodies()
    assert about_node["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}, (
        "no namespace and no uid, rather than empty ones"
    )
    assert about_node["related"]["uid"] == "u1" and "related" not in about_pod
    assert about_node["metadata"]["annotations"] == {"a": "b"} and "annotations" not in about_pod["metadata"]
    assert about_node["metadata"]["namespace"] == "default", "where events of what has no namespace are looked for"
    assert submitted.writes[0].path == "/apis/events.k8s.io/v1/namespaces/default/events"


def test_two_events_of_one_moment_have_two_names() -> None:
    recorder, submitted, _ = make()
    for reason in ("Evicted", "FailedScheduling"):
        recorder.emit(POD, "Warning", reason, "Scheduling", "x")
    first, second = (body["metadata"]["name"] for body in submitted.bodies())
    assert first != second


def test_events_of_different_objects_are_not_one_series() -> None:
    recorder, submitted, _ = make()
    other = pod_reference("default", "b", "u2")
    say(recorder)
    say(recorder, about=other)
    recorder.emit(POD, "Warning", "Evicted", "Scheduling", "no room")
    recorder.emit(POD, "Warning", "FailedScheduling", "Binding", "no room")
    assert [write.method for write in submitted.writes] == ["POST"] * 4


def test_a_series_lives_as_long_as_it_is_said_and_is_written_every_half_minute() -> None:
    recorder, submitted, clock = make()
    for _ in range(31):
        say(recorder)
        while submitted.open:
            submitted.end()
        clock.now += 20
    methods = [write.method for write in submitted.writes]
    assert methods == ["POST"] + ["PATCH"] * 15, "600 s of it: longer than a series lives without repetition"


def test_a_series_is_written_at_most_every_half_minute() -> None:
    recorder, submitted, clock = make()
    for pause in (0, 31, 1, 28, 2):
        clock.now += pause
        say(recorder)
    assert [write.method for write in submitted.writes] == ["POST", "PATCH", "PATCH"]
    assert [body["series"]["count"] for body in submitted.bodies()[1:]] == [2, 5]


def test_events_without_repeats_keep_no_series() -> None:
    recorder, submitted, clock = make()
    for _ in range(2):
        recorder.emit(POD, "Normal", "Scheduled", "Binding", "x", repeats=False)
        clock.now += events.SERIES_PAUSE
    assert [write.method for write in submitted.writes] == ["POST", "POST"]


def test_of_too_many_living_series_the_older_half_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_SERIES", 4)
    recorder, submitted, clock = make()
    pods = [pod_reference("default", f"p{number}", "") for number in range(5)]
    for each in pods:
        say(recorder, about=each)
        clock.now += 1
    while submitted.open:
        submitted.end()
    del submitted.writes[:]
    clock.now += events.SERIES_PAUSE
    for each in reversed(pods):
        say(recorder, about=each)
        submitted.end()
    assert [write.method for write in submitted.writes] == ["PATCH"] * 3 + ["POST"] * 2


def test_series_that_are_not_continued_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_SERIES", 4)
    recorder, submitted, clock = make()
    for number in range(4):
        say(recorder, about=pod_reference("default", f"old-{number}", ""))
    clock.now += events.SERIES_LIFE
    new = [pod_reference("default", f"new-{number}", "") for number in range(3)]
    for each in new:
        say(recorder, about=each)
    while submitted.open:
        submitted.end()
    del submitted.writes[:]
    clock.now += events.SERIES_PAUSE
    for each in new:
        say(recorder, about=each)
        submitted.end()
    assert [write.method for write in submitted.writes] == ["PATCH"] * 3


def test_an_event_that_is_there_already_is_ours_whose_answer_was_lost() -> None:
    counted: list[str] = []
    recorder, submitted, _ = make(lambda type_, reason: counted.append(reason))
    say(recorder)
    submitted.end(AlreadyExists(Status(code=409, reason="AlreadyExists")))
    assert counted == ["FailedScheduling"]
    say(recorder)
    assert len(submitted.writes) == 1, "and is not said anew"


def test_the_same_refusal_is_complained_of_once(caplog: pytest.LogCaptureFixture) -> None:
    recorder, submitted, _ = make()
    for outcome in (BadRequest(Status(code=422)), BadRequest(Status(code=422)), Unreachable("away"), Unreachable("away")):
        say(recorder)
        submitted.end(outcome)
    warnings = [record for record in caplog.records if (record.name, record.levelno) == (events.__name__, logging.WARNING)]
    assert len(submitted.writes) == 4 and len(warnings) == 2


def test_an_old_event_that_was_not_written_does_not_end_the_series_of_a_new_one() -> None:
    recorder, submitted, clock = make()
    say(recorder, "0/1 nodes")
    clock.now += 31
    say(recorder, "0/2 nodes")
    submitted.end(Unreachable("away"))
    submitted.end()
    clock.now += 31
    say(recorder, "0/2 nodes")
    assert [write.method for write in submitted.writes] == ["POST", "POST", "PATCH"]


def test_a_repetition_that_finds_no_event_does_not_end_the_series_of_a_new_one() -> None:
    recorder, submitted, clock = make()
    for note in ("0/1 nodes", "0/1 nodes", "0/2 nodes"):
        say(recorder, note)
        clock.now += 31
    submitted.end()
    submitted.end(NotFound(Status(code=404)))
    submitted.end()
    say(recorder, "0/2 nodes")
    assert [write.method for write in submitted.writes] == ["POST", "PATCH", "POST", "PATCH"]


def test_a_repetition_that_was_not_written_is_written_with_the_next() -> None:
    recorder, submitted, clock = make()
    for outcome in (None, Unreachable("away"), None):
        say(recorder)
        submitted.end(outcome)
        clock.now += 31
    assert [write.method for write in submitted.writes] == ["POST", "PATCH", "PATCH"]


@pytest.mark.parametrize(("length", "kept"), [(1024, 1024), (1025, 1024), (5000, 1024)])
def test_a_note_uses_all_the_room_there_is(length: int, kept: int) -> None:
    assert len(truncated("x" * length).encode()) == kept
    assert truncated("x" * length).endswith(" ...") == (length > 1024)


def test_events_in_flight_are_few_and_a_long_backlog_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_WAITING", 3)
    recorder, submitted, _ = make()
    for number in range(10):
        say(recorder, about=pod_reference("default", f"p{number}", ""))
    assert (len(submitted.writes), len(recorder.outbox), recorder.outbox.dropped) == (AT_ONCE, AT_ONCE + 3, 3)


def test_a_long_instance_name_keeps_its_end() -> None:
    submitted = Submitted()
    recorder = Events(submitted.pool, instance="host" * 40 + "_7c1d")
    recorder.emit(POD, "Normal", "Scheduled", "Binding", "x")
    assert submitted.bodies()[0]["reportingInstance"].endswith("_7c1d")
