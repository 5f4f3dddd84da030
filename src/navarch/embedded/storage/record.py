"""What the store keeps of an object, and the event of a change.

A stored object is its JSON bytes, made once: a GET, a list and every watcher send those bytes. The decoded dict is ten times
larger, so only the newest records keep theirs; `obj` decodes an older one again. Labels and selectable fields are extracted at the
write, so selectors never decode.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from navarch.object_types import Manifest

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

NO_LABELS: dict[str, str] = {}


class Record:
    """One version of one object. Never changes; a write makes a new one."""

    __slots__ = ("_obj", "fields", "key", "labels", "name", "namespace", "raw", "resource", "revision", "uid")

    def __init__(self, resource: str, obj: Manifest, revision: int, fields: tuple[str, ...] = (), raw: bytes = b""):
        metadata = obj["metadata"]
        self.resource = resource
        self.namespace: str = metadata.get("namespace") or ""
        self.name: str = metadata["name"]
        self.key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        self.uid: str = metadata.get("uid") or ""
        self.revision = revision
        self.labels: dict[str, str] = metadata.get("labels") or NO_LABELS
        self.fields = fields
        self.raw: bytes = raw or _encode(obj)
        self._obj: Manifest | None = obj

    @property
    def obj(self) -> Manifest:
        """The object, shared and to be read only. Use `decode` for one to change."""
        return self._obj if self._obj is not None else self.decode()

    def decode(self) -> Manifest:
        """A fresh copy that is the caller's own (about 10 us for a pod; cheaper than a deep copy)."""
        obj: Manifest = _decode(self.raw)
        return obj

    def forget(self) -> None:
        """Give back the memory of the decoded form."""
        self._obj = None

    def __repr__(self) -> str:
        return f"Record({self.resource} {self.key} @{self.revision})"


@dataclass(slots=True, eq=False)
class Event:
    """One change of one object. For DELETED, `record` is the last state with the revision of the deletion."""

    type: EventType
    record: Record
    previous: Record | None
    time: float
    lines: dict[str, bytes] = field(default_factory=dict)
    """Encoded watch lines by served version; filled by the first watcher that needs one."""
    views: dict[str, Event] = field(default_factory=dict)
    """This change as ADDED or DELETED, for watches whose selector the object enters or leaves."""

    @property
    def revision(self) -> int:
        return self.record.revision

    @property
    def obj(self) -> Manifest:
        return self.record.obj
