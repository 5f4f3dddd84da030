"""From the bytes of a watch or a list to typed objects. Objects that cannot be decoded become `BadObject`.

The caller's type is decoded in one pass from the wire, a whole chunk of lines in one call into C. Only if that fails is the chunk
decoded line by line: bookmarks, errors and bad objects are rare and may be slow. A bad object is valid JSON that does not have the
caller's type. Its metadata is decoded on its own, so that its deletion can be recognised. Bytes in a watch that are not JSON or not
UTF-8 mean a broken stream (`BrokenStream`), not a bad object: the informer lists again. In a list such an item is read or refused by
itself, because free-form fields (the parameters of a ResourceClaim) may hold any bytes that a client wrote.

`salvage` may make an object from the readable part of a bad one, for objects that must not be lost; None: it cannot.

An API server stores values that are nested ten thousand levels deep where a kind has free-form fields (the parameters of a
ResourceClaim), and a recursive decoder cannot read them. No field that is read is so deep: `shallow` drops it.

A reply that does not have the expected form (`decoded`) comes from a proxy before the server, for example as an HTML page. The outcome
of the request is then unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from navarch.kube.errors import KubeError, OutcomeUnknown, Status
from navarch.object_types import ObjectKey

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
DEEPEST = 100
PIECE = 32 * 1024
"""Bytes of a page that are decoded together, and then the rest of the item in which they end."""
_ITEMS = b'"items":['
_BETWEEN_ITEMS = b'},{"metadata":{'
"""How an API server ends an item of a built-in kind and begins the next."""
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError)
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]')


class Metadata(Protocol):
    """The attributes that an informer needs; a caller's Struct must have them."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str | None: ...
    @property
    def uid(self) -> str | None: ...
    @property
    def resource_version(self) -> str | None: ...


class HasMetadata(Protocol):
    @property
    def metadata(self) -> Metadata: ...


T = TypeVar("T", bound=HasMetadata)


class ObjectMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The metadata of an object whose rest could not be decoded."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class BrokenStream(KubeError):
    """Bytes in a watch that are not lines of JSON in UTF-8."""


class Change(msgspec.Struct, Generic[T], gc=False):
    """An object was added, modified or deleted."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: T


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """All changes up to this version have been sent. `initial_end`: the initial events of a WatchList are complete."""

    resource_version: str
    initial_end: bool


class Failure(msgspec.Struct, frozen=True):
    """The server ended the watch with an ERROR event."""

    status: Status


class BadObject(msgspec.Struct, frozen=True):
    """An object that is not of the caller's type. `type` is the event's; a list's items count as ADDED."""

    type: str
    metadata: ObjectMetadata
    error: Exception


class _BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _BookmarkObject(msgspec.Struct):
    metadata: _BookmarkMetadata


class _MetadataOnly(msgspec.Struct):
    metadata: ObjectMetadata


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Page(msgspec.Struct, Generic[T]):
    """`items` may be null on the wire (Go's nil slice)."""

    items: list[T] | None = None


