"""Groups in memory while pods and owners come and go, in whatever order they are learned of."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.apis.dialect import Settings
from navarch.apis.operators.objects import KubeflowJob, LeaderWorkerSet, RayCluster
from navarch.apis.operators.readers import read_kubeflow, read_leader_worker_set, read_ray_cluster
from navarch.apis.operators.workload import WorkloadSpec
from navarch.ingest.groups import ShadowGroups
from navarch.ingest.pod_reader import PodReader
from navarch.model.spec import JobSpec, TaskSpec

Text = dict[str, str]


def member(name: str, owner: tuple[str, str], labels: Text, annotations: Text | None = None, created: int = 0) -> TaskSpec:
    metadata = {
        "name": name,
        "namespace": "team",
        "labels": labels,
        "annotations": annotations or {},
        "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
        "ownerReferences": [{"kind": owner[0], "name": owner[1], "uid": "u", "controller": True}],
    }
    pod = from_manifest({"metadata": metadata, "spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "c"}]}}, Pod)
    task = PodReader(Settings()).read(pod)
    assert task is not None
    return task


def trainer(role: str, index: int, kind: str = "PyTorchJob", job: str = "llm") -> TaskSpec:
    labels = {"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": str(index)}
    return member(f"{job}-{role}-{index}", (kind, job), labels, created=index + (role == "worker"))


def job_named(kind: str, field: str, name: str = "llm", **more: object) -> WorkloadSpec:
    role = "Launcher" if kind == "MPIJob" else "Master"
    spec = {field: {role: {"replicas": 1}, "Worker": {"replicas": 2}}, **more}
    metadata = {"name": name, "namespace": "team", "creationTimestamp": "2025-12-31T00:00:00Z"}
    return read_kubeflow(kind, from_manifest({"metadata": metadata, "spec": spec}, KubeflowJob))


PYTORCH = job_named("PyTorchJob", "pytorchReplicaSpecs")


def shape(job: JobSpec | None) -> tuple[int, list[tuple[str, int]]]:
    assert job is not None
    return job.min_member, [(part.name, part.min_member) for part in job.sub_groups]


def groups() -> ShadowGroups:
    return ShadowGroups(Settings(), {}, {})


WHOLE = (3, [("master", 1), ("worker", 2)])


def test_an_owner_that_comes_after_its_pods() -> None:
    shadows = groups()
    first = shadows.put(trainer("worker", 0))
    assert shape(first) == (1, [("worker", 0)]), "its size is not known yet"
    assert shape(shadows.put(trainer("master", 0))) == (1, [("master", 0), ("worker", 0)])
    assert shadows.put(trainer("worker", 1)) is None
    (job,) = shadows.put_workload(PYTORCH)
    assert shape(job) == WHOLE
    assert first is not None and job.key == first.key and job.uid == first.uid
    assert shadows.put_workload(PYTORCH) == [], "nothing new"


def test_an_owner_that_comes_first() -> None:
    shadows = groups()
    assert shadows.put_workload(PYTORCH) == []
    assert shape(shadows.put(trainer("worker", 0))) == WHOLE


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_order_in_which_things_are_learned_of_does_not_matter(order: tuple[int, ...]) -> None:
    known: list[TaskSpec | WorkloadSpec] = [PYTORCH, trainer("master", 0), trainer("worker", 0), trainer("worker", 1)]
    shadows, last = groups(), None
    for i in order:
        event = known[i]
        made = shadows.put_workload(event) if isinstance(event, WorkloadSpec) else [shadows.put(event)]
        last = next((job for job in made if job is not None), last)
    straight = groups()
    straight.put_workload(PYTORCH)
    assert last == straight.put(trainer("master", 0))


def test_an_owner_that_changes_its_mind() -> None:
    shadows = groups()
    shadows.put_workload(PYTORCH)
    shadows.put(trainer("worker", 0))
    (job,) = shadows.put_workload(replace(PYTORCH, labels={"kai.scheduler/queue": "other"}))
    assert job.queue == "other"


def test_a_gang_stays_one_while_its_owner_is_deleted() -> None:
    """Its pods go with it; meanwhile none of them may start alone."""
    shadows = groups()
    shadows.put_workload(PYTORCH)
    shadows.put(trainer("master", 0))
    worker = trainer("worker", 0)
    shadows.put(worker)
    shadows.owners.remove(PYTORCH)
    job, gone = shadows.remove(worker.job, trainer("master", 0).uid)
    assert not gone and (job is None or shape(job) == WHOLE)
    assert shadows.remove(worker.job, worker.uid) == (None, True)
    assert shape(shadows.put(worker)) == (1, [("worker", 0)]), "the next of the name is another"


def test_a_group_keeps_its_age_when_its_oldest_pod_goes() -> None:
    shadows = groups()
    shadows.put_workload(PYTORCH)
    before = shadows.put(trainer("worker", 0))
    shadows.put(trainer("worker", 1))
    job, gone = shadows.remove("team/pytorchjob/llm", trainer("worker", 0).uid)
    assert before is not None and not gone
    assert job is None or (job.key, job.uid, job.created) == (before.key, before.uid, before.created)


def test_a_launcher_counts_once_it_is_there() -> None:
    shadows = groups()
    shadows.put_workload(job_named("MPIJob", "mpiReplicaSpecs", launcherCreationPolicy="WaitForWorkersReady"))
    assert shape(shadows.put(trainer("worker", 0, "MPIJob"))) == (2, [])
    launcher = trainer("launcher", 0, "MPIJob")
    assert shape(shadows.put(launcher)) == (3, [])
    job, _ = shadows.remove(launcher.job, launcher.uid)
    assert shape(job) == (2, [])


@pytest.mark.parametrize(("policy", "alone"), [("LeaderReady", 1), ("LeaderCreated", 3)])
def test_workers_that_wait_for_their_leader(policy: str, alone: int) -> None:
    lws = "leaderworkerset.sigs.k8s.io/"
    manifest = {
        "metadata": {"name": "v", "namespace": "team"},
        "spec": {"leaderWorkerTemplate": {"size": 3}, "startupPolicy": policy},
    }
    shadows = groups()
    shadows.put_workload(read_leader_worker_set(from_manifest(manifest, LeaderWorkerSet), Settings()))

    def pod(index: int) -> TaskSpec:
        labels = {f"{lws}name": "v", f"{lws}group-index": "0", f"{lws}worker-index": str(index)}
        return member(f"v-0-{index}", ("StatefulSet", "v"), labels, {f"{lws}size": "3"}, index)

    leader = shadows.put(pod(0))
    assert leader is not None and leader.min_member == alone
    if policy == "LeaderReady":
        assert shape(leader) == (1, [("leader", 1)])
        assert shape(shadows.put(pod(1))) == (3, [("leader", 1), ("workers", 2)])


def test_pods_of_a_part_that_the_owner_does_not_name_can_start() -> None:
    manifest = {"metadata": {"name": "r", "namespace": "team"}, "spec": {"workerGroupSpecs": []}}
    shadows = groups()
    shadows.put_workload(read_ray_cluster(from_manifest(manifest, RayCluster), Settings()))
    labels = {"ray.io/cluster": "r", "ray.io/group": "late"}
    assert shape(shadows.put(member("r-late-0", ("RayCluster", "r"), labels))) == (1, [("headgroup", 1), ("late", 0)])


def test_a_pod_that_says_the_minimum_is_in_no_part() -> None:
    shadows = groups()
    labels = {"training.kubeflow.org/replica-type": "worker"}
    task = member("w", ("PyTorchJob", "llm"), labels, {"kai.scheduler/batch-min-member": "4"})
    assert task.sub_group == ""
    assert shape(shadows.put(task)) == (4, [])
    shadows.put_workload(PYTORCH)
    assert shape(shadows.put(task) or shadows.put_workload(replace(PYTORCH, labels={"project": "p"}))[0]) == (4, [])


def test_parts_are_for_pods_that_kai_would_group() -> None:
    labels = {"training.kubeflow.org/replica-type": "worker"}
    named = {"scheduling.k8s.io/group-name": "g"}
    assert member("w", ("PyTorchJob", "llm"), labels, named).sub_group == "", "it is in a group of its own"
    plain = from_manifest({"metadata": {"name": "p", "labels": labels}, "spec": {"containers": [{"name": "c"}]}}, Pod)
    task = PodReader(Settings()).read(plain)
    assert task is not None and task.sub_group == ""


def test_owners_that_own_each_other_end_somewhere() -> None:
    shadows = groups()
    for name, above in (("a", "b"), ("b", "a")):
        shadows.put_workload(WorkloadSpec("Thing", "team", name, owner=("Thing", above), labels={"kai.scheduler/queue": name}))
    job = shadows.put(member("p", ("Thing", "a"), {}))
    assert job is not None and job.queue in ("a", "b")
