"""What is wrong with a submission, told before anything is created: the option, its value, and what was expected.

Two judges: our own reader, because a job that the scheduler cannot read waits for ever, and a dry run on the API server of the job, of
its group and of one of its pods. The pod is what its controller will create later, when nobody looks at a terminal. A server that does
not let the user create pods has no say about them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from navarch.cli.submit.objects import GPU, Submission
from navarch.kube.client import Client
from navarch.kube.errors import ApiError, BadRequest, KubeError, NotFound
from navarch.kube.resources import PODS, Resource
from navarch.object_types import Manifest

PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
INVALID: Final = 422
_RESOURCE: Final = re.compile(r"resources\.(?:requests|limits)[.\[](?P<name>[^\]]+)\]?")
_OPTIONS: Final = (
    ("annotations[gpu-fraction]", "--gpu-fraction", "gpu_fraction"),
    ("nodeSelector", "--node-selector", "node_selector"),
    (".env", "--env", "environment"),
    ("labels", "--label", "labels"),
    (".image", "--image", "image"),
    ("priorityClassName", "--priority-class", "priority_class"),
    ("schedulerName", "--scheduler-name", "scheduler_name"),
    ("spec.queue", "--queue", "queue"),
    ("metadata.name", "--name", "name"),
    ("metadata.namespace", "--namespace", "namespace"),
)
"""Part of a field's path, the option that fills the field, and its name in a submission."""


def option_of(path: str, wanted: Submission) -> str:
    """The option as the user typed it; the path where no option fills the field.

    >>> option_of("spec.template.spec.containers[0].resources.requests[cpu]", Submission("a", "b", "i", requests={"cpu": "banana"}))
    '--cpu banana'
    >>> option_of("spec.containers[0].image", Submission("a", "b", ""))
    '--image ""'
    """
    resource = _RESOURCE.search(path)
    if resource is not None:
        name = resource["name"]
        value = wanted.requests.get(name, "")
        if name == GPU and not value:
            return f"--gpus {wanted.gpus}"
        return f"--{name} {value}" if name in ("cpu", "memory") else f"--request {name}={value}"
    for part, option, field in _OPTIONS:
        if part in path:
            value = getattr(wanted, field)
            shown = ",".join(f"{key}={each}" for key, each in value.items()) if isinstance(value, dict) else value
            return f"{option} {shown}" if shown else f'{option} ""'
    return path


def unreadable(objects: Sequence[Manifest], wanted: Submission) -> Iterator[str]:
    """What our reader refuses."""
    from navarch.ingest.settings import settings_for  # `navarch submit --help` does not load the reader
    from navarch.installed import installed
    from navarch.offline.inventory import Inventory
    from navarch.offline.manifests import Document
    from navarch.offline.policies import read_policy

    documents = [Document(each) for each in objects]
    if wanted.priority_class:  # whether the cluster has it is asked of the cluster
        api, metadata = "scheduling.k8s.io/v1", {"name": wanted.priority_class}
        documents.append(Document({"apiVersion": api, "kind": "PriorityClass", "metadata": metadata, "value": 0}))
    for each in Inventory(documents, settings_for(read_policy(None, installed(())))).mistakes:
        yield f"{option_of(each.path, wanted)}: expected {each.expected}"


async def refused(client: Client, objects: Sequence[tuple[Resource, Manifest]], pod: Manifest, wanted: Submission) -> list[str]:
    """What the API server refuses. Other failures are told when the objects are created."""
    found = await _missing_class(client, wanted.priority_class) if wanted.priority_class else []
    for resource, manifest in (*objects, (PODS, pod)):
        try:
            await client.create(resource, manifest, namespace=wanted.namespace, dry_run=True)
        except BadRequest as error:
            if error.code == INVALID:
                found += _told(error, wanted)
        except KubeError:
            continue
    return list(dict.fromkeys(found))


async def _missing_class(client: Client, name: str) -> list[str]:
    try:
        await client.get(PRIORITY_CLASSES, name)
    except NotFound:
        known = [each["metadata"]["name"] for each in (await client.list(PRIORITY_CLASSES)).items]
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"these are: {', '.join(sorted(known)[:10])}"
        return [f"--priority-class {name}: there is no such PriorityClass, so no pod could be created; {hint}"]
    except KubeError:
        pass  # it may not be looked at
    return []


def _told(error: ApiError, wanted: Submission) -> Iterator[str]:
    for cause in error.details.causes:
        yield f"{option_of(cause.field, wanted)}: {cause.message}"
    if not error.details.causes:
        yield error.message
