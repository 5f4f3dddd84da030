"""The fields of Kubernetes objects that scheduling reads, as msgspec Structs.

One set of Structs serves files (`from_manifest`, from decoded mappings) and the live watch (`msgspec.json.Decoder`). A field that is
not named here costs nothing. Absent and null are None; an empty mapping or list is not None. The API distinguishes them:
`labelSelector: {}` selects everything, no `labelSelector` selects nothing.

Structs hold no reference cycles, so the garbage collector skips them (`gc=False`). Otherwise a hundred thousand pods make every full
collection slow.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from navarch.apis.errors import QUANTITY, ObjectError, from_validation, shown
from navarch.model.quantity import QuantityError, parse_nano
from navarch.model.spec import NO_LABELS, Labels

T = TypeVar("T")
Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""Numbers as the API bounds them. A larger one does not fit a column."""
Quantity = str | Int64 | float | None
ResourceList = dict[str, Quantity]
_NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._:]*")


class Part(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A part of an object: immutable, camel case in JSON, unknown fields skipped."""


class OwnerReference(Part, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(Part, frozen=True):
    name: str = ""
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: datetime.datetime | None = None
    deletion_timestamp: datetime.datetime | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    generation: int | None = None

    @property
    def created(self) -> float:
        return seconds(self.creation_timestamp)

    @property
    def label_map(self) -> Labels:
        return self.labels or NO_LABELS

    @property
    def annotation_map(self) -> Labels:
        return self.annotations or NO_LABELS

    @property
    def controller(self) -> tuple[str, str, str] | None:
        """(kind, name, uid) of the owner that manages this object."""
        for owner in self.owner_references or ():
            if owner.controller:
                return owner.kind, owner.name, owner.uid
        return None


class KubeObject(Part, frozen=True):
    """The fields of every object. Kind and version are empty in items of a typed list."""

    api_version: str = ""
    kind: str = ""
    metadata: Metadata = Metadata()


class LabelSelectorRequirement(Part, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelectorPart(Part, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


def seconds(moment: datetime.datetime | None) -> float:
    """Seconds since the epoch; an absent or zero time is 0. A time without zone is UTC."""
    if moment is None:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    found = moment.timestamp()
    return found if found > 0.0 else 0.0


def from_manifest(manifest: Mapping[str, Any], type_: type[T]) -> T:
    """The Struct of a decoded manifest. A value that does not fit raises an `ObjectError` that names the field.

    >>> from_manifest({"metadata": {"name": "a", "labels": {"tier": 1}}}, KubeObject)
    Traceback (most recent call last):
    ...
    navarch.apis.errors.ObjectError: Object a: metadata.labels[tier]: found 1, expected text
    """
    try:
        return msgspec.convert(manifest, type_, strict=False)
    except msgspec.ValidationError as error:
        raise from_validation(error, manifest, *identity(manifest)) from None


def identity(manifest: object) -> tuple[str, str]:
    """Kind and namespace/name of a manifest for messages, however broken it is."""
    if not isinstance(manifest, Mapping):
        return "Object", "?"
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    kind, namespace = manifest.get("kind") or "Object", metadata.get("namespace")
    name = _text(metadata.get("name") or metadata.get("generateName") or "?")
    return _text(kind), f"{_text(namespace)}/{name}" if namespace else name


def _text(value: object) -> str:
    return value if isinstance(value, str) else shown(value)


def check_name(kind: str, metadata: Metadata) -> None:
    """Raises `ObjectError` for a name or namespace that no API server stores. Both become parts of paths and of bodies.

    >>> check_name("Pod", Metadata(name="a", namespace="tëam"))
    Traceback (most recent call last):
    ...
    navarch.apis.errors.ObjectError: Pod tëam/a: metadata.namespace: found 'tëam', expected ASCII letters, digits, '-', '.' or ':'
    """
    if _NAME.fullmatch(metadata.name) and (not metadata.namespace or _NAME.fullmatch(metadata.namespace)):
        return
    for field, value in (("name", metadata.name), ("namespace", metadata.namespace)):
        if value and _NAME.fullmatch(value) is None:
            name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
            raise ObjectError(kind, name, f"metadata.{field}", shown(value), "ASCII letters, digits, '-', '.' or ':'")


def nano_of(quantity: Quantity, kind: str, name: str, path: str) -> int:
    """The exact amount, or an `ObjectError` at this field."""
    try:
        return parse_nano(quantity)
    except QuantityError as error:
        raise ObjectError(kind, name, path, repr(quantity), QUANTITY) from error
