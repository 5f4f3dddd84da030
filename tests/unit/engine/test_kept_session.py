"""When the session of the last cycle goes on, and when the next cycle opens a new one."""

from __future__ import annotations

from tests.worlds.small_cluster import add_job, apply, binds, shape, task, with_nodes

from navarch.engine.cycle import decide
from navarch.engine.policy import Policy, preset
from navarch.engine.policy.load import load
from navarch.engine.record import CycleRecord
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


def test_a_node_that_becomes_overcommitted_is_out_where_the_policy_says_so() -> None:
    """Such nodes are left out when a session opens."""
    given = {"compat": "kube-batch", "actions": "allocate", "tiers": [{"plugins": [{"name": "predicates"}]}]}
    policy = load(given, REGISTRY.catalogue(), "policy")
    assert policy.semantics.overcommitted_nodes_are_out
    small, gpu = shape(cpu="500m"), shape(cpu="500m", **{"nvidia.com/gpu": 1})
    places = []
    for chained in (True, False):
        cluster = sixteen_nodes()
        cluster.put_task(task("g0", gpu, node="n00"))
        add_job(cluster, "a", [small])
        last = cluster.snapshot("listed")
        cycle(cluster, last, policy, 0.0)
        cluster.put_task(task("g1", gpu, node="n00"))
        add_job(cluster, "b", [small])
        last = cluster.snapshot("listed", instead_of=last if chained else None)
        places.append(binds(cycle(cluster, last, policy, 1.0)))
    assert places[0] == places[1]
    assert places[0]["b-0"] != "n00"
