"""Bytes that a broken middlebox or a hostile client sends: a stream breaks, an object is refused, nothing else is raised."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds.kube.watching import Metadata, Pod

from navarch.apis.core.kept_objects import KeptObject
from navarch.kube.errors import OutcomeUnknown, status_from_body
from navarch.kube.watch.decoding import BadObject, BrokenStream, Change, ObjectDecoder, decoded

LINE = b'{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"d","uid":"u","resourceVersion":"5"},"spec":{"nodeName":"n"}}}\n'
BOOKMARK = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6"}}}\n'
ERROR = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}\n'


@pytest.mark.parametrize(
    "line",
    [
        LINE.replace(b'"n"', b'"\xff"'),
        LINE.replace(b'"a"', b'"\xc3("'),
        BOOKMARK.replace(b'"6"', b'"\xfe"'),
        ERROR.replace(b"old", b"\x80"),
        LINE.replace(b"ADDED", b"ADD\xffD"),
    ],
)
def test_a_line_that_is_not_utf8_breaks_the_stream(line: bytes) -> None:
    with pytest.raises(BrokenStream):
        ObjectDecoder(Pod).feed(LINE + line)


def test_an_item_of_a_list_is_read_with_replacement_characters() -> None:
    """A list is what a broken stream falls back to. It must not fail for one object for ever."""
    raw = b'{"metadata":{"name":"c","namespace":"d"},"spec":{"parameters":"a\xffb"}}'
    found = ObjectDecoder(KeptObject).item(msgspec.Raw(raw))
    assert isinstance(found, KeptObject) and found.spec == {"parameters": "a\ufffdb"}


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(LINE + BOOKMARK + ERROR) - 1), st.binary(min_size=1, max_size=3))
def test_whatever_bytes_change_a_stream_breaks_or_gives_events(at: int, bytes_: bytes) -> None:
    stream = LINE + BOOKMARK + ERROR
    damaged = stream[:at] + bytes_ + stream[at + len(bytes_) :]
    try:
        events = ObjectDecoder(Pod, lambda raw, error: Pod(Metadata(str(msgspec.json.decode(raw))))).feed(damaged)
    except BrokenStream:
        return
    assert all(event is not None for event in events)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 80), st.binary(min_size=1, max_size=3))
def test_whatever_bytes_change_an_item_is_read_or_bad(at: int, bytes_: bytes) -> None:
    good = b'{"metadata":{"name":"a","namespace":"d","uid":"u"},"spec":{"nodeName":"n","priority":1}}'
    damaged = good[:at] + bytes_ + good[at + len(bytes_) :]
    try:
        msgspec.json.decode(damaged, type=msgspec.Raw)
    except msgspec.DecodeError:
        return  # the page that holds it is not JSON
    assert isinstance(ObjectDecoder(Pod).item(msgspec.Raw(damaged)), Pod | BadObject)


ITEM = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": st.sampled_from(["a", 'b"},{"metadata":{', "c"])}),
        "spec": st.sampled_from([{"nodeName": "n"}, {"nodeName": 5}, {"priority": 3}]),
        "owned": st.lists(st.sampled_from([{"metadata": {"x": 1}}, {"items": [{"metadata": {}}, {"metadata": {}}]}, 7]), max_size=4),
    }
)


@settings(max_examples=300, deadline=None)
@given(st.lists(ITEM, max_size=12), st.booleans(), st.integers(0, 200))
def test_a_page_is_the_same_in_pieces_of_any_size(items: list[dict[str, Any]], metadata_first: bool, size: int) -> None:
    page: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "items": items}
    body = msgspec.json.encode(page if metadata_first else dict(reversed(page.items())))
    found = []
    for piece in (size, len(body)):
        with patch("navarch.kube.watch.decoding.PIECE", piece):
            items_found = ObjectDecoder(Pod).page(body, "/pods")
            assert list(map(_told, items_found)) == list(map(_told, items_found)), "it can be read again"
            found.append(list(map(_told, items_found)))
    assert found[0] == found[1] and len(found[0]) == len(items)


def _told(item: Pod | BadObject) -> object:
    return (item.metadata.name, str(item.error)) if isinstance(item, BadObject) else item


def test_good_lines_are_read_in_one_pass() -> None:
    (event,) = ObjectDecoder(Pod).feed(LINE)
    assert isinstance(event, Change) and event.object.spec.node_name == "n"


def test_a_reply_that_is_not_utf8_has_an_unknown_outcome() -> None:
    with pytest.raises(OutcomeUnknown):
        decoded(msgspec.json.Decoder(dict[str, str]), b'{"a":"\xff"}', "GET", "/x")


def test_a_list_is_read_although_one_of_its_objects_is_not_utf8() -> None:
    found = decoded(msgspec.json.Decoder(list[str]), b'["a","\xff"]', "GET", "/x", whole=False)
    assert found == ["a", "\ufffd"]


def test_a_refusal_that_is_not_utf8_is_told_by_its_text() -> None:
    status = status_from_body(403, b'{"kind":"Status","message":"no\xff"}')
    assert (status.code, status.reason) == (403, "Forbidden") and "no\ufffd" in status.message
