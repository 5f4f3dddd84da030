"""Names of API resources and the paths they are served under."""

from __future__ import annotations

from urllib.parse import quote

import msgspec


class Resource(msgspec.Struct, frozen=True, order=True, gc=False):
    """A group, a version and the plural name of a kind: what an API server serves.

    >>> Resource("", "v1", "pods").path("team a", "p", "binding")
    '/api/v1/namespaces/team%20a/pods/p/binding'
    >>> Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False).path()
    '/apis/scheduling.volcano.sh/v1beta1/queues'
    """

    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_path(self) -> str:
        """The path of the group and version, where discovery lists the kinds."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of the collection, one object or a subresource; no namespace means all of them."""
        path = self.group_path
        if self.namespaced and namespace:
            path += f"/namespaces/{quote(namespace, safe='')}"
        path += f"/{self.plural}"
        if name is not None:
            if self.namespaced and not namespace:
                raise ValueError(f"{self}: expected a namespace beside the name {name!r}")
            path += f"/{quote(name, safe='')}"
        if subresource is not None:
            path += f"/{subresource}"
        return path

    def __str__(self) -> str:
        return f"{self.plural}.{self.version}.{self.group}" if self.group else f"{self.plural}.{self.version}"


PODS = Resource("", "v1", "pods")
NODES = Resource("", "v1", "nodes", namespaced=False)
LEASES = Resource("coordination.k8s.io", "v1", "leases")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
EVENTS = Resource("events.k8s.io", "v1", "events")
