"""CustomResourceDefinitions: each makes a kind, at once, and takes it away again with all its objects.

Conversion is by name only (strategy None): the versions of a kind share their storage and differ in `apiVersion`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from navarch.embedded.api.errors import cause, invalid
from navarch.embedded.api.kinds.crd_schema import CustomSchema
from navarch.embedded.api.kinds.registry import Kind, fields_reader
from navarch.embedded.api.operations import Operations
from navarch.embedded.api.validation.names import is_dns_label, is_subdomain
from navarch.embedded.api.writing import WriteOptions
from navarch.embedded.storage.record import Event, Record
from navarch.embedded.storage.store import timestamp
from navarch.object_types import Manifest

RESOURCE = "customresourcedefinitions.apiextensions.k8s.io"
VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
OBJECT_VERBS = ("get", "patch", "update")


class CustomKinds:
    """Keeps the registry in step with the stored definitions."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._store = operations.store
        operations.hooks[RESOURCE] = self._prepare
        for record in self._store.list(RESOURCE):
            self._establish(record)
        self._store.observe(self._follow)

    def _follow(self, event: Event) -> None:
        if event.record.resource != RESOURCE:
            return
        if event.type == "DELETED":
            self._retire(event.record)
        else:
            self._establish(event.record)

    def _prepare(self, kind: Kind, obj: Manifest, old: Manifest | None, options: WriteOptions) -> None:
        """Before a definition is stored: refuse nonsense, accept its names, call it established."""
        spec = obj["spec"]
        names = spec["names"]
        causes = list(_faults(obj)) + list(self._name_faults(obj))
        if causes:
            raise invalid("CustomResourceDefinition", kind.group, obj["metadata"]["name"], causes)
        if old is None or not (old.get("status") or {}).get("conditions"):
            now = timestamp(self._store.clock())
            obj["status"] = {
                "acceptedNames": names,
                "conditions": [
                    _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                    _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
                ],
                "storedVersions": [each["name"] for each in spec["versions"] if each.get("storage")],
            }
        else:
            obj["status"] = {**old["status"], "acceptedNames": names}

    def _name_faults(self, obj: Manifest) -> Iterator[Manifest]:
        group, names = obj["spec"].get("group", ""), obj["spec"]["names"]
        for version in obj["spec"].get("versions") or ():
            found = self._operations.registry.find(group, version.get("name", ""), names.get("plural", ""))
            if found is not None and not found.is_custom:
                message = f'Invalid value: "{names.get("plural")}": is served by a built-in kind of {group}'
                yield cause("FieldValueInvalid", message, "spec.names.plural")

    def _establish(self, record: Record) -> None:
        spec = record.obj["spec"]
        group, names = spec["group"], spec["names"]
        registry = self._operations.registry
        registry.remove(group, names["plural"])
        storage = next(each["name"] for each in spec["versions"] if each.get("storage"))
        served = [each for each in spec["versions"] if each.get("served")]
        many = len(spec["versions"]) > 1
        for version in _preferred_order(served):
            kind = custom_kind(spec, version)
            if many:
                kind.to_storage = partial(_as_version, api_version=f"{group}/{storage}")
                kind.from_storage = partial(_as_version, api_version=kind.api_version)
            registry.add(kind)
            self._store.select_fields(kind.stored, fields_reader(kind))

    def _retire(self, record: Record) -> None:
        spec = record.obj["spec"]
        self._operations.registry.remove(spec["group"], spec["names"]["plural"])
        resource = f"{spec['names']['plural']}.{spec['group']}"
        for each in self._store.list(resource):
            self._store.delete(resource, each.namespace, each.name)


