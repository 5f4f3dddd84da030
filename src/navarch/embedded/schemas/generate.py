"""Make the data files of this folder from the published API description of one Kubernetes release.

    python -m navarch.embedded.schemas.generate ~/go/pkg/mod/k8s.io 1.36.1

Kept are the facts a server needs: which resources exist (discovery), the fields of each type with their list keys and
patch strategies (OpenAPI), and the protobuf number of each field (generated.proto). Descriptions are left out. A field
of a protobuf message that JSON does not know by that name is one that Go embeds: its own fields stand in its place.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

SERVED = (
    "v1",
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v1",
    "batch/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "resource.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "scheduling.k8s.io/v1alpha2",
    "storage.k8s.io/v1",
)
KEPT = (
    "type", "format", "properties", "items", "additionalProperties", "required", "$ref", "allOf", "oneOf", "default",
    "enum", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy", "x-kubernetes-group-version-kind",
    "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
)  # fmt: skip
PREFIX = "#/components/schemas/"


def short(name: str) -> str:
    """io.k8s.api.core.v1.Pod -> core.v1.Pod, with the group's folder name of the Go module."""
    for lead, stands_for in (
        ("io.k8s.api.", ""),
        ("io.k8s.apimachinery.pkg.apis.meta.", "meta."),
        ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.", "apiextensions."),
        ("io.k8s.apimachinery.pkg.api.resource.", "resource."),
        ("io.k8s.apimachinery.pkg.util.intstr.", "intstr."),
        ("io.k8s.apimachinery.pkg.runtime.", "runtime."),
    ):
        if name.startswith(lead):
            name = stands_for + name.removeprefix(lead)
    return name


