"""When the session of the last cycle goes on, and when the next cycle opens a new one."""

from __future__ import annotations

import re

import pytest
from tests.worlds.small_cluster import add_job, apply, binds, shape, task, with_nodes

from navarch.actions.allocate import Allocate
from navarch.engine.containment.containment import CycleFailed, CycleTimeout
from navarch.engine.cycle import decide
from navarch.engine.job import Job
from navarch.engine.plugin import Plugin
from navarch.engine.policy import Policy, preset
from navarch.engine.policy.values import PluginOption
from navarch.engine.record import CycleRecord
from navarch.engine.registry import Registry
from navarch.engine.session import Session
from navarch.installed import installed
from navarch.model.cluster import Cluster
from navarch.model.snapshot import Snapshot

REGISTRY = installed()
FIFO = preset("fifo", REGISTRY.catalogue())


def sixteen_nodes() -> Cluster:
    """So many that the rows of a few changed nodes are copied, and the columns stay."""
    amounts: dict[str, str | int] = {"cpu": 2, "memory": "8Gi", "nvidia.com/gpu": 1}
    return with_nodes(*((f"n{number:02}", amounts) for number in range(16)))


def cycle(cluster: Cluster, snapshot: Snapshot, policy: Policy, now: float) -> CycleRecord:
    record = decide(snapshot, policy, REGISTRY, now)
    apply(cluster, record)
    return record


def test_a_session_goes_on_while_only_pods_change() -> None:
    cluster = sixteen_nodes()
    add_job(cluster, "a", [shape(cpu=2)])
    last = cluster.snapshot()
    cycle(cluster, last, FIFO, 0.0)
    kept = last.session
    assert kept is not None
    add_job(cluster, "b", [shape(cpu=2)])
    last = cluster.snapshot(instead_of=last)
    assert binds(cycle(cluster, last, FIFO, 1.0)) == {"b-0": "n01"}
    assert last.session is kept


def test_a_session_ends_when_another_was_opened_over_the_same_columns() -> None:
    cluster = sixteen_nodes()
    add_job(cluster, "a", [shape(cpu=2)])
    last = cluster.snapshot()
    cycle(cluster, last, FIFO, 0.0)
    last = cluster.snapshot(instead_of=last)
    kept = last.session
    assert kept is not None
    Session(last, FIFO, REGISTRY, 1.0).dissolve()
    cluster.put_task(task("taken", shape(cpu=2), node="n01"))
    add_job(cluster, "b", [shape(cpu=2)])
    last = cluster.snapshot(instead_of=last)
    assert binds(cycle(cluster, last, FIFO, 2.0)) == {"b-0": "n02"}
    assert last.session is not kept


def test_a_second_cycle_over_the_same_snapshot_opens_a_session() -> None:
    cluster = sixteen_nodes()
    add_job(cluster, "a", [shape(cpu=2)])
    snapshot = cluster.snapshot()
    decide(snapshot, FIFO, REGISTRY, 0.0)
    kept = snapshot.session
    assert kept is not None
    decide(snapshot, FIFO, REGISTRY, 0.0)
    assert snapshot.session is not kept


class LastFirst(Plugin):
    """Orders jobs by name, from z to a. It cannot go on in a further cycle."""

    name = "last-first"
    error: BaseException = ValueError("the state is lost")

    def next_cycle(self) -> bool:
        raise self.error

    def job_order(self, job: Job) -> int:
        return -ord(job.spec.name[0])


class Exits(LastFirst):
    """Orders jobs as well. It ends the process instead of going on."""

    error = SystemExit(1)

    def next_cycle(self) -> bool:
        raise self.error


class TakesTooLong(LastFirst):
    """Orders jobs as well. The cycle is interrupted while it goes on."""

    error = CycleTimeout()

    def next_cycle(self) -> bool:
        raise self.error


def second_cycle(kind: type[Plugin]) -> CycleRecord:
    """The second of two cycles, with two jobs and room for one."""
    registry, policy = Registry([kind], [Allocate]), Policy(("allocate",), ((PluginOption(kind.name),),))
    cluster = sixteen_nodes()
    for number in range(15):
        cluster.put_task(task(f"taken-{number}", shape(cpu=2), node=f"n{number:02}"))
    last = cluster.snapshot()
    decide(last, policy, registry, 0.0)
    assert last.session is not None
    for name in "az":
        add_job(cluster, name, [shape(cpu=2)])
    last = cluster.snapshot(instead_of=last)
    return decide(last, policy, registry, 1.0)


@pytest.mark.contained
@pytest.mark.parametrize(("kind", "error"), [(LastFirst, "ValueError: the state is lost"), (Exits, "SystemExit: 1")])
def test_a_plugin_that_cannot_go_on_is_opened_anew_and_keeps_its_orders(kind: type[Plugin], error: str) -> None:
    record = second_cycle(kind)
    assert binds(record) == {"z-0": "n15"}
    (warning,) = record.warnings
    where = r"plugin last-first \(test_kept_session.py:\d+\)"
    assert re.fullmatch(f"{where} failed in next_cycle: {error}; the cycle opens a new session", warning)
    assert not record.plugin_failures


@pytest.mark.contained
def test_a_time_out_while_a_plugin_goes_on_is_not_taken_for_its_failure() -> None:
    with pytest.raises(CycleFailed, match="too long"):
        second_cycle(TakesTooLong)
