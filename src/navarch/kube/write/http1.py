"""A parser of HTTP/1.1 replies: the part of the protocol that short JSON writes need, without I/O.

A general HTTP client takes more time for a 200-byte reply than the API server. This parser handles what API servers and proxies
send: a status line, headers (four of them are read), and a body of known length, in chunks, or up to the end of the connection.
Anything else is a `ProtocolError`.
"""

from __future__ import annotations

import re

import msgspec

from navarch.kube.errors import KubeError, parse_retry_after

MAX_HEAD = 64 * 1024
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
"""Digits of a size; `int` would also accept a sign, 0x and underscores."""


class ProtocolError(KubeError):
    """Bytes that are not an HTTP/1.1 reply; their connection must be closed."""


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A complete reply. `reusable`: the connection may carry the next request."""

    status: int
    body: bytes
    retry_after: float | None = None
    reusable: bool = True


class ReplyParser:
    """Parses the bytes of a connection that carries one request at a time; returns the reply when it is complete.

    >>> parser = ReplyParser()
    >>> parser.feed(b"HTTP/1.1 201 Created\\r\\nContent-Length: 2\\r\\n\\r\\n{")
    >>> parser.feed(b"}")
    Reply(status=201, body=b'{}', retry_after=None, reusable=True)

    `head_only`: the reply is complete with its headers, whatever they say of a body. So it is with CONNECT.
    """

    def __init__(self, *, head_only: bool = False) -> None:
        self._head_only = head_only
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._body: list[bytes] = []

    @property
    def started(self) -> bool:
        """Whether a part of a reply has arrived."""
        return bool(self._buffer) or self._head is not None

    def feed(self, data: bytes) -> Reply | None:
        self._buffer += data
        while self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > MAX_HEAD:
                    raise ProtocolError(f"expected the end of a reply's headers within {MAX_HEAD} bytes")
                return None
            head = _parse_head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
            # The final reply follows a 1xx reply.
            if head.status >= 200:
                self._head = head
        if self._head_only:
            return self._finish()
        if self._head.chunked:
            return self._finish() if self._take_chunks() else None
        length = self._head.length
        if length is None or len(self._buffer) < length:
            return None
        self._body.append(bytes(self._buffer[:length]))
        del self._buffer[:length]
        return self._finish()

    def end(self) -> Reply | None:
        """The connection ended: complete a body without a length; None if no reply is complete."""
        if self._head is None or self._head.chunked or self._head.length is not None:
            return None
        self._body.append(bytes(self._buffer))
        self._buffer.clear()
        return self._finish()

    def _finish(self) -> Reply:
        head, self._head = self._head, None
        assert head is not None
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        # Bytes after the reply to the only request are an error.
        return Reply(head.status, body, head.retry_after, head.reusable and not self._buffer)

    def _take_chunks(self) -> bool:
        """Move complete chunks from the buffer to the body; returns whether the last one was among them."""
        buffer = self._buffer
        while (end := buffer.find(b"\r\n")) >= 0:
            size_text = bytes(buffer[:end]).split(b";", 1)[0].strip()
            if not _CHUNK_SIZE.fullmatch(size_text):
                raise ProtocolError(f"expected a chunk's size, found {size_text[:20]!r}")
            size = int(size_text, 16)
            if size == 0:
                return self._take_trailers(end)
            if len(buffer) < end + 2 + size + 2:
                return False
            self._body.append(bytes(buffer[end + 2 : end + 2 + size]))
            if buffer[end + 2 + size : end + 4 + size] != b"\r\n":
                raise ProtocolError("expected a line end after a chunk")
            del buffer[: end + 4 + size]
        return False

    def _take_trailers(self, end: int) -> bool:
        """Skip the trailers after the last chunk, up to an empty line."""
        if self._buffer[end : end + 4] == b"\r\n\r\n":
            del self._buffer[: end + 4]
            return True
        finish = self._buffer.find(b"\r\n\r\n", end)
        if finish < 0:
            return False
        del self._buffer[: finish + 4]
        return True


class _Head(msgspec.Struct, gc=False):
    status: int
    length: int | None
    chunked: bool
    reusable: bool
    retry_after: float | None


def _parse_head(head: bytes) -> _Head:
    lines = head.split(b"\r\n")
    version, _, rest = lines[0].partition(b" ")
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or not rest[:3].isdigit():
        raise ProtocolError(f"expected an HTTP/1.1 status line, found {lines[0][:60]!r}")
    status = int(rest[:3])
    parsed = _Head(status, None, False, version == b"HTTP/1.1", None)
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name == b"content-length":
            if not value.strip().isdigit():
                raise ProtocolError(f"expected a number as Content-Length, found {value[:20]!r}")
            parsed.length = int(value)
        elif name == b"transfer-encoding":
            parsed.chunked = value.strip().lower().endswith(b"chunked")
        elif name == b"connection":
            parsed.reusable = value.strip().lower() != b"close"
        elif name == b"retry-after":
            parsed.retry_after = parse_retry_after(value.decode("latin-1").strip())
    if status in (204, 304):
        parsed.length, parsed.chunked = 0, False
    elif not parsed.chunked and parsed.length is None:
        parsed.reusable = False
    return parsed
