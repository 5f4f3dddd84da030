"""Shared devices: what sitting down, leaving and promises do to groups and to a node's whole devices."""

from __future__ import annotations

import pytest

from navarch.engine.policy import PRESETS, load
from navarch.engine.session import Session
from navarch.engine.statement import Statement
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import DeviceRequest, JobSpec, NodeSpec, QueueShare, QueueSpec, Shape, TaskSpec
from navarch.model.status import TaskStatus

FREE = QueueShare(-1.0, -1.0, 1.0)
GPU = "nvidia.com/gpu"


def session_with(*tasks: tuple[str, int, str], compat: str = "strict") -> Session:
    """One node with two GPUs of 100 MiB; tasks are (name, thousandths of a GPU, group or nothing)."""
    cluster = Cluster()
    allocatable = requests_from({"cpu": "8", "memory": "8Gi", "pods": "10", GPU: "2"})
    cluster.put_node(NodeSpec("n", allocatable=allocatable, labels={"nvidia.com/gpu.memory": "100"}))
    cluster.put_queue(QueueSpec("q", state="Open", shares={"cpu": FREE, "memory": FREE, "gpu": FREE}))
    for name, fraction, group in tasks:
        cluster.put_job(JobSpec(f"ns/{name}", "q", 1, "ns", name, name, "kai", preemptable=True))
        shape = Shape(requests=requests_from({"cpu": "1"}), devices=DeviceRequest(fraction=fraction))
        status = TaskStatus.RUNNING if group else TaskStatus.PENDING
        where = "n" if group else ""
        groups = (group,) if group else ()
        cluster.put_task(TaskSpec(name, "ns", name, shape, f"ns/{name}", where, status, gpu_groups=groups))
    policy = load({**PRESETS["kai"], "compat": compat}, installed().catalogue(), "test")
    session = Session(cluster.snapshot(), policy, installed(), 0.0)
    session.share_devices()
    return session


def whole(session: Session) -> tuple[int, int, int]:
    """GPUs that are idle, being released, and promised."""
    dim = session.snapshot.resource_names.index(GPU)
    nodes = session.nodes
    idle, releasing, promised = (int(table[dim, 0]) // 1000 for table in (nodes.idle, nodes.releasing, nodes.pipelined))
    return idle, releasing, promised


def row(session: Session, name: str) -> int:
    return next(i for i, spec in enumerate(session.snapshot.tasks.specs) if spec is not None and spec.name == name)


def put(statement: Statement, name: str, groups: tuple[str, ...], *, promised: bool = False) -> None:
    session = statement.session
    task = row(session, name)
    job = session.job_of(task)
    assert job is not None
    place = statement.pipeline if promised else statement.allocate
    place(job, [task], [0], session.class_of(task), groups)


def test_sharers_of_one_group_take_one_device() -> None:
    assert whole(session_with(("a", 500, "x"), ("b", 400, "x"))) == (1, 0, 0)
    assert whole(session_with(("a", 500, "x"), ("b", 400, "y"))) == (0, 0, 0)


def test_the_fuller_group_with_room_is_chosen() -> None:
    session = session_with(("a", 500, "x"), ("b", 400, "y"), ("c", 500, ""), ("d", 600, ""), ("e", 200, ""))
    assert session.devices is not None
    statement = session.statement()
    for name, groups in (("c", ("x",)), ("d", ("y",))):
        assert session.devices.choose(session.class_of(row(session, name)), 0, now=True) == (groups, False)
        put(statement, name, groups)
    assert session.devices.choose(session.class_of(row(session, "e")), 0, now=True) is None
    assert not session.view(session.class_of(row(session, "e"))).future[0]


def test_a_device_is_released_once_all_of_its_sharers_leave() -> None:
    session = session_with(("a", 500, "x"), ("b", 400, "x"))
    statement = session.statement()
    statement.evict(row(session, "a"))
    assert whole(session) == (1, 0, 0)
    statement.evict(row(session, "b"))
    assert whole(session) == (1, 1, 0)
    statement.discard()
    assert whole(session) == (1, 0, 0)


def test_a_promised_group_takes_a_device_from_what_will_be_free_and_takes_in_others() -> None:
    session = session_with(("a", 500, ""), ("b", 500, ""), ("c", 500, ""))
    assert session.devices is not None
    statement = session.statement()
    put(statement, "a", ("new",), promised=True)
    assert whole(session) == (2, 0, 1)
    chosen = session.devices.choose(session.class_of(row(session, "b")), 0, now=True)
    assert chosen == (("new",), True)
    put(statement, "b", ("new",), promised=True)
    assert whole(session) == (2, 0, 1)
    chosen = session.devices.choose(session.class_of(row(session, "c")), 0, now=True)
    assert chosen is not None and chosen[0] != ("new",)
    statement.discard()
    assert whole(session) == (2, 0, 0) and not session.devices.used.any()


@pytest.mark.parametrize("same_node", [True, False])
def test_taking_back_a_move_restores_every_figure(same_node: bool) -> None:
    session = session_with(("a", 500, "x"), ("b", 400, "x"))
    assert session.devices is not None
    before = [column.copy() for column in (session.devices.used, session.devices.allocated, session.devices.releasing)]
    statement = session.statement()
    statement.evict(row(session, "a"))
    if same_node:
        put(statement, "a", ("new",), promised=True)
        assert session.devices.groups[row(session, "a")] == ("new",)
    else:
        statement.restore(row(session, "a"))
    statement.discard()
    after = (session.devices.used, session.devices.allocated, session.devices.releasing)
    assert all((was == now).all() for was, now in zip(before, after, strict=True))
    assert session.devices.groups[row(session, "a")] == ("x",)


def test_a_device_whose_last_sharer_leaves_beside_a_promise_hides_no_idle_one() -> None:
    session = session_with(("a", 500, "x"), ("b", 500, "x"), ("c", 500, ""), compat="kai")
    promise = session.statement()
    put(promise, "c", ("y",), promised=True)
    assert whole(session) == (1, 0, 1)
    statement = session.statement()
    statement.evict(row(session, "a"))
    assert whole(session) == (1, 0, 1), "one sharer is left"
    statement.evict(row(session, "b"))
    assert whole(session) == (1, 1, 1)
    statement.discard()
    assert whole(session) == (1, 0, 1)


def test_a_single_sharer_hides_nothing() -> None:
    session = session_with(("a", 500, "x"), ("c", 500, ""), compat="kai")
    put(session.statement(), "c", ("y",), promised=True)
    session.statement().evict(row(session, "a"))
    assert whole(session) == (1, 1, 1)
