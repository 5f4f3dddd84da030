"""Task-topology on random jobs: scores and orders equal those of a slow reference, also while pods are placed and taken back."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.task_topology import Group, Pod, order, score
from tests.worlds.plugin_session import World, job_of

from navarch.engine.session import Session
from navarch.model.status import TaskStatus
from navarch.plugins.volcano.task_topology.annotations import AFFINITY, ANTI_AFFINITY, TASK_ORDER
from navarch.plugins.volcano.task_topology.plugin import TaskTopology

ROLES = ("ps", "worker", "eval", "chief")
NODES = {"n0": (4000, 8192, 9), "n1": (8000, 4096, 110), "n2": (3000, 9216, 3)}


def drawn(seed: int) -> tuple[Group, list[Pod]]:
    draw = Random(seed)
    pods = []
    for role in ROLES:
        for number in range(draw.randint(0, 4)):
            request = (draw.choice((500, 1000, 1500)), draw.choice((512, 1024, 2048)), 1)
            pods.append(Pod(f"j-{role}-{number}", role, request, draw.choice(("", "", "", "n0", "n1"))))
    present = sorted({pod.role for pod in pods})
    terms = [
        [draw.sample(present, draw.randint(1, min(3, len(present)))) for _ in range(draw.randint(0, 2))] if present else []
        for _ in range(2)
    ]
    return Group(terms[0], terms[1], draw.sample(present, draw.randint(0, len(present)))), pods


def session_of(group: Group, pods: list[Pod]) -> Session:
    named = ((AFFINITY, group.near), (ANTI_AFFINITY, group.apart))
    texts = {name: ";".join(",".join(term) for term in terms) for name, terms in named}
    texts[TASK_ORDER] = ",".join(group.order)
    made = World().queue("q").job("j", annotations={name: text for name, text in texts.items() if text})
    for name, (cpu, memory, count) in NODES.items():
        made.node(name, cpu=f"{cpu}m", memory=f"{memory}Mi", pods=count)
    for pod in pods:
        cpu, memory, _ = pod.request
        status = TaskStatus.RUNNING if pod.node else TaskStatus.PENDING
        given = {"name": pod.name, "uid": pod.name, "role": pod.role, "cpu": f"{cpu}m", "memory": f"{memory}Mi"}
        made.pods("j", 1, pod.node, status=status, **given)
    return made.session(TaskTopology)


def check(session: Session, group: Group, pods: list[Pod], now: dict[str, str]) -> None:
    rows = {session.task(row).name: row for row in job_of(session, "j").tasks}
    load = {name: [0, 0, 0] for name in NODES}
    for pod in pods:
        if pod.name in now:
            load[now[pod.name]] = [a + b for a, b in zip(load[now[pod.name]], pod.request)]
    for pod in (p for p in pods if p.name not in now):
        view = session.view(session.class_of(rows[pod.name]))
        totals = view.totals(view.feasible())
        for node, has in NODES.items():
            room = tuple(a - b for a, b in zip(has, load[node]))
            wanted = score(group, pods, now, pod, node, room)
            assert totals[session.nodes.names.index(node)] == pytest.approx(wanted), (pod.name, node)
    waiting = [row for name, row in rows.items() if name not in now]
    plugin = session.plugins[0]
    assert isinstance(plugin, TaskTopology)
    by_key = sorted(waiting, key=lambda row: (plugin.task_order(row), session.task(row).name))
    assert [session.task(row).name for row in by_key] == order(group, pods, now)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_scores_and_order_follow_placements(seed: int) -> None:
    draw = Random(seed)
    group, pods = drawn(seed)
    session = session_of(group, pods)
    plugin = session.plugins[0]
    assert isinstance(plugin, TaskTopology)
    if job_of(session, "j").row not in plugin.jobs:
        assert not (group.near or group.apart or group.order) or all(pod.node for pod in pods), group
        return
    now = {pod.name: pod.node for pod in pods if pod.node}
    check(session, group, pods, now)
    job = job_of(session, "j")
    rows = {session.task(row).name: row for row in job.tasks}
    statement = session.statement()
    for pod in draw.sample([p for p in pods if not p.node], k=min(4, sum(not p.node for p in pods))):
        node = draw.choice(sorted(NODES))
        statement.allocate(job, [rows[pod.name]], [session.nodes.names.index(node)], session.class_of(rows[pod.name]))
        now[pod.name] = node
    check(session, group, pods, now)
    statement.discard()
    check(session, group, pods, {pod.name: pod.node for pod in pods if pod.node})
