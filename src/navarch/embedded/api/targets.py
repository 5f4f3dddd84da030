"""The kind, namespace, name and subresource that a URL names: /api/v1/namespaces/ns/pods/a/status."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from navarch.embedded.api.errors import no_such_path
from navarch.embedded.api.kinds.registry import Kind, Registry


@dataclass(slots=True)
class Target:
    """A collection (no name), an object, or a subresource of it."""

    kind: Kind
    namespace: str
    name: str
    subresource: str
    watch: bool
    """Whether the old /watch/ prefix was used."""


def resolve(path: str, registry: Registry) -> Target:
    """Find what a path names; 404 if nothing.

    >>> target = resolve("/apis/batch/v1/namespaces/a/jobs/j/status", Registry())
    >>> target.kind.kind, target.namespace, target.name, target.subresource
    ('Job', 'a', 'j', 'status')
    """
    parts = [unquote(part) for part in path.split("/")[1:]]
    if parts and parts[-1] == "":
        parts.pop()
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    watch = rest[0] == "watch"
    if watch:
        rest = rest[1:]
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and not _is_subresource(rest):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3 or not all(rest):
        raise no_such_path()
    kind = registry.find(group, version, rest[0])
    if kind is None or (namespace and not kind.namespaced):
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in kind.subresources:
        raise no_such_path()
    if name and kind.namespaced and not namespace:
        raise no_such_path()
    return Target(kind, namespace, name, subresource, watch)


def _is_subresource(rest: list[str]) -> bool:
    """/namespaces/a/status is about the namespace, /namespaces/a/pods about what is in it."""
    return len(rest) == 3 and rest[2] in ("status", "finalize")
