"""The Kubernetes objects that Navarch ships, as data inside the package.

There is one copy of each: `navarch install` applies these files, the embedded cluster serves these CRDs, `deploy/`
and the Helm chart point here. Navarch brings no API of its own, so the CRDs are those of the systems whose objects it
reads, in the fields their users know, written anew. Every call parses the files again and so returns objects that the
caller may change.

    >>> from navarch import manifests
    >>> [crd["metadata"]["name"] for crd in manifests.crds()][:2]
    ['bindrequests.scheduling.run.ai', 'hypernodes.topology.volcano.sh']
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

import yaml

from navarch.object_types import Manifest


def _documents(file: Traversable) -> Iterator[Manifest]:
    for document in yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
        if document is not None:
            yield document


def _folder(name: str) -> list[Manifest]:
    entries = sorted((files(__name__) / name).iterdir(), key=lambda entry: entry.name)
    return [document for entry in entries if entry.name.endswith(".yaml") for document in _documents(entry)]


def _file(name: str) -> list[Manifest]:
    return list(_documents(files(__name__) / f"{name}.yaml"))


def crds() -> list[Manifest]:
    """CustomResourceDefinitions of every dialect, ordered by name."""
    return _folder("crds")


def namespace() -> list[Manifest]:
    """The namespace that the scheduler runs in."""
    return _file("namespace")


def rbac() -> list[Manifest]:
    """ServiceAccount, ClusterRole and Role with their bindings: all that the scheduler may do."""
    return _file("rbac")


def deployment() -> list[Manifest]:
    """The Deployment of two replicas and its disruption budget."""
    return _file("deployment")


def service() -> list[Manifest]:
    """The Service in front of health and metrics."""
    return _file("service")


def network_policy() -> list[Manifest]:
    """The NetworkPolicy that leaves only the port of health and metrics open."""
    return _file("networkpolicy")


def service_monitor() -> list[Manifest]:
    """What tells a Prometheus operator to scrape the Service."""
    return _file("servicemonitor")


def web() -> list[Manifest]:
    """The dashboard: its account with read-only rights, its Deployment, Service and NetworkPolicy."""
    return _file("web")
