"""One page of a list as an API server sends it."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from navarch.kube.watch.decoding import decoded

T = TypeVar("T")
HEAD_BYTES = 4096
"""Where the items of a list begin, if its metadata come first."""
_ITEMS = b',"items":['


class ListMeta(msgspec.Struct, frozen=True, gc=False):
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    next: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct, Generic[T]):
    """`items` may be null on the wire (Go's nil slice)."""

    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class _Head(msgspec.Struct):
    metadata: ListMeta = ListMeta()


_HEAD = msgspec.json.Decoder(_Head)


def list_metadata(body: bytes, path: str) -> ListMeta:
    """The metadata of a page. API servers write those of built-in kinds before the items; then the items are not read."""
    end = body.find(_ITEMS, 0, HEAD_BYTES)
    if end >= 0:
        try:
            head = _HEAD.decode(body[:end] + b"}").metadata
            if head.resource_version:
                return head
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # those bytes stand inside of something else
    found: _Head = decoded(_HEAD, body, "GET", path, whole=False)
    return found.metadata
