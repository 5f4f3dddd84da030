"""From the body of a request to an object that may be stored: identity, normal form, names.

Everything here looks at one object alone. What depends on other objects is `admission`; what differs from kind to kind is
`strategies` and `validation`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from navarch.embedded.api.errors import ApiError, bad_request, cause, invalid
from navarch.embedded.api.kinds.crd_schema import CustomSchema
from navarch.embedded.api.kinds.normalise import Mistyped, Normaliser
from navarch.embedded.api.kinds.registry import Kind
from navarch.embedded.api.kinds.types import shape_of
from navarch.object_types import Manifest

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
LONGEST_PREFIX = 58
GENERATED_NAME_TRIES = 8


@dataclass(slots=True)
class WriteOptions:
    """What a write request asks beside its body, and the warnings that go back with the answer."""

    dry_run: bool = False
    manager: str = ""
    stated_manager: str = ""
    """The fieldManager parameter itself; `manager` falls back to the user agent."""
    field_validation: str = "Warn"
    force: bool = False
    user: str = "navarch-admin"
    warnings: list[str] = field(default_factory=list)


def read_object(kind: Kind, body: Any, options: WriteOptions) -> Manifest:
    """Check that a body is of a kind and bring it into normal form. The answer is a fresh object."""
    if not isinstance(body, dict):
        raise bad_request(f"the body of the request has to be a JSON object of kind {kind.kind}")
    _check_identity(kind, body)
    if not isinstance(body.get("metadata", {}), dict | None):
        raise bad_request(f"{kind.kind}: metadata: found {body['metadata']!r}, expected an object")
    unknown: list[str]
    try:
        if kind.definition is not None:
            obj, unknown = _read_custom(kind, body)
        else:
            normaliser = Normaliser()
            obj = normaliser.struct(body, kind.shape, "")
            unknown = normaliser.unknown
    except Mistyped as error:
        raise bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {error}') from None
    _report_unknown(kind, unknown, options)
    obj["apiVersion"] = kind.api_version
    obj["kind"] = kind.kind
    obj.setdefault("metadata", {})
    return obj


def read_typed(name: str, body: Any) -> Manifest:
    """A body of a type that is not stored (a Binding, a Scale, DeleteOptions), in normal form; 400 if it is not one.

    >>> read_typed("core.v1.Binding", {"target": {"name": "n"}})["target"]
    {'name': 'n'}
    """
    kind, version = name.rpartition(".")[2], name.split(".")[1]
    if not isinstance(body, dict):
        raise bad_request(f"the body of the request has to be a {kind} object")
    try:
        return Normaliser().struct(body, shape_of(name), "")
    except Mistyped as error:
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}') from None


def _read_custom(kind: Kind, body: Manifest) -> tuple[Manifest, list[str]]:
    definition = kind.definition
    assert definition is not None
    schema: CustomSchema = definition["schema"]
    normaliser = Normaliser()
    metadata = normaliser.struct(body.get("metadata") or {}, shape_of("meta.v1.ObjectMeta"), "metadata")
    rest = {key: value for key, value in body.items() if key not in ("metadata", "apiVersion", "kind")}
    pruned, unknown = schema.prune(rest)
    obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **pruned}
    return obj, [*normaliser.unknown, *unknown]


def _check_identity(kind: Kind, body: Manifest) -> None:
    found_version, found_kind = body.get("apiVersion"), body.get("kind")
    if kind.is_custom and not found_kind:
        raise bad_request("Object 'Kind' is missing in the body of the request")
    if (found_version or kind.api_version, found_kind or kind.kind) == (kind.api_version, kind.kind):
        return
    if kind.is_custom and found_version not in (None, "", kind.api_version):
        said = f"({found_version}) does not match the expected API version ({kind.api_version})"
        raise bad_request(f"the API version in the data {said}")
    if kind.is_custom:
        name = body["metadata"].get("name", "") if isinstance(body.get("metadata"), dict) else ""
        why = [cause("FieldValueInvalid", f'Invalid value: "{found_kind}": must be {kind.kind}', "kind")]
        raise invalid(str(found_kind), kind.group, str(name), why)
    version = str(found_version or kind.api_version).rpartition("/")[2]
    said = f'no kind "{found_kind}" is registered for version "{found_version}"'
    raise bad_request(f'{found_kind} in version "{version}" cannot be handled as a {kind.kind}: {said}')


def _report_unknown(kind: Kind, unknown: list[str], options: WriteOptions) -> None:
    if not unknown or options.field_validation == "Ignore":
        return
    said = [f'unknown field "{path}"' for path in sorted(unknown)]
    if options.field_validation == "Strict":
        lead = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
        raise bad_request(f"{lead}strict decoding error: {', '.join(said)}")
    options.warnings.extend(said)


def generated_name(prefix: str) -> str:
    """A name for `metadata.generateName`: the prefix, cut to fit, and five letters without vowels or look-alikes."""
    return prefix[:LONGEST_PREFIX] + "".join(secrets.choice(SUFFIX_LETTERS) for _ in range(5))


def place(kind: Kind, obj: Manifest, namespace: str) -> None:
    """Put the object into the namespace of the request; 400 if it says that it belongs elsewhere."""
    metadata = obj["metadata"]
    found = metadata.get("namespace") or ""
    if kind.namespaced:
        if not namespace:
            raise bad_request("an empty namespace may not be set during creation")
        if found and found != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = namespace
    elif found:
        raise bad_request("namespace can not be set on a cluster-scoped object")
    else:
        metadata.pop("namespace", None)


def name_missing(kind: Kind) -> ApiError:
    message = "Required value: name or generateName is required"
    return invalid(kind.kind, kind.group, "", [cause("FieldValueRequired", message, "metadata.name")])
