"""The names and kinds by which people know their jobs."""

from __future__ import annotations

import pytest

from navarch.model.spec import JobSpec
from navarch.views.job_names import job_name

HASH = {"pod-template-hash": "5c"}


@pytest.mark.parametrize(
    ("spec", "labels", "name", "kind", "resource"),
    [
        (JobSpec("ml/g", "q", dialect="volcano"), {}, "g", "PodGroup", "podgroup.scheduling.volcano.sh"),
        (JobSpec("ml/g", "q", dialect="kai"), {}, "g", "PodGroup", "podgroup.scheduling.run.ai"),
        (JobSpec("ml/bert-u1", "q", dialect="volcano", owner=("Job", "bert", "u1")), {}, "bert", "VolcanoJob", "job.batch.volcano.sh"),
        (JobSpec("ml/train", "q", dialect="volcano", owner=("Job", "train", "u1")), {}, "train", "Job", "job.batch"),
        (JobSpec("ml/podgroup-u2", "q", owner=("ReplicaSet", "web-5c", "u2")), HASH, "web", "Deployment", "deployment.apps"),
        (JobSpec("ml/llm", "q", dialect="kai", owner=("PyTorchJob", "llm", "u3")), {}, "llm", "PyTorchJob", "pytorchjob.kubeflow.org"),
        (JobSpec("ml/replicaset/web-5c", "q", owner=("ReplicaSet", "web-5c", "u")), HASH, "web", "Deployment", "deployment.apps"),
        (JobSpec("ml/replicaset/own", "q", owner=("ReplicaSet", "own", "u")), {}, "own", "ReplicaSet", "replicaset.apps"),
        (JobSpec("ml/job/etl", "q", owner=("Job", "etl", "u")), {}, "etl", "Job", "job.batch"),
        (JobSpec("ml/pod/alone", "q", owner=("Pod", "alone", "u")), {}, "alone", "Pod", "pod"),
    ],
)  # fmt: skip
def test_a_job_is_called_as_the_workload_that_makes_it(
    spec: JobSpec, labels: dict[str, str], name: str, kind: str, resource: str
) -> None:
    assert job_name(spec.key, spec, labels) == ("ml", name, kind, resource)


def test_a_group_that_does_not_exist_has_the_name_by_which_its_pods_call_it() -> None:
    assert job_name("ml/absent", None, {}) == ("ml", "absent", "PodGroup", "podgroup")
