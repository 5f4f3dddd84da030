"""Which jobs a failure costs their place, what they are told, and what cannot be contained."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np
import pytest
from tests.worlds.plugin_session import GPU, World

from navarch.actions.allocate import Allocate
from navarch.engine.action import Action
from navarch.engine.containment.containment import MOST_IN_NAMESPACE, MOST_RESTARTS, TOO_MANY
from navarch.engine.cycle import decide
from navarch.engine.figures import Figures
from navarch.engine.job import Job
from navarch.engine.node_functions import NodeFilter, Scope, TaskClass
from navarch.engine.plugin import Plugin
from navarch.engine.policy.compat import COMPAT
from navarch.engine.policy.values import PluginOption, Policy
from navarch.engine.queue import Queue
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.model.resources import BoolArray, requests_from
from navarch.model.spec import DeviceRequest, JobSpec, NodeSpec, Shape, TaskSpec

pytestmark = pytest.mark.contained


def world(*jobs: str, queue: str = "q") -> World:
    made = World().node("n", cpu=64).queue("q").queue("other")
    for job in jobs:
        made.job(job, queue).pods(job, 1, cpu=1)
    return made


def put(made: World, namespace: str) -> None:
    """A job x with one pod."""
    key = f"{namespace}/x"
    made.cluster.put_job(JobSpec(key, "q", namespace=namespace, name="x", phase="Inqueue"))
    requests = requests_from({"cpu": "1"})
    made.cluster.put_task(TaskSpec(uid=key, namespace=namespace, name="x-0", shape=Shape(requests=requests), job=key))


def run(made: World, kind: type[Plugin]) -> CycleRecord:
    policy = Policy(("allocate",), ((PluginOption(kind.name),),))
    return decide(made.cluster.snapshot(), policy, Registry([kind], [Allocate]), 0.0)


def failing(record: CycleRecord) -> list[str]:
    return [failure.job for failure in record.failures]


def bound(record: CycleRecord) -> list[str]:
    return sorted(bind.job for bind in record.binds)


class BadJob(Plugin):
    """Fails on jobs named bad"""

    name = "bad-job"

    def job_order(self, job: Job) -> int:
        if "bad" in job.key:
            raise ValueError(f"cannot order {job.key}\nat all")
        return 0


def test_the_job_is_told_and_the_others_are_placed() -> None:
    record = run(world("a", "bad", "c"), BadJob)
    assert bound(record) == ["ns/a", "ns/c"]
    (failure,) = record.failures
    assert failure.job == "ns/bad"
    assert re.fullmatch(r"plugin bad-job \(test_containment.py:\d+\)", failure.where)
    assert failure.error == "ValueError: cannot order ns/bad at all"
    assert "in job_order" in failure.traceback
    (told,) = (job for job in record.jobs if job.job == "ns/bad")
    (reason,) = told.reasons
    assert reason.code == "InternalError"
    assert reason.message.startswith(f"{failure.where} failed on this job, which is set aside for this cycle: ValueError: ")
    assert [refusal.message for refusal in told.refusals] == [reason.message]
    assert dict(told.pods) == {"Pending": 1}


def test_the_snapshot_is_as_before() -> None:
    made = world("a", "bad", "c")
    snapshot = made.cluster.snapshot()
    policy = Policy(("allocate",), ((PluginOption("bad-job"),),))
    decide(snapshot, policy, Registry([BadJob], [Allocate]), 0.0)
    assert not snapshot.jobs.left_out
    fresh = made.cluster.snapshot()
    assert snapshot.jobs.specs == fresh.jobs.specs
    assert snapshot.jobs.tasks == fresh.jobs.tasks
    for name in ("alive", "shape", "job"):
        assert np.array_equal(getattr(snapshot.tasks, name), getattr(fresh.tasks, name))
    for name in ("counts", "pending", "queue_pending", "queue_jobs", "has_min_resources"):
        assert np.array_equal(getattr(snapshot.jobs, name), getattr(fresh.jobs, name))


def gpu_world(*jobs: str) -> World:
    """A node with two GPUs, half of one taken. Each of the jobs wants a whole one."""
    made = World().node("n", cpu=64, gpu=2).node("broken", cpu=1).queue("q")
    made.job("half").pods("half", 1, node="n", cpu=1, devices=DeviceRequest(fraction=500), gpu_groups=("g1",))
    for job in jobs:
        made.job(job).pods(job, 1, cpu=1, gpu=1)
    return made


@pytest.mark.parametrize("left_out", [(), ("broken",)])
def test_a_restart_counts_shared_gpus_once(left_out: tuple[str, ...]) -> None:
    policy = Policy(("allocate",), ((PluginOption("bad-job"),),))
    snapshot = gpu_world("whole", "bad-1", "bad-2").cluster.snapshot()
    record = decide(snapshot, policy, Registry([BadJob], [Allocate]), 0.0, left_out_nodes=left_out)
    assert failing(record) == ["ns/bad-1", "ns/bad-2"]
    assert bound(record) == ["ns/whole"]


class ReleaseLost(Action):
    """Fails on the job bad; then looks what a node without GPUs would have if the pod on it left."""

    name = "release-lost"
    free: ClassVar[list[int]] = []

    def execute(self) -> None:
        session = self.session
        gpus, lost = session.snapshot.resource_names.index(GPU), session.class_of(0)
        session.nodes.release(0, lost.request, lost.footprint, 1)
        self.free.append(int(session.nodes.future_idle[gpus, 0]))
        for job in session.jobs_with_pending():
            if "bad" in job.key:
                raise ValueError


def test_a_restart_leaves_out_what_a_node_does_not_have() -> None:
    made = World().node("n", cpu=4, gpu=0).node("o", cpu=4, gpu=1).queue("q")
    made.job("lost").pods("lost", 1, node="n", cpu=1, gpu=1)
    made.job("bad").pods("bad", 1, cpu=1)
    ReleaseLost.free.clear()
    policy = Policy(("release-lost",), ((),), semantics=COMPAT["kai"])
    decide(made.cluster.snapshot(), policy, Registry([], [ReleaseLost]), 0.0)
    assert ReleaseLost.free == [0, 0]


def test_a_namespace_with_many_failures_is_set_aside_whole() -> None:
    made = world("a", *(f"bad{i}" for i in range(40)))
    put(made, "team")
    record = run(made, BadJob)
    assert bound(record) == ["team/x"]
    assert len(record.failures) == 41, "with the innocent one, after so many restarts"
    assert MOST_IN_NAMESPACE < MOST_RESTARTS


class BadShape(NodeFilter):
    name = "bad-shape"
    scope = Scope.STATIC

    def mask(self, task: TaskClass, at: Figures) -> BoolArray:
        if dict(task.shape.requests).get("cpu") == 2000:
            raise ZeroDivisionError
        return np.ones(at.used.shape[1], dtype=bool)


class BadShapes(Plugin):
    """Fails on pods that ask for two cores"""

    name = "bad-shapes"

    def node_filters(self) -> list[NodeFilter]:
        return [BadShape()]


def test_jobs_of_a_shape_that_fails_go_together() -> None:
    made = world("a")
    for number in range(30):
        made.job(f"two{number}").pods(f"two{number}", 1, cpu=2)
    record = run(made, BadShapes)
    assert bound(record) == ["ns/a"]
    assert len(record.failures) == 30
    assert {failure.where for failure in record.failures} == {record.failures[0].where}
    assert re.fullmatch(r"filter bad-shape \(test_containment.py:\d+\)", record.failures[0].where)


class BadQueue(Plugin):
    """Fails on a queue"""

    name = "bad-queue"

    def overused(self, queue: Queue) -> None:
        if queue.name == "other":
            raise KeyError("weight")


def test_a_queue_that_fails_costs_its_own_jobs_their_place() -> None:
    made = world("a", "b")
    made.job("c", "other").pods("c", 1, cpu=1)
    record = run(made, BadQueue)
    assert bound(record) == ["ns/a", "ns/b"]
    assert failing(record) == ["ns/c"]


class BadRunning(Plugin):
    """Fails on what a job does once it is looked at"""

    name = "bad-running"

    def job_valid(self, job: Job) -> None:
        if job.key == "ns/grows":
            raise RecursionError


def test_a_job_that_runs_keeps_its_pods_and_their_room() -> None:
    made = World().node("n", cpu=4).queue("q")
    made.job("grows", phase="Running").pods("grows", 3, cpu=1, node="n").pods("grows", 3, cpu=1)
    made.job("b").pods("b", 1, cpu=1).job("c").pods("c", 1, cpu=1)
    record = run(made, BadRunning)
    assert bound(record) == ["ns/b"], "one core is free"
    assert failing(record) == ["ns/grows"]
    (told,) = (job for job in record.jobs if job.job == "ns/grows")
    assert dict(told.pods) == {"Pending": 3, "Running": 3}


class BadNodes(Plugin):
    """Fails on nodes named bad"""

    name = "bad-nodes"

    def job_valid(self, job: Job) -> None:
        return None

    def open(self) -> None:
        for spec in self.session.nodes.specs:
            self.read(spec)

    def read(self, spec: NodeSpec) -> None:
        if spec.name.startswith("bad"):
            raise ValueError(spec.name)


def test_more_faulty_nodes_than_restarts_are_left_out_over_several_cycles() -> None:
    made = world("a")
    for number in range(MOST_RESTARTS + 4):
        made.node(f"bad{number:02}", cpu=64)
    first = run(made, BadNodes)
    assert (first.warnings[0], first.binds, len(first.node_failures)) == (TOO_MANY, [], MOST_RESTARTS + 1)
    policy, registry = Policy(("allocate",), ((PluginOption("bad-nodes"),),)), Registry([BadNodes], [Allocate])
    left_out = [failure.node for failure in first.node_failures]
    second = decide(made.cluster.snapshot(), policy, registry, 0.0, left_out_nodes=left_out)
    assert ([bind.node for bind in second.binds], len(second.node_failures)) == (["n"], 3)