def prune(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without its prose; `allOf` of one reference becomes that reference."""
    kept: dict[str, Any] = {}
    for key in KEPT:
        if key not in schema:
            continue
        value = schema[key]
        if key == "$ref":
            value = short(value.removeprefix(PREFIX))
        elif key == "properties":
            value = {name: prune(each) for name, each in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            value = prune(value)
        elif key == "allOf":
            kept["$ref"] = short(value[0]["$ref"].removeprefix(PREFIX))
            continue
        elif key == "x-kubernetes-group-version-kind":
            if len(value) > 1:  # DeleteOptions and WatchEvent belong to every group
                continue
        if key == "default" and value in ({}, "", 0, False):
            continue
        kept[key] = value
    return kept


def types(openapi: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for served in SERVED:
        name = f"api__{served}" if "/" not in served else f"apis__{served.replace('/', '__')}"
        document = json.loads((openapi / f"{name}_openapi.json").read_text())
        for full, schema in document["components"]["schemas"].items():
            found[short(full)] = prune(schema)
    return dict(sorted(found.items()))


def groups(discovery: Path) -> list[dict[str, Any]]:
    """The served part of the aggregated discovery document."""
    items = [json.loads((discovery / "aggregated_v2.json").read_text())]
    found = []
    for group in [CORE, *items[0]["items"]]:
        name = group["metadata"].get("name", "")
        versions = [each for each in group["versions"] if (f"{name}/" if name else "") + each["version"] in SERVED]
        if versions:
            kept = [{"version": each["version"], "resources": each["resources"]} for each in versions]
            found.append({"name": name, "versions": kept})
    return found


CORE: dict[str, Any] = {}


def core(discovery: Path) -> dict[str, Any]:
    """The legacy group has no aggregated document among the files; make one of its APIResourceList."""
    resources: dict[str, dict[str, Any]] = {}
    listed = json.loads((discovery / "api__v1.json").read_text())["resources"]
    for each in sorted(listed, key=lambda each: each["name"].count("/")):
        name, _, sub = each["name"].partition("/")
        kind = {"group": each.get("group", ""), "version": each.get("version", "v1"), "kind": each["kind"]}
        if sub:
            target = resources[name].setdefault("subresources", [])
            target.append({"subresource": sub, "responseKind": kind, "verbs": each["verbs"]})
            continue
        entry = {
            "resource": name,
            "responseKind": kind,
            "scope": "Namespaced" if each["namespaced"] else "Cluster",
            "singularResource": each["singularName"],
            "verbs": each["verbs"],
        }
        for key in ("shortNames", "categories"):
            if each.get(key):
                entry[key] = each[key]
        resources[name] = entry
    return {"metadata": {}, "versions": [{"version": "v1", "resources": list(resources.values())}]}


_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.S | re.M)
_MEMBER = re.compile(r'^\s*(?:(\w+)\s+)?(\*?)([\w.\[\]*]+)\s*`.*?json:"([^"]*)"', re.M)


def mark_presence(module: Path, version: str, found: dict[str, Any]) -> None:
    """Say of each property whether Go writes it when empty: x-pointer (as soon as it was set), x-always (in any case).

    Without either, an empty value and an absent one are the same, and a server drops it. Structs held by value are
    always written, whatever their tag says.
    """
    minor = version.partition(".")[2]
    members: dict[str, list[tuple[str, str, str, str]]] = {}
    for root, lead in (
        (f"api@v0.{minor}", ""),
        (f"apimachinery@v0.{minor}/pkg/apis", ""),
        (f"apiextensions-apiserver@v0.{minor}/pkg/apis", ""),
    ):
        for path in sorted((module / root).rglob("*.go")):
            if path.name.endswith("_test.go") or path.name.startswith("zz_"):
                continue
            package = ".".join(path.parent.relative_to(module / root).parts)
            for struct, body in _STRUCT.findall(path.read_text()):
                members[f"{lead}{package}.{struct}"] = _MEMBER.findall(body)
    for name, schema in found.items():
        for json_name, pointer, tag in _flattened(name, members):
            prop = schema.get("properties", {}).get(json_name)
            if prop is None:
                continue
            if pointer:
                prop["x-pointer"] = True
            if "omitempty" not in tag or (not pointer and is_struct(prop, found) and "omitzero" not in tag):
                prop["x-always"] = True


def is_struct(prop: dict[str, Any], found: dict[str, Any]) -> bool:
    kind = prop.get("$ref", "")
    return "properties" in found.get(kind, {}) or kind in ("meta.v1.Time", "meta.v1.MicroTime")


def _flattened(name: str, members: dict[str, list[tuple[str, str, str, str]]]) -> list[tuple[str, str, str]]:
    package = name.rpartition(".")[0]
    flat: list[tuple[str, str, str]] = []
    for _, pointer, kind, tag in members.get(name, []):
        json_name = tag.split(",")[0]
        if json_name:
            flat.append((json_name, pointer, tag))
        else:
            embedded = kind if "." in kind else f"{package}.{kind}"
            flat += _flattened(embedded.replace("metav1.", "meta.v1."), members)
    return flat


_MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.S | re.M)
_FIELD = re.compile(r"^  (?:(optional|repeated) )?(map<\s*\w+\s*,\s*[\w.]+\s*>|[\w.]+) (\w+) = (\d+);", re.M)


def protobuf(module: Path, version: str, known: dict[str, Any]) -> dict[str, Any]:
    """message -> {number: [JSON name, "" | "[]" | "{}", type]}; an embedded message has the name ""."""
    found: dict[str, Any] = {}
    bodies: dict[str, tuple[str, str]] = {}
    for repository in ("api", "apimachinery", "apiextensions-apiserver"):
        for path in sorted((module / f"{repository}@v0.{version.partition('.')[2]}").rglob("generated.proto")):
            text = path.read_text()
            package = re.search(r"^package ([\w.]+);", text, re.M)
            assert package is not None
            for message, body in _MESSAGE.findall(text):
                bodies[proto_name(f"{package.group(1)}.{message}")] = (package.group(1), body)
    wanted = [name for name in known if name in bodies]
    while wanted:  # embedded messages have no schema of their own and are found through their users
        name = wanted.pop()
        if name not in found:
            local, body = bodies[name]
            found[name] = fields(body, local, known.get(name, {}))
            wanted += [kind for _, _, kind in found[name].values() if kind in bodies]
    return dict(sorted(found.items()))


def proto_name(full: str) -> str:
    """k8s.io.api.core.v1.Pod, as generated.proto names it, in the short form used here."""
    return short("io.k8s" + full.removeprefix("k8s.io").replace("_", "-"))


def fields(body: str, local: str, schema: dict[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    properties = schema.get("properties", {})
    for label, kind, name, number in _FIELD.findall(body):
        shape = ""
        if kind.startswith("map<"):
            shape, kind = "{}", kind[4:-1].split(",")[1].strip()
        elif label == "repeated":
            shape = "[]"
        if kind.startswith("."):
            kind = proto_name(kind[1:])
        elif kind[0].isupper():
            kind = proto_name(f"{local}.{kind}")
        by_letters = {re.sub(r"[$-]", "", each).lower(): each for each in properties}
        json_name = by_letters.get(name.lower(), "" if "." in kind and properties else name)
        found[number] = [json_name, shape, kind]
    return found


def main() -> None:
    module, version = Path(sys.argv[1]).expanduser(), sys.argv[2]
    source = module / f"kubernetes@v{version}" / "api"
    here = Path(__file__).parent
    CORE.update(core(source / "discovery"))
    found = types(source / "openapi-spec" / "v3")
    mark_presence(module, version, found)
    for name, data in (
        ("types", found),
        ("groups", groups(source / "discovery")),
        ("protobuf", protobuf(module, version, found)),
    ):
        entries = data.items() if isinstance(data, dict) else enumerate(data)
        lines = [
            (json.dumps(key) + ": " if isinstance(data, dict) else "") + json.dumps(value, separators=(",", ":"))
            for key, value in entries
        ]
        left, right = "{}" if isinstance(data, dict) else "[]"
        (here / f"{name}.json").write_text(f"{left}\n" + ",\n".join(lines) + f"\n{right}\n")


if __name__ == "__main__":
    main()
