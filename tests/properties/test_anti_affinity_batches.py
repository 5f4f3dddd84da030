"""Tasks that keep out of each other's way are placed in one step, and stand where they would if placed one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.worlds.placement import parts, place, plugin_of
from tests.worlds.small_cluster import open_session, shape

from navarch.engine.placement.class_view import ClassView
from navarch.engine.session import Session
from navarch.model.cluster import Cluster
from navarch.model.resources import requests_from
from navarch.model.spec import JobSpec, LabelSelector, NodeSpec, PodAffinity, PodTerm, QueueSpec, Requirement, TaskSpec
from navarch.model.status import TaskStatus
from navarch.plugins.gang import Gang
from navarch.plugins.predicates.plugin import Predicates

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def about(key: str, app: str, *, anywhere: bool = False) -> PodTerm:
    """Pods with a label; `anywhere`: of whatever namespace."""
    selector = LabelSelector((Requirement("app", "In", (app,)),))
    return PodTerm(key, selector, () if anywhere else ("ns",), LabelSelector() if anywhere else None)


APART = st.builds(about, st.sampled_from((HOST, ZONE)), st.sampled_from(("mine", "other")), anywhere=st.booleans())
RULES = st.builds(
    PodAffinity,
    required=st.lists(st.builds(about, st.just(ZONE), st.sampled_from(("mine", "other"))), max_size=1).map(tuple),
    anti_required=st.lists(APART, max_size=2).map(tuple),
)
NODES = st.lists(st.tuples(st.sampled_from(("1", "2", "5")), st.sampled_from(("", "a", "b")), st.booleans()), min_size=1, max_size=8)
RUNNING = st.lists(st.tuples(st.integers(0, 7), st.sampled_from(("mine", "other")), RULES), max_size=3)


def session_of(
    nodes: list[tuple[str, str, bool]],
    running: list[tuple[int, str, PodAffinity]],
    rule: PodAffinity,
    count: int,
    chosen: frozenset[str],
    names: list[str] | None = None,
) -> Session:
    """Nodes by (cpu, zone or none, whether the host is labelled); pods that run; and a gang with a rule."""
    cluster = Cluster()
    cluster.put_queue(QueueSpec("default", state="Open"))
    names = names or [f"n{i}{'ab'[i % 2] * i}" for i in range(len(nodes))]
    for name, (cpu, zone, named) in zip(names, nodes):
        labels = ({ZONE: zone} if zone else {}) | ({HOST: name} if named else {})
        cluster.put_node(NodeSpec(name, allocatable=requests_from({"cpu": cpu, "memory": "9Gi", "pods": 9}), labels=labels))
    cluster.put_job(JobSpec("ns/gang", "default", min_member=count, namespace="ns", name="gang", phase="Inqueue"))
    kind = replace(shape(cpu="250m"), namespace="ns", pod_affinity=rule)
    for i in range(count):
        cluster.put_task(TaskSpec(f"g{i:02d}", "ns", f"g{i:02d}", kind, job="ns/gang", labels={"app": "mine"}))
    for i, (node, app, theirs) in enumerate(running):
        small = replace(shape(cpu="100m"), namespace="ns", pod_affinity=theirs)
        where = names[node % len(names)]
        cluster.put_task(TaskSpec(f"r{i}", "ns", f"r{i}", small, labels={"app": app}, node=where, status=TaskStatus.RUNNING))
    return open_session(cluster, Gang, Predicates, plugin_of(chosen))


@given(NODES, RUNNING, RULES, st.integers(1, 12), parts)
def test_a_run_apart_equals_single_steps(
    nodes: list[tuple[str, str, bool]],
    running: list[tuple[int, str, PodAffinity]],
    rule: PodAffinity,
    count: int,
    chosen: frozenset[str],
) -> None:
    together, single = (session_of(nodes, running, rule, count, chosen) for _ in range(2))
    assert place(together, count, step=count) == place(single, count, step=1)


def test_a_run_stops_where_a_lost_node_changes_the_scores_of_the_others() -> None:
    """By letters 100, 20 and 10; the last is filled to 40: it would be second, were the scale not set by the first."""
    rule = PodAffinity(anti_required=(about(HOST, "mine"),))
    fuller = [(2, "other", PodAffinity())] * 4
    session = session_of([("1", "", True)] * 3, fuller, rule, 3, frozenset({"named", "fullest"}), ["abcdefghij", "kl", "m"])
    assert [name for name, _ in place(session, 3, step=3)] == ["abcdefghij", "kl", "m"]


@pytest.mark.parametrize(
    ("rule", "looks", "placed"),
    [
        (PodAffinity(anti_required=(about(HOST, "mine"),)), 2, 6),
        (PodAffinity(anti_required=(about(HOST, "other"),)), 1, 8),
        (PodAffinity(anti_required=(about(ZONE, "mine"),)), 2, 2),
        (PodAffinity(required=(about(ZONE, "mine"),)), 2, 8),
        (PodAffinity(required=(about(ZONE, "mine"),), anti_required=(about(HOST, "mine"),)), 3, 3),
    ],
)
def test_equal_tasks_are_looked_at_together(monkeypatch: pytest.MonkeyPatch, rule: PodAffinity, looks: int, placed: int) -> None:
    session = session_of([("5", "ab"[i % 2], True) for i in range(6)], [], rule, 8, frozenset())
    asked = 0
    choose = ClassView.choose

    def counted(view: ClassView, count: int) -> tuple[list[int], bool]:
        nonlocal asked
        asked += 1
        return choose(view, count)

    monkeypatch.setattr(ClassView, "choose", counted)
    assert len(place(session, 8, step=8)) == placed
    assert asked == looks, "the first of its kind is placed alone; what is left over is looked at once more, in vain"