class _RawPage(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


_RAW_PAGE = msgspec.json.Decoder(_RawPage)
_RAW_EVENT = msgspec.json.Decoder(_RawEvent)
_BOOKMARK = msgspec.json.Decoder(_BookmarkObject)
_METADATA = msgspec.json.Decoder(_MetadataOnly)
_STATUS = msgspec.json.Decoder(Status)


Event = Change[T] | Bookmark | Failure | BadObject
Salvage = Callable[[bytes, Exception], T | None]


class _PageItems(Generic[T]):
    """Iterates over what `read()` gives, anew each time."""

    def __init__(self, read: Callable[[], Iterator[T | BadObject]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[T | BadObject]:
        return self._read()


class ObjectDecoder(Generic[T]):
    """Decodes one kind. Its only state is an unfinished line: use one decoder for each stream (`restart`)."""

    def __init__(self, kind: type[T], salvage: Salvage[T] | None = None) -> None:
        self._salvage = salvage
        self._kind = kind
        self._tail: list[bytes] = []

    # A decoder of a large type takes a millisecond to make, and many kinds are never read: they are not served.

    @cached_property
    def _object(self) -> msgspec.json.Decoder[T]:
        return msgspec.json.Decoder(self._kind)

    @cached_property
    def _change(self) -> msgspec.json.Decoder[Change[T]]:
        return msgspec.json.Decoder(Change[self._kind])  # type: ignore[name-defined]

    @cached_property
    def _page(self) -> msgspec.json.Decoder[_Page[T]]:
        return msgspec.json.Decoder(_Page[self._kind])  # type: ignore[name-defined]

    def restart(self) -> None:
        """A new stream begins: forget an unfinished line."""
        self._tail.clear()

    def feed(self, chunk: bytes) -> Sequence[Event[T]]:
        """The events completed by this piece of the stream. Cost: about 10 us for a pod of 5 KB."""
        end = chunk.rfind(b"\n")
        if end < 0:
            self._tail.append(chunk)
            return []
        lines = chunk[: end + 1]
        if self._tail:
            lines = b"".join([*self._tail, lines])
            self._tail.clear()
        if end + 1 < len(chunk):
            self._tail.append(chunk[end + 1 :])
        try:
            return self._change.decode_lines(lines)
        except (*_NOT_JSON, RecursionError):
            return [self._line(line) for line in lines.splitlines() if line]

    def page(self, body: bytes, path: str) -> Iterable[T | BadObject]:
        """The items of a page of a list, decoded while they are read and again each time that they are read."""
        return _PageItems(lambda: self._pieces(body, path))

    def _pieces(self, body: bytes, path: str) -> Iterator[T | BadObject]:
        """Decode a page in pieces: a piece that fits into the processor's cache, and is read before the next one is decoded, costs
        half as much. Cutting the page elsewhere than between two items leaves a bracket open, so what is not cut right cannot be
        decoded, and the rest of the page is decoded at once."""
        begin = start = body.find(_ITEMS) + len(_ITEMS)
        while begin >= len(_ITEMS) and (cut := body.find(_BETWEEN_ITEMS, start + PIECE)) >= 0:
            try:
                found = self._page.decode(b"{%b%b]}" % (_ITEMS, body[start : cut + 1])).items or ()
            except (*_NOT_JSON, RecursionError):
                break
            yield from found
            start = cut + 2
        yield from self._at_once(body if start == begin else b"{%b%b" % (_ITEMS, body[start:]), path)

    def _at_once(self, body: bytes, path: str) -> Sequence[T | BadObject]:
        try:
            return self._page.decode(body).items or ()
        except (*_NOT_JSON, RecursionError):
            items: list[msgspec.Raw] = decoded(_RAW_PAGE, body, "GET", path, whole=False).items or []
            return [self.item(raw) for raw in items]

    def item(self, raw: msgspec.Raw) -> T | BadObject:
        """One item of a list."""
        try:
            return self._object.decode(raw)
        except UnicodeDecodeError:
            return self.item(msgspec.Raw(bytes(raw).decode("utf-8", "replace").encode()))
        except msgspec.DecodeError as error:
            saved = self._saved(bytes(raw), error)
            return saved if saved is not None else BadObject("ADDED", _metadata(raw), error)
        except RecursionError:
            return self.item(msgspec.Raw(shallow(bytes(raw))))

    def _saved(self, raw: bytes, error: Exception) -> T | None:
        if self._salvage is None:
            return None
        try:
            try:
                return self._salvage(raw, error)
            except RecursionError:
                return self._salvage(shallow(raw), error)
        except _NOT_JSON:
            return None  # for example a number that is too large for any type

    def _line(self, line: bytes) -> Event[T]:
        try:
            return self._event(line)
        except RecursionError:
            return self._event(shallow(line))

    def _event(self, line: bytes) -> Event[T]:
        try:
            return self._change.decode(line)
        except msgspec.ValidationError:
            return self._other(line)
        except _NOT_JSON as error:
            raise BrokenStream(f"watch: expected a line of JSON: {error}; found {line[:80]!r}") from error

    def _other(self, line: bytes) -> Event[T]:
        try:
            event = _RAW_EVENT.decode(line)
            if event.type == "BOOKMARK":
                metadata = _BOOKMARK.decode(event.object).metadata
                ended = (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"
                return Bookmark(metadata.resource_version, ended)
            if event.type == "ERROR":
                return Failure(_STATUS.decode(event.object))
        except _NOT_JSON as broken:
            raise BrokenStream(f"watch: expected an event: {broken}; found {line[:80]!r}") from broken
        if event.type not in ("ADDED", "MODIFIED", "DELETED"):
            raise BrokenStream(f"watch: expected an event's type, found {event.type!r}")
        item = self.item(event.object)
        if isinstance(item, BadObject):
            return BadObject(event.type, item.metadata, item.error)
        return Change(event.type, item)  # type: ignore[arg-type]


def _metadata(raw: msgspec.Raw) -> ObjectMetadata:
    try:
        return _METADATA.decode(raw).metadata
    except _NOT_JSON:
        # Without a name the object cannot be identified, only reported.
        return ObjectMetadata()


def shallow(json: bytes) -> bytes:
    """The same JSON with `null` for values nested deeper than `DEEPEST`. Slow: only for JSON that the decoder refused.

    >>> len(shallow(b"[" * 5000 + b"]" * 5000))
    204
    """
    kept: list[bytes] = []
    since = depth = 0
    for token in _TOKEN.finditer(json):
        match token[0]:
            case b"[" | b"{":
                depth += 1
                if depth == DEEPEST + 1:
                    kept += [json[since : token.start()], b"null"]
            case b"]" | b"}":
                if depth == DEEPEST + 1:
                    since = token.end()
                depth -= 1
    return b"".join([*kept, json[since:]]) if depth == 0 else json


def key_of(metadata: Metadata) -> ObjectKey:
    """Namespace and name of an object."""
    return (metadata.namespace or "", metadata.name)


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes, method: str, path: str, *, whole: bool = True) -> Any:
    """The body of a reply. Raises `OutcomeUnknown` if it is something else. `whole` False: the result is only read and never sent
    back, so it may lack values that are nested too deep, and have replacement characters for bytes that are not UTF-8."""
    try:
        return decoder.decode(body)
    except RecursionError as error:
        if not whole:
            return decoded(decoder, shallow(body), method, path)
        raise OutcomeUnknown("a reply that is nested too deep to be read", method=method, path=path) from error
    except _NOT_JSON as error:
        if not whole and isinstance(error, UnicodeDecodeError):
            return decoded(decoder, body.decode("utf-8", "replace").encode(), method, path, whole=False)
        raise OutcomeUnknown(f"a reply that cannot be read: {error}; found {body[:80]!r}", method=method, path=path) from error
