"""The reply parser: every way to delimit a body, cut at every byte."""

from __future__ import annotations

import pytest

from navarch.kube.write.http1 import MAX_HEAD, ProtocolError, Reply, ReplyParser

PLAIN = b'HTTP/1.1 201 Created\r\ncontent-length: 13\r\nContent-Type: application/json\r\n\r\n{"a": [1, 2]}'
CHUNKED = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n3;x=y\r\n 1}\r\n0\r\n\r\n'
TRAILED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n"
ANNOUNCED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
CLOSING = b"HTTP/1.1 503 Unavailable\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"
HINTED = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
LARGE = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1A \r\n" + b"x" * 26 + b"\r\n0\r\n\r\n"
BOTH = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: identity, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
BODILESS = b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"
UNCHANGED = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 40\r\n\r\n"
OLD = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"
OLD_KEPT = b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}"
LOUD = b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 2\r\nCONNECTION: Close\r\n\r\n{}"


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (PLAIN, Reply(201, b'{"a": [1, 2]}')),
        (CHUNKED, Reply(200, b'{"a": 1}')),
        (TRAILED, Reply(200, b"{}")),
        (ANNOUNCED, Reply(429, b"", retry_after=2.0)),
        (EMPTY, Reply(204, b"")),
        (CLOSING, Reply(503, b"no", reusable=False)),
        (HINTED, Reply(200, b"{}")),
        (LARGE, Reply(200, b"x" * 26)),
        (BOTH, Reply(200, b"{}")),
        (BODILESS, Reply(204, b"")),
        (UNCHANGED, Reply(304, b"")),
        (OLD, Reply(200, b"{}", reusable=False)),
        (OLD_KEPT, Reply(200, b"{}")),
        (LOUD, Reply(200, b"{}", reusable=False)),
    ],
    ids=[
        "plain",
        "chunked",
        "trailers",
        "100-continue",
        "204",
        "connection-close",
        "103-early-hints",
        "size-in-hex",
        "chunks-go-before-length",
        "204-has-no-chunks",
        "304-has-no-body",
        "1.0-closes",
        "1.0-keep-alive",
        "capitals",
    ],
)
def test_a_reply_in_pieces_of_any_size(wire: bytes, expected: Reply) -> None:
    for size in range(1, len(wire) + 1):
        parser = ReplyParser()
        pieces = [wire[start : start + size] for start in range(0, len(wire), size)]
        replies = [parser.feed(piece) for piece in pieces]
        assert replies[:-1] == [None] * (len(pieces) - 1)
        assert replies[-1] == expected
        assert not parser.started


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_body_that_lasts_until_the_connection_ends(version: bytes) -> None:
    parser = ReplyParser()
    assert parser.feed(b"HTTP/" + version + b" 500 Oops\r\n\r\nproxy says ") is None
    assert parser.feed(b"no") is None
    assert parser.end() == Reply(500, b"proxy says no", reusable=False)


@pytest.mark.parametrize("wire", [PLAIN[:-1], CHUNKED[:-1], PLAIN[:10]], ids=["length", "chunks", "head"])
def test_an_end_in_the_middle_is_no_reply(wire: bytes) -> None:
    parser = ReplyParser()
    assert parser.feed(wire) is None
    assert parser.started and parser.end() is None


def test_two_replies_one_after_the_other() -> None:
    parser = ReplyParser()
    assert parser.feed(PLAIN) is not None
    second = parser.feed(CHUNKED)
    assert second is not None and second.body == b'{"a": 1}'


def test_bytes_after_the_reply_make_the_connection_unfit() -> None:
    reply = ReplyParser().feed(PLAIN + b"HTTP/1.1")
    assert reply is not None and not reply.reusable


@pytest.mark.parametrize(
    "wire",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 2xx OK\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        *(CHUNKED.replace(b"5\r\n", size + b"\r\n") for size in (b"-5", b"+5", b"0x5", b"0_5", b"", b"0" * 17)),
        b"x" * (MAX_HEAD + 1),
    ],
)
def test_bytes_that_are_no_http_are_refused(wire: bytes) -> None:
    with pytest.raises(ProtocolError):
        ReplyParser().feed(wire)