def custom_kind(spec: Manifest, version: Manifest) -> Kind:
    """The kind that one version of a definition describes."""
    names = spec["names"]
    schema = CustomSchema((version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"})
    subresources: dict[str, dict[str, Any]] = {}
    declared = version.get("subresources") or {}
    own = {"group": spec["group"], "version": version["name"], "kind": names["kind"]}
    if declared.get("status") is not None:
        subresources["status"] = {"responseKind": own, "verbs": OBJECT_VERBS}
    if declared.get("scale") is not None:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        subresources["scale"] = {"responseKind": scale, "verbs": OBJECT_VERBS}
    return Kind(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        names.get("singular") or names["kind"].lower(),
        spec.get("scope") == "Namespaced",
        VERBS,
        schema.shape,
        tuple(names.get("shortNames") or ()),
        tuple(names.get("categories") or ()),
        subresources,
        tuple(each["jsonPath"].lstrip(".") for each in version.get("selectableFields") or ()),
        {
            "schema": schema,
            "subresources": declared,
            "columns": version.get("additionalPrinterColumns") or [],
            "listKind": names.get("listKind"),
        },
    )


def _as_version(obj: Manifest, api_version: str) -> Manifest:
    obj["apiVersion"] = api_version
    return obj


def _preferred_order(versions: list[Manifest]) -> list[Manifest]:
    """GA before beta before alpha, newer before older, as discovery lists them."""

    def rank(version: Manifest) -> tuple[int, int, int, str]:
        match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version["name"])
        if match is None:
            return (3, 0, 0, version["name"])
        stage = {None: 0, "beta": 1, "alpha": 2}[match.group(2)]
        return (stage, -int(match.group(1)), -int(match.group(3) or 0), "")

    return sorted(versions, key=rank)


def _condition(kind: str, reason: str, message: str, now: str) -> Manifest:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


def _faults(obj: Manifest) -> Iterator[Manifest]:
    spec, name = obj.get("spec") or {}, obj["metadata"]["name"]
    names = spec.get("names") or {}
    if not is_subdomain(spec.get("group") or ""):
        message = f'Invalid value: "{spec.get("group", "")}": should be a domain with at least one dot'
        yield cause("FieldValueInvalid", message, "spec.group")
    for field in ("plural", "kind"):
        if not names.get(field):
            yield cause("FieldValueRequired", "Required value", f"spec.names.{field}")
    if names.get("plural") and not is_dns_label(names["plural"]):
        yield cause("FieldValueInvalid", f'Invalid value: "{names["plural"]}": must be a DNS label', "spec.names.plural")
    if name != f"{names.get('plural')}.{spec.get('group')}":
        message = f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        yield cause("FieldValueInvalid", message, "metadata.name")
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        message = f'Unsupported value: "{spec.get("scope", "")}": supported values: "Cluster", "Namespaced"'
        yield cause("FieldValueNotSupported", message, "spec.scope")
    versions = spec.get("versions") or []
    if sum(1 for each in versions if each.get("storage")) != 1:
        message = "Invalid value: must have exactly one version marked as storage version"
        yield cause("FieldValueInvalid", message, "spec.versions")
    for index, version in enumerate(versions):
        where = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not schema:
            yield cause("FieldValueRequired", "Required value: schemas are required", where)
        else:
            yield from structural_faults(schema, where, root=True)


def structural_faults(schema: Any, path: str, root: bool = False) -> Iterator[Manifest]:
    """Every value has a type; `properties` and `additionalProperties` exclude each other."""
    if not isinstance(schema, dict):
        yield cause("FieldValueInvalid", "Invalid value: must be an object", path)
        return
    loose = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not schema.get("type") and not loose:
        yield cause("FieldValueRequired", "Required value: must not be empty for specified object fields", f"{path}.type")
    if root and schema.get("type") != "object":
        message = f'Invalid value: "{schema.get("type", "")}": must be object at the root'
        yield cause("FieldValueInvalid", message, f"{path}.type")
    if schema.get("properties") and schema.get("additionalProperties"):
        message = "Forbidden: additionalProperties and properties are mutually exclusive"
        yield cause("FieldValueForbidden", message, f"{path}.additionalProperties")
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        yield cause("FieldValueRequired", "Required value: must be specified", f"{path}.items")
    for name, each in (schema.get("properties") or {}).items():
        yield from structural_faults(each, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), dict):
        yield from structural_faults(schema["items"], f"{path}.items")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from structural_faults(schema["additionalProperties"], f"{path}.additionalProperties")
