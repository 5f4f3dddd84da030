"""vGPU cards on random nodes: fits, scores and cards equal those of a slow reference, also while pods are placed and taken back."""

from __future__ import annotations

from copy import deepcopy
from math import floor
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.vgpu import Ask, Card, Pod, give, take_back
from tests.worlds.plugin_session import World, job_of, place_in_steps

from navarch.engine.session import Session
from navarch.model.registered_cards import REGISTER, VGPU_CORES, VGPU_IDS, VGPU_MEMORY, VGPU_NUMBER, read_vgpu_ids
from navarch.model.spec import CardRequest, VgpuRequest
from navarch.plugins.volcano.deviceshare.plugin import POLICY, VGPU, WEIGHT, DeviceShare

KINDS = ("NVIDIA-A100", "NVIDIA-T4", "Other-X")
Nodes = dict[str, list[Card]]


def drawn(seed: int) -> tuple[Nodes, list[Pod]]:
    draw = Random(seed)
    nodes = {
        f"n{i}": [
            Card(f"GPU-{i}-{c}", draw.choice((1, 2, 10)), draw.choice((8000, 16000)), draw.choice(KINDS))
            for c in range(draw.randint(1, 4))
        ]
        for i in range(draw.randint(1, 4))
    }
    kinds = [(_asks(draw), draw.choice(("", "", "a100"))) for _ in range(3)]
    return nodes, [Pod(f"j-{n}", *draw.choice(kinds)) for n in range(draw.randint(2, 8))]


def _asks(draw: Random) -> tuple[Ask, ...]:
    return tuple(
        Ask(draw.choice((0, 1, 1, 2, 2)), draw.choice((0, 1000, 5000, 9000)), draw.choice((0, 10, 50, 100)))
        for _ in range(draw.randint(1, 2))
    )


def session_of(nodes: Nodes, pods: list[Pod], policy: str) -> Session:
    made = World().queue("q").job("j")
    offered: dict[str, Any] = {"cpu": 64, VGPU_NUMBER: 100, VGPU_MEMORY: 10**6, VGPU_CORES: 1000}
    for name, cards in nodes.items():
        text = "".join(f"{c.uuid},{c.most},{c.memory},{c.kind},true,hami-core:" for c in cards)
        made.node(name, annotations={REGISTER: text}, **offered)
    for pod in pods:
        vgpus = tuple(VgpuRequest(ask.count, ask.memory, ask.cores) for ask in pod.asks)
        hints = (("nvidia.com/use-gputype", pod.kind),) if pod.kind else ()
        made.pods("j", 1, name=pod.name, uid=pod.name, cards=CardRequest(vgpus), hints=hints, cpu=1)
    return made.session(DeviceShare, arguments={VGPU: True, POLICY: policy, WEIGHT: 1})


def check(session: Session, nodes: Nodes, pods: list[Pod], policy: str) -> None:
    rows = {session.task(row).name: row for row in job_of(session, "j").tasks}
    for pod in pods:
        view = session.view(session.class_of(rows[pod.name]))
        fits, scores = view.feasible(), view.totals(view.feasible())
        for number, name in enumerate(session.nodes.names):
            found = give(deepcopy(nodes[name]), pod, policy)
            assert bool(fits[number]) == (found is not None), (pod, name)
            if found is not None:
                assert scores[number] == floor(found[1] + 0.5), (pod, name)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(("", "binpack", "spread")))
def test_cards_follow_placements(seed: int, policy: str) -> None:
    draw = Random(seed)
    nodes, pods = drawn(seed)
    session = session_of(nodes, pods, policy)
    job = job_of(session, "j")
    rows = {session.task(row).name: row for row in job.tasks}
    check(session, nodes, pods, policy)
    statement = session.statement()
    for pod in draw.sample(pods, k=len(pods) // 2):
        task = session.class_of(rows[pod.name])
        open_to = np.flatnonzero(session.view(task).feasible()).tolist()
        if open_to:
            row = draw.choice(open_to)
            statement.allocate(job, [rows[pod.name]], [row], task)
            found = give(nodes[session.nodes.names[row]], pod, policy)
            assert found is not None
            written = read_vgpu_ids(session.bind_annotations[rows[pod.name]][VGPU_IDS]) or ((),)
            assert [[(card.uuid, card.memory, card.cores) for card in each] for each in written] == found[0]
    check(session, nodes, pods, policy)
    statement.discard()
    assert not session.bind_annotations
    for cards in nodes.values():
        for pod in pods:
            take_back(cards, pod.name)
    check(session, nodes, pods, policy)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(("", "binpack", "spread")))
def test_a_run_equals_one_by_one(seed: int, policy: str) -> None:
    """A run of equal pods is placed in one step by ladders; one by one gives the same nodes and cards."""
    nodes, pods = drawn(seed)
    equal = [Pod(f"j-{n}", pods[0].asks, pods[0].kind) for n in range(6)]
    decisions = []
    for at_once in (1, len(equal)):
        session = session_of(nodes, equal, policy)
        placed = place_in_steps(session, "j", at_once)
        decisions.append([(session.task(task).name, node, session.bind_annotations[task][VGPU_IDS]) for task, node in placed])
    assert decisions[0] == decisions[1]


@pytest.mark.parametrize("policy", ["", "binpack", "spread"])
def test_an_evicted_pod_promises_its_cards_and_does_not_give_them_yet(policy: str) -> None:
    nodes = {"n0": [Card("GPU-0", 10, 8000, "NVIDIA-T4")]}
    session = session_of(nodes, [Pod("j-0", (Ask(1, 8000, 0),)), Pod("j-1", (Ask(1, 8000, 0),))], policy)
    job = job_of(session, "j")
    first = next(iter(job.tasks))
    task = session.class_of(first)
    statement = session.statement()
    statement.allocate(job, [first], [0], task)
    assert not session.view(task).feasible().any()
    statement.commit()
    eviction = session.statement()
    eviction.evict(first)
    view = session.view(task)
    assert view.choose(1) == ([0], True)
    eviction.discard()
    assert view.choose(1) == ([], False)
