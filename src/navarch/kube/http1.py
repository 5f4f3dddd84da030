"""HTTP/1.1 replies out of bytes: the small part of the protocol that an API server's client needs, with no I/O in it.

A general HTTP client spends more time on a 200-byte reply than the API server's own handler does, and a fifth of a second on
being imported. Here is what API servers and the proxies before them send: a status line, headers of which four matter, and a
body of known length, in chunks, or up to the end of the connection. Anything else is a `ProtocolError`, never a guess.
`ReplyParser` gives short replies whole; `take_head` and `Body` give long ones as they come.
"""

from __future__ import annotations

import msgspec

from navarch.kube.errors import KubeError, parse_retry_after

MAX_HEAD = 64 * 1024


class ProtocolError(KubeError):
    """Bytes that are no HTTP/1.1 reply; the connection they came on is of no further use."""


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A complete reply. `reusable`: the connection may carry the next request."""

    status: int
    body: bytes
    retry_after: float | None = None
    reusable: bool = True


class ReplyParser:
    """Feed it what arrives on a connection that carries one request at a time; it gives the reply when complete.

    >>> parser = ReplyParser()
    >>> parser.feed(b"HTTP/1.1 201 Created\\r\\nContent-Length: 2\\r\\n\\r\\n{")
    >>> parser.feed(b"}")
    Reply(status=201, body=b'{}', retry_after=None, reusable=True)
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: Head | None = None
        self._body: Body | None = None
        self._pieces: list[bytes] = []

    @property
    def started(self) -> bool:
        """Whether part of a reply is here."""
        return bool(self._buffer) or self._head is not None

    def feed(self, data: bytes) -> Reply | None:
        if self._body is None:
            self._buffer += data
            self._head = take_head(self._buffer)
            if self._head is None:
                return None
            self._body = Body(self._head)
            data = bytes(self._buffer)
            self._buffer.clear()
        self._pieces.append(self._body.feed(data))
        return self._finish() if self._body.done else None

    def end(self) -> Reply | None:
        """The connection ended: complete a body that was to last until then; None if nothing is complete."""
        return self._finish() if self._body is not None and self._body.end() else None

    def _finish(self) -> Reply:
        head, body, pieces = self._head, self._body, self._pieces
        assert head is not None and body is not None
        self._head, self._body, self._pieces = None, None, []
        # Bytes beyond the reply to our only request are not ours.
        return Reply(head.status, b"".join(pieces), head.retry_after, head.reusable and not body.excess)


class Body:
    """The body of one reply. Feed it what follows the head; it gives back what of it is the body's.

    `done`: it is complete. `excess`: more came than belongs to it.
    """

    def __init__(self, head: Head) -> None:
        self.done = head.length == 0
        self.excess = False
        self._chunked = head.chunked
        #: Bytes still to come: of the chunk under way, or of the whole. None: whatever comes until the connection ends.
        self._left = 0 if head.chunked else head.length
        self._held = b""
        self._after_chunk = False
        self._in_trailers = False

    def feed(self, data: bytes) -> bytes:
        if self.done:
            self.excess = self.excess or bool(data)
            return b""
        if self._chunked:
            return self._without_chunks(data)
        if self._left is None:
            return data
        own = data[: self._left]
        self._left -= len(own)
        self.done = not self._left
        self.excess = len(own) < len(data)
        return own

    def end(self) -> bool:
        """The connection ended; whether the body is complete with that."""
        self.done = self.done or self._left is None
        return self.done

    def _without_chunks(self, data: bytes) -> bytes:
        """Between two chunks stand lines: the end of the one, the size of the next, and after the last the trailers."""
        if self._held:
            data, self._held = self._held + data, b""
        own: list[bytes] = []
        at, end = 0, len(data)
        while at < end and not self.done:
            if self._left:
                own.append(data[at : at + self._left])
                at += len(own[-1])
                self._left -= len(own[-1])
                self._after_chunk = not self._left
                continue
            if self._after_chunk and not b"\r\n".startswith(data[at : at + 2]):
                raise ProtocolError("expected a line end after a chunk")
            line_end = data.find(b"\r\n", at)
            if line_end < 0:
                if end - at > MAX_HEAD:
                    raise ProtocolError(f"expected a line of at most {MAX_HEAD} bytes between chunks")
                self._held = data[at:]
                break
            self._take_line(data[at:line_end])
            at = line_end + 2
        self.excess = self.done and at < end
        return own[0] if len(own) == 1 else b"".join(own)

    def _take_line(self, line: bytes) -> None:
        if self._after_chunk:
            self._after_chunk = False
        elif self._in_trailers:
            self.done = not line
        else:
            size = line.split(b";", 1)[0].strip()
            try:
                self._left = int(size, 16) if size.isalnum() else -1
            except ValueError:
                self._left = -1
            if self._left < 0:
                raise ProtocolError(f"expected a chunk's size, found {size[:20]!r}")
            self._in_trailers = not self._left


class Head(msgspec.Struct, gc=False):
    """What matters of a reply before its body. `reusable`: the connection may carry the next request after it."""

    status: int
    length: int | None
    chunked: bool
    reusable: bool
    retry_after: float | None


def take_head(buffer: bytearray) -> Head | None:
    """Cut the head of a reply off the buffer, once it is there as a whole."""
    while (end := buffer.find(b"\r\n\r\n")) >= 0:
        head = _parse_head(bytes(buffer[:end]))
        del buffer[: end + 4]
        # 1xx replies are announcements; the real one follows.
        if head.status >= 200:
            return head
    if len(buffer) > MAX_HEAD:
        raise ProtocolError(f"expected the end of a reply's headers within {MAX_HEAD} bytes")
    return None


def _parse_head(head: bytes) -> Head:
    lines = head.split(b"\r\n")
    version, _, rest = lines[0].partition(b" ")
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or not rest[:3].isdigit():
        raise ProtocolError(f"expected an HTTP/1.1 status line, found {lines[0][:60]!r}")
    status = int(rest[:3])
    parsed = Head(status, None, False, version == b"HTTP/1.1", None)
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
