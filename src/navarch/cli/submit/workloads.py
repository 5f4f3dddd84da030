"""Workloads in a cluster by the name that a user types: `train`, `job/train`, `volcanojob/train`, `pytorchjob/llm`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from navarch.apis.operators.readers import KINDS as OPERATORS
from navarch.cli.submit.objects import JOBS, VOLCANO_JOBS
from navarch.kube.client import Client
from navarch.kube.errors import Forbidden, NotFound, NotServed
from navarch.kube.resources import PODS, Resource
from navarch.views.job_names import VOLCANO_JOB


@dataclass(frozen=True)
class WorkloadKind:
    kind: str
    resource: Resource
    suspend: tuple[str, ...] = ()
    """The field by which it is suspended; empty: it has none."""

    @property
    def names(self) -> frozenset[str]:
        """What may stand before the slash."""
        short = {VOLCANO_JOB: ("vcjob", "job.batch.volcano.sh"), "Job": ("job.batch",), "Deployment": ("deploy", "deployment.apps")}
        return frozenset((self.kind.lower(), *short.get(self.kind, ())))


def _operator(kind: Any) -> list[WorkloadKind]:
    group_versions = [version.rpartition("/") for version in kind.api_versions]
    field: tuple[str, ...] = ("spec", "suspend") if kind.kind in ("JobSet", "RayCluster") else ()
    if group_versions[0][0] == "kubeflow.org":
        field = ("spec", "runPolicy", "suspend")
    return [WorkloadKind(kind.kind, Resource(group, version, kind.plural), field) for group, _, version in group_versions]


WORKLOADS: tuple[WorkloadKind, ...] = (
    WorkloadKind(VOLCANO_JOB, VOLCANO_JOBS),
    WorkloadKind("Job", JOBS, ("spec", "suspend")),
    *(each for kind in OPERATORS for each in _operator(kind)),
    WorkloadKind("Deployment", Resource("apps", "v1", "deployments")),
    WorkloadKind("StatefulSet", Resource("apps", "v1", "statefulsets")),
    WorkloadKind("ReplicaSet", Resource("apps", "v1", "replicasets")),
    WorkloadKind("Pod", PODS),
)


@dataclass(frozen=True)
class Found:
    kind: WorkloadKind
    obj: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind.kind.lower()}/{self.obj['metadata']['name']}"


async def find(client: Client, wanted: str, namespace: str) -> Found:
    """The workload of this name. Raises ClickException if there is none, or several of several kinds."""
    before, _, name = wanted.rpartition("/")
    kinds = [each for each in WORKLOADS if not before or before.lower() in each.names]
    if not kinds:
        known = ", ".join(dict.fromkeys(each.kind.lower() for each in WORKLOADS))
        raise click.ClickException(f"{before!r} is no kind of workload; these are: {known}")
    found: dict[str, Found] = {}
    refused: Forbidden | None = None
    for kind in kinds:
        try:
            obj = await client.get(kind.resource, name, namespace=namespace)
        except (NotFound, NotServed):
            continue
        except Forbidden as error:
            # A server also forbids kinds that it does not serve.
            if await client.discovery.serves(kind.resource):
                refused = error
            continue
        found.setdefault(kind.kind, Found(kind, obj))
    if not found:
        if refused is not None:
            raise click.ClickException(str(refused))
        raise click.ClickException(f"there is no job {wanted!r} in the namespace {namespace}; `navarch jobs` lists them")
    if len(found) > 1:
        raise click.ClickException(f"{wanted!r} means several: {', '.join(map(str, found.values()))}; say which")
    return next(iter(found.values()))
