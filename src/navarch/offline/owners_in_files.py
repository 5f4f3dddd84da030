"""Owners of pods among manifests: an owner of any kind counts if it is in the input.

On a live cluster only kinds with a minimum in their spec are watched. Files hold whatever the user gives, so the queue label of a
Deployment or a CronJob counts in a plan although the live scheduler does not read these kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from msgspec.structs import replace

from navarch.apis.core.objects import KubeObject, Part, from_manifest
from navarch.apis.errors import ObjectError
from navarch.apis.operators.objects import Count
from navarch.apis.operators.owners import Find
from navarch.apis.operators.readers import spec_of
from navarch.apis.operators.workload import WorkloadKey, WorkloadSpec
from navarch.offline.manifests import Document


class _Environment(Part, frozen=True, rename=None):
    AZUREML_NODE_COUNT: Count | None = None


class _Options(Part, frozen=True):
    envs: _Environment = _Environment()


class _AzureJob(Part, frozen=True):
    options: _Options = _Options()


class _AzurePart(Part, frozen=True):
    job: _AzureJob = _AzureJob()


class _AmlJob(KubeObject, frozen=True):
    spec: _AzurePart = _AzurePart()


def owners_among(documents: Iterable[Document], report: Callable[[Document, ObjectError], None]) -> Find:
    """Reads an owner when it is first asked for. An owner that cannot be read is reported with `report` and treated as unknown."""
    given: dict[WorkloadKey, Document] = {}
    for document in documents:
        metadata = document.manifest.get("metadata")
        if isinstance(metadata, dict) and document.manifest.get("kind") != "Pod":
            key = str(metadata.get("namespace") or "default"), str(document.manifest.get("kind")), str(metadata.get("name"))
            given.setdefault(key, document)

    @cache
    def find(key: WorkloadKey) -> WorkloadSpec | None:
        document = given.get(key)
        if document is None:
            return None
        try:
            if key[1] == "AmlJob":
                found = from_manifest(document.manifest, _AmlJob)
                return replace(spec_of("AmlJob", found.metadata), min_member=found.spec.job.options.envs.AZUREML_NODE_COUNT)
            return spec_of(key[1], from_manifest(document.manifest, KubeObject).metadata)
        except ObjectError as error:
            report(document, error)
            return None

    return find
