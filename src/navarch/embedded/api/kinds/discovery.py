"""Discovery: which groups, versions and resources there are, in the aggregated and in the older form.

kubectl and client-go ask for the aggregated documents (two requests for everything) and fall back to one request a group. The
documents are made when first asked for and kept until a kind comes or goes.
"""

from __future__ import annotations

import hashlib

import msgspec

from navarch.embedded.api.kinds.registry import Kind, Registry
from navarch.object_types import Manifest

AGGREGATED = "apidiscovery.k8s.io"
VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.1+navarch",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "CPython",
    "platform": "linux/amd64",
}


class Discovery:
    """Documents made from the registry."""

    def __init__(self, registry: Registry, address: str) -> None:
        self._registry = registry
        self._address = address
        self._kept: dict[str, tuple[bytes, str]] = {}
        self._changes = -1

    def document(self, path: str, aggregated: str = "") -> tuple[bytes, str] | None:
        """(body, ETag) of a discovery path; `aggregated` is the version asked for ("v2"). None if there is none."""
        if self._changes != self._registry.changes:
            self._kept.clear()
            self._changes = self._registry.changes
        key = f"{path}#{aggregated}"
        if key not in self._kept:
            made = self._make(path.strip("/").split("/"), aggregated)
            if made is None:
                return None
            body = msgspec.json.encode(made)
            self._kept[key] = (body, f'"{hashlib.sha256(body).hexdigest()[:32].upper()}"')
        return self._kept[key]

    def _make(self, parts: list[str], aggregated: str) -> Manifest | None:
        if parts == ["api"]:
            if aggregated:
                return _aggregated([_group_discovery(self._registry, "")], aggregated)
            address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}]
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}
        if parts == ["apis"]:
            names = self._registry.groups()
            if aggregated:
                return _aggregated([_group_discovery(self._registry, name) for name in names], aggregated)
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self._group(name) for name in names]}
        if len(parts) == 2 and parts[0] == "api":
            return self._resources("", parts[1])
        if len(parts) == 2:
            found = self._group(parts[1]) if parts[1] in self._registry.groups() else None
            return None if found is None else {"kind": "APIGroup", "apiVersion": "v1", **found}
        return self._resources(parts[1], parts[2]) if len(parts) == 3 else None

    def _group(self, name: str) -> Manifest:
        versions = [{"groupVersion": f"{name}/{each}", "version": each} for each in self._registry.versions(name)]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> Manifest | None:
        if version not in self._registry.versions(group):
            return None
        entries: list[Manifest] = []
        for kind in self._registry.kinds(group, version):
            entries.append(_resource(kind))
            entries += [_subresource(kind, name) for name in kind.subresources]
        gv = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv, "resources": entries}


def _resource(kind: Kind) -> Manifest:
    entry: Manifest = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    return entry | _other_names(kind)


def _other_names(kind: Kind) -> Manifest:
    found: Manifest = {}
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    return found


def _subresource(kind: Kind, name: str) -> Manifest:
    found = kind.subresources[name]
    response = found.get("responseKind") or {}
    entry: Manifest = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": response.get("kind", kind.kind),
        "verbs": list(found["verbs"]),
    }
    if response.get("version") and (response.get("group", ""), response["version"]) != (kind.group, kind.version):
        entry["group"] = response.get("group", "")
        entry["version"] = response["version"]
    return entry


def _aggregated(items: list[Manifest], version: str) -> Manifest:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{AGGREGATED}/{version}",
        "metadata": {},
        "items": items,
    }


def _group_discovery(registry: Registry, group: str) -> Manifest:
    versions = [
        {
            "version": version,
            "resources": [_aggregated_resource(kind) for kind in registry.kinds(group, version)],
            "freshness": "Current",
        }
        for version in registry.versions(group)
    ]
    metadata: Manifest = {"creationTimestamp": None}
    if group:
        metadata["name"] = group
    return {"metadata": metadata, "versions": versions}


def _aggregated_resource(kind: Kind) -> Manifest:
    entry: Manifest = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        **_other_names(kind),
    }
    if kind.subresources:
        own = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        entry["subresources"] = [
            {"subresource": name, "responseKind": each.get("responseKind") or own, "verbs": list(each["verbs"])}
            for name, each in kind.subresources.items()
        ]
    return entry
