"""The kinds a server knows: their names, where they live in a URL, their shape, and the rules that differ from kind to kind.

`Registry` starts with the built-in kinds of `schemas/groups.json` and grows and shrinks with CustomResourceDefinitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from navarch.embedded.api.kinds.event_versions import from_core, to_core
from navarch.embedded.api.kinds.selectable_fields import SELECTABLE, reader
from navarch.embedded.api.kinds.types import Shape, data, schemas, shape_of
from navarch.object_types import Manifest

UNSERVED_SUBRESOURCES = frozenset({"attach", "exec", "portforward", "approval"})
UNSERVED = frozenset({"componentstatuses"})
NEEDS_VERSION = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
        "podgroups.scheduling.k8s.io",
        "runtimeclasses.node.k8s.io",
        "volumeattachments.storage.k8s.io",
        "workloads.scheduling.k8s.io",
    }
)
"""Kinds whose update must name the resourceVersion it replaces."""
CREATES_ON_UPDATE = frozenset(
    {
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "endpoints",
        "events",
        "leases.coordination.k8s.io",
        "limitranges",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "runtimeclasses.node.k8s.io",
        "services",
    }
)
"""Kinds whose PUT makes the object if there is none."""
COUNTS_GENERATIONS = frozenset(
    {
        "cronjobs.batch",
        "customresourcedefinitions.apiextensions.k8s.io",
        "daemonsets.apps",
        "deployments.apps",
        "deviceclasses.resource.k8s.io",
        "endpointslices.discovery.k8s.io",
        "ingressclasses.networking.k8s.io",
        "ingresses.networking.k8s.io",
        "jobs.batch",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "networkpolicies.networking.k8s.io",
        "poddisruptionbudgets.policy",
        "pods",
        "podtemplates",
        "priorityclasses.scheduling.k8s.io",
        "replicasets.apps",
        "replicationcontrollers",
        "resourceslices.resource.k8s.io",
        "statefulsets.apps",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)
"""Built-in kinds with a metadata.generation; custom kinds all have one."""


@dataclass(slots=True, eq=False)
class Kind:
    """One kind in one version, as served under one URL."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    shape: Shape
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name -> its discovery entry ({responseKind, verbs})."""
    selectable: tuple[str, ...] = ()
    """Field paths that selectors may name beside metadata.name and metadata.namespace, as this version spells them."""
    definition: Manifest | None = None
    """The CustomResourceDefinition version entry of a custom kind."""
    stored_as: str = ""
    """The resource under which the store keeps it, where that differs (events.k8s.io shares `events`)."""
    to_storage: Callable[[Manifest], Manifest] | None = None
    from_storage: Callable[[Manifest], Manifest] | None = None

    @property
    def resource(self) -> str:
        """The name used in errors and as the store's resource: `pods`, `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def stored(self) -> str:
        return self.stored_as or self.resource

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        if self.definition is not None:
            return str(self.definition.get("listKind") or f"{self.kind}List")
        return f"{self.kind}List"

    @property
    def is_custom(self) -> bool:
        return self.definition is not None

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def counts_generations(self) -> bool:
        return self.is_custom or self.resource in COUNTS_GENERATIONS

    @property
    def needs_version(self) -> bool:
        return self.is_custom or self.resource in NEEDS_VERSION


SCHEDULING = "scheduling.k8s.io"


class Registry:
    """Kinds by group, version and plural, in a fixed order for discovery."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._versions: dict[str, list[str]] = {}
        self.changes = 0
        """Grows with every change; discovery and OpenAPI documents are made anew when it does."""
        self.first_group = ""
        """The group that discovery lists before `scheduling.k8s.io`: kubectl takes a short name from the first group that has it."""
        for kind in builtin_kinds():
            self.add(kind)

    def add(self, kind: Kind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind
        versions = self._versions.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
        self.changes += 1

    def remove(self, group: str, plural: str) -> None:
        for key in [key for key in self._kinds if key[0] == group and key[2] == plural]:
            del self._kinds[key]
        remaining = {key[1] for key in self._kinds if key[0] == group}
        self._versions[group] = [version for version in self._versions.get(group, []) if version in remaining]
        if not self._versions[group]:
            del self._versions[group]
        self.changes += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def of_object(self, obj: Manifest) -> Kind | None:
        """The kind of an object, by its apiVersion and kind."""
        group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
        return self.by_kind(group, version, str(obj.get("kind") or ""))

    def by_kind(self, group: str, version: str, kind: str) -> Kind | None:
        for each in self._kinds.values():
            if each.kind == kind and each.group == group and each.version == version:
                return each
        return None

    def by_resource(self, resource: str) -> Kind | None:
        """The preferred version of a resource named as in the store."""
        plural, _, group = resource.partition(".")
        for version in self._versions.get(group, ()):
            found = self._kinds.get((group, version, plural))
            if found is not None:
                return found
        return None

    def groups(self) -> list[str]:
        found = [group for group in self._versions if group]
        if self.first_group in found and SCHEDULING in found:
            found.remove(self.first_group)
            found.insert(found.index(SCHEDULING), self.first_group)
        return found

    def versions(self, group: str) -> list[str]:
        return list(self._versions.get(group, ()))

    def kinds(self, group: str, version: str) -> list[Kind]:
        found = [kind for (g, v, _), kind in self._kinds.items() if g == group and v == version]
        return sorted(found, key=lambda kind: kind.plural)

    def all(self) -> Iterator[Kind]:
        yield from self._kinds.values()


def builtin_kinds() -> Iterable[Kind]:
    """The kinds of the data files; made once a registry (about 10 ms)."""
    for group in data("groups"):
        for version in group["versions"]:
            for entry in version["resources"]:
                if entry["resource"] not in UNSERVED:
                    yield _builtin(group["name"], version["version"], entry)


def type_name(group: str, version: str, kind: str) -> str:
    """The data file's name of a kind's type: ("", "v1", "Pod") -> core.v1.Pod.

    >>> type_name("scheduling.k8s.io", "v1", "PriorityClass")
    'scheduling.v1.PriorityClass'
    """
    folder = group.partition(".")[0] if group else "core"
    return f"{folder}.{version}.{kind}"


def _builtin(group: str, version: str, entry: Manifest) -> Kind:
    response = entry["responseKind"]
    name = type_name(response.get("group") or group, response.get("version") or version, response["kind"])
    plural = entry["resource"]
    subresources = {
        each["subresource"]: each
        for each in entry.get("subresources", ())
        if each["subresource"] not in UNSERVED_SUBRESOURCES and (plural, each["subresource"]) != ("nodes", "proxy")
    }
    kind = Kind(
        group,
        version,
        response["kind"],
        plural,
        entry["singularResource"],
        entry["scope"] == "Namespaced",
        tuple(entry["verbs"]),
        shape_of(name) if name in schemas() else Shape("any"),
        tuple(entry.get("shortNames", ())),
        tuple(entry.get("categories", ())),
        subresources,
    )
    kind.selectable = SELECTABLE.get(kind.resource, ())
    if kind.resource == "events.events.k8s.io":
        kind.stored_as, kind.to_storage, kind.from_storage = "events", to_core, from_core
    return kind


def fields_reader(kind: Kind) -> Callable[[Manifest], tuple[str, ...]] | None:
    """What the store calls at each write to index the kind's selectable fields."""
    return reader(kind.selectable) if kind.selectable else None
