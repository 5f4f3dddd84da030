"""One page of a list as an API server sends it.

A list says its kind and its resourceVersion. What does not is no list: an empty one that a proxy made would have the objects of a
whole cluster forgotten.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from navarch.kube.answers import is_plural_of, target_of
from navarch.kube.errors import OutcomeUnknown
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
    kind: str = ""
    metadata: ListMeta = ListMeta()


_HEAD = msgspec.json.Decoder(_Head)


def list_metadata(body: bytes, path: str) -> ListMeta:
    """The metadata of a page. API servers write those of built-in kinds before the items; then the items are not read. Raises
    OutcomeUnknown if the body is no list of what the path names."""
    head = _head(body, path)
    plural = target_of(path).plural
    if not head.kind.endswith("List") or not is_plural_of(plural, head.kind.removesuffix("List")):
        raise OutcomeUnknown(f"expected a list of {plural}, found {body[:80]!r}", method="GET", path=path)
    if not head.metadata.resource_version:
        raise OutcomeUnknown(f"expected a list with a resourceVersion, found {body[:80]!r}", method="GET", path=path)
    return head.metadata


def _head(body: bytes, path: str) -> _Head:
    end = body.find(_ITEMS, 0, HEAD_BYTES)
    if end >= 0:
        try:
            head = _HEAD.decode(body[:end] + b"}")
            if head.metadata.resource_version and head.kind:
                return head
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # those bytes stand inside of something else
    found: _Head = decoded(_HEAD, body, "GET", path, whole=False)
    return found
