"""The name and kind by which people know a job: those of the workload that they created.

A controller makes the PodGroup of a Volcano Job and names it after the job and its uid, a Deployment makes ReplicaSets with a hash in
their names. People created neither, so a row shows the workload. The name of a PodGroup that nothing owns is its own.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from navarch.apis.operators.readers import KINDS as OWNERS
from navarch.ingest.groups import is_shadow, shown_key
from navarch.model.spec import JobSpec, Labels

TEMPLATE_HASH: Final = "pod-template-hash"
VOLCANO_JOB: Final = "VolcanoJob"
_WORKLOADS: Final = {kind.kind.lower(): kind.kind for kind in OWNERS}
_API_GROUPS: Final = {
    **{kind.kind: kind.api_versions[0].rpartition("/")[0] for kind in OWNERS},
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), "apps"),
    **dict.fromkeys(("Job", "CronJob"), "batch"),
}
_GROUP_APIS: Final = {
    "volcano": "scheduling.volcano.sh",
    "kube-batch": "scheduling.incubator.k8s.io",
    "kai": "scheduling.run.ai",
    "coscheduling": "scheduling.x-k8s.io",
    "upstream": "scheduling.k8s.io",
}


_MADE: Final = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""The uid that Volcano's controller adds to the name of a Job for its PodGroup."""


def without_uids(text: str) -> str:
    """Names of jobs in a text as people gave them.

    >>> without_uids("gangreclaim for ml/bert-482ef1e0-9c0b-4a55-8d3e-0123456789ab")
    'gangreclaim for ml/bert'
    """
    return _MADE.sub("", text)


class JobName(NamedTuple):
    namespace: str
    name: str
    kind: str
    resource: str
    """The kind as kubectl takes it before a slash: `job.batch.volcano.sh`."""


def job_name(key: str, spec: JobSpec | None, labels: Labels) -> JobName:
    """`labels`: those of one of its pods.

    >>> from navarch.model.spec import JobSpec
    >>> group = JobSpec("ml/bert-7c1f", "q", name="bert-7c1f", dialect="volcano", owner=("Job", "bert", "7c1f"))
    >>> job_name("ml/bert-7c1f", group, {})
    JobName(namespace='ml', name='bert', kind='VolcanoJob', resource='job.batch.volcano.sh')
    >>> made = JobSpec("ml/replicaset/web-5c", "q", owner=("ReplicaSet", "web-5c", "u"))
    >>> job_name(made.key, made, {TEMPLATE_HASH: "5c"})
    JobName(namespace='ml', name='web', kind='Deployment', resource='deployment.apps')
    """
    namespace, _, name = shown_key(key).partition("/")
    if is_shadow(key):
        written = key.split("/")[1]
        kind = _WORKLOADS.get(written) or (spec.owner[0] if spec is not None and spec.owner else written.capitalize())
        if kind != "ReplicaSet" or written != "replicaset":
            return JobName(namespace, name, kind, _resource(kind))
    elif spec is None or spec.owner is None:
        api = spec.api_version.rpartition("/")[0] or _GROUP_APIS.get(spec.dialect, "") if spec is not None else ""
        return JobName(namespace, name, "PodGroup", f"podgroup.{api}".rstrip("."))
    else:
        kind, owner, uid = spec.owner
        if kind == "Job" and name == f"{owner}-{uid}":
            return JobName(namespace, owner, VOLCANO_JOB, "job.batch.volcano.sh")
        name = owner
    hashed = labels.get(TEMPLATE_HASH, "")
    if kind == "ReplicaSet" and hashed and name.endswith(f"-{hashed}"):
        kind, name = "Deployment", name.removesuffix(f"-{hashed}")
    return JobName(namespace, name, kind, _resource(kind))


def _resource(kind: str) -> str:
    return f"{kind.lower()}.{_API_GROUPS.get(kind, '')}".rstrip(".")
