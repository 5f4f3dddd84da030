"""OpenAPI v3: enough for kubectl to validate on the server, to compute patches, and to explain fields.

It holds the schemas (without prose) of every type. Each kind has the one operation that kubectl reads: PATCH, with the
`fieldValidation` parameter and the patch types. OpenAPI v2 is an empty document. kubectl reads it only for a `kind: List` (what
`kubectl get -o yaml` prints), finds no schema for the items, and leaves validation to the server.
"""

from __future__ import annotations

import hashlib

import msgspec

from navarch.embedded.api.kinds.registry import Kind, Registry, type_name
from navarch.embedded.api.kinds.types import schemas
from navarch.object_types import Manifest

OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
OWN_KEYS = ("x-pointer", "x-always")
PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")


class OpenApi:
    """Documents by group and version, made when first asked for."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._kept: dict[str, bytes] = {}
        self._changes = -1

    def index(self) -> bytes:
        """/openapi/v3: where each document is, with a hash that changes when it does."""
        self._refresh()
        paths: Manifest = {}
        for group in ["", *self._registry.groups()]:
            for version in self._registry.versions(group):
                name = f"apis/{group}/{version}" if group else f"api/{version}"
                mark = hashlib.sha256(f"{name}{self._registry.changes if self._has_custom(group) else 0}".encode())
                paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={mark.hexdigest()[:32].upper()}"}
        return msgspec.json.encode({"paths": paths})

    def document(self, name: str) -> bytes | None:
        """/openapi/v3/{name}, where name is `api/v1` or `apis/batch/v1`."""
        self._refresh()
        if name not in self._kept:
            parts = name.split("/")
            group, version = ("", parts[1]) if parts[0] == "api" and len(parts) == 2 else ("", "")
            if parts[0] == "apis" and len(parts) == 3:
                group, version = parts[1], parts[2]
            if version not in self._registry.versions(group):
                return None
            self._kept[name] = msgspec.json.encode(self._make(group, version))
        return self._kept[name]

    def _refresh(self) -> None:
        if self._changes != self._registry.changes:
            self._kept.clear()
            self._changes = self._registry.changes

    def _has_custom(self, group: str) -> bool:
        return any(kind.is_custom for version in self._registry.versions(group) for kind in self._registry.kinds(group, version))

    def _make(self, group: str, version: str) -> Manifest:
        found: dict[str, Manifest] = {}
        paths: Manifest = {}
        for kind in self._registry.kinds(group, version):
            name = _add_kind(kind, found)
            base = f"/apis/{group}/{version}" if group else f"/api/{version}"
            where = f"{base}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
            if "patch" in kind.verbs:
                paths[f"{where}/{{name}}"] = {"patch": _patch_operation(kind, name), "get": _get_operation(kind, name)}
            if "create" in kind.verbs:
                paths[where] = {"post": _post_operation(kind, name)}
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "v1.36.1"},
            "paths": paths,
            "components": {"schemas": dict(sorted(found.items()))},
        }


def full_name(short: str) -> str:
    """core.v1.Pod -> io.k8s.api.core.v1.Pod, the name under which clients know it."""
    lead, _, rest = short.partition(".")
    if lead == "meta":
        return f"io.k8s.apimachinery.pkg.apis.meta.{rest}"
    if lead == "apiextensions":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.{short}"
    if short == "resource.Quantity":
        return "io.k8s.apimachinery.pkg.api.resource.Quantity"
    if lead == "intstr":
        return f"io.k8s.apimachinery.pkg.util.{short}"
    return f"io.k8s.apimachinery.pkg.{short}" if lead == "runtime" else f"io.k8s.api.{short}"


def _add_kind(kind: Kind, found: dict[str, Manifest]) -> str:
    if kind.definition is None:
        short = type_name(kind.group, kind.version, kind.kind)
        if short in schemas():
            _add_type(short, found)
            return full_name(short)
        return full_name("meta.v1.Status")
    reverse = ".".join(reversed(kind.group.split(".")))
    name = f"{reverse}.{kind.version}.{kind.kind}"
    schema = dict(kind.definition["schema"].schema)
    properties = dict(schema.get("properties") or {})
    _add_type("meta.v1.ObjectMeta", found)
    properties["metadata"] = {"$ref": f"#/components/schemas/{full_name('meta.v1.ObjectMeta')}"}
    properties.setdefault("apiVersion", {"type": "string"})
    properties.setdefault("kind", {"type": "string"})
    schema["properties"] = properties
    schema["x-kubernetes-group-version-kind"] = [_gvk(kind)]
    found[name] = schema
    return name


def _add_type(short: str, found: dict[str, Manifest]) -> None:
    name = full_name(short)
    if name in found:
        return
    found[name] = {}
    found[name] = _expand(schemas()[short], found)


def _expand(schema: Manifest, found: dict[str, Manifest]) -> Manifest:
    out: Manifest = {}
    for key, value in schema.items():
        if key in OWN_KEYS:
            continue
        if key == "$ref":
            _add_type(value, found)
            out[key] = f"#/components/schemas/{full_name(value)}"
        elif key == "properties":
            out[key] = {name: _expand(each, found) for name, each in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            out[key] = _expand(value, found)
        else:
            out[key] = value
    if "$ref" in out and len(out) > 1:
        out["allOf"] = [{"$ref": out.pop("$ref")}]
    return out


def _gvk(kind: Kind) -> Manifest:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _content(name: str, types: tuple[str, ...]) -> Manifest:
    return {each: {"schema": {"$ref": f"#/components/schemas/{name}"}} for each in types}


def _parameters() -> list[Manifest]:
    return [{"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in PARAMETERS]


def _answer(name: str) -> Manifest:
    return {"200": {"description": "OK", "content": _content(name, ("application/json",))}}


def _patch_operation(kind: Kind, name: str) -> Manifest:
    types = ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
    if not kind.is_custom:
        types.append("application/strategic-merge-patch+json")
    return {
        "operationId": f"patch{kind.kind}{kind.version}",
        "parameters": _parameters(),
        "requestBody": {"content": _content(name, tuple(types)), "required": True},
        "responses": _answer(name),
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _gvk(kind),
    }


def _get_operation(kind: Kind, name: str) -> Manifest:
    return {
        "operationId": f"read{kind.kind}{kind.version}",
        "responses": _answer(name),
        "x-kubernetes-action": "get",
        "x-kubernetes-group-version-kind": _gvk(kind),
    }


def _post_operation(kind: Kind, name: str) -> Manifest:
    return {
        "operationId": f"create{kind.kind}{kind.version}",
        "parameters": _parameters(),
        "requestBody": {"content": _content(name, ("*/*",)), "required": True},
        "responses": _answer(name),
        "x-kubernetes-action": "post",
        "x-kubernetes-group-version-kind": _gvk(kind),
    }
