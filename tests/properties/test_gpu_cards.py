"""GPU cards shared by memory or given out whole: fits and cards equal those of a slow reference, also while pods come and go."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.gpu_cards import Card, Pod, cards_of, give, take_back
from tests.worlds.plugin_session import World, job_of, place_in_steps

from navarch.engine.session import Session
from navarch.model.registered_cards import GPU_INDEX, GPU_MEMORY, GPU_NUMBER, UNHEALTHY
from navarch.model.spec import CardRequest
from navarch.plugins.volcano.deviceshare.plugin import NUMBER, SHARING, DeviceShare

Nodes = dict[str, list[Card]]


class Drawn:
    """Random nodes with cards, pods on some of them, and pods that wait."""

    def __init__(self, seed: int, *, by_memory: bool) -> None:
        draw = Random(seed)
        self.by_memory = by_memory
        self.offered: dict[str, tuple[dict[str, Any], str]] = {}
        self.nodes: Nodes = {}
        for i in range(draw.randint(1, 4)):
            number, total = draw.randint(1, 5), draw.choice((16000, 24001, 7))
            broken = draw.choice(("", "", "0", "1,x,7", " 1"))
            self.offered[f"n{i}"] = ({"cpu": 64, GPU_MEMORY: total, GPU_NUMBER: number}, broken)
            self.nodes[f"n{i}"] = cards_of(total, number, broken)
        self.running = [(f"r-{n}", draw.choice(list(self.nodes)), draw.choice(("0", "1", "0,1", "x", "", "9"))) for n in range(3)]
        kinds = [self._asked(draw) for _ in range(3)]
        self.pods = [Pod(f"j-{n}", *draw.choice(kinds)) for n in range(draw.randint(2, 8))]
        self.running_pods = {name: Pod(name, *draw.choice(kinds)) for name, _, _ in self.running}
        for name, node, index in self.running:
            self._hold(name, node, index)

    def _asked(self, draw: Random) -> tuple[int, int]:
        return (draw.choice((1000, 5000, 5333, 8000)), 0) if self.by_memory else (0, draw.randint(1, 3))

    def _hold(self, name: str, node: str, index: str) -> None:
        """A running pod holds the cards that its annotation names, where all of the annotation can be read."""
        parts = index.split(",")
        if all(part.isdigit() for part in parts):
            for card in self.nodes[node]:
                if str(card.number) in parts:
                    card.used.append((name, self.running_pods[name].memory))

    def session(self) -> Session:
        made = World().queue("q").job("j").job("r")
        for name, (offered, broken) in self.offered.items():
            made.node(name, annotations={UNHEALTHY: broken} if broken else {}, **offered)
        for name, node, index in self.running:
            asked = self.running_pods[name]
            cards = CardRequest((), asked.memory, asked.cards)
            made.pods("r", 1, node=node, name=name, uid=name, cards=cards, annotations={GPU_INDEX: index}, cpu=1)
        for pod in self.pods:
            made.pods("j", 1, name=pod.name, uid=pod.name, cards=CardRequest((), pod.memory, pod.cards), cpu=1)
        arguments = {SHARING: self.by_memory, NUMBER: not self.by_memory}
        return made.session(DeviceShare, arguments=arguments)


def check(session: Session, nodes: Nodes, pods: list[Pod]) -> None:
    rows = {session.task(row).name: row for row in job_of(session, "j").tasks}
    for pod in pods:
        fits = session.view(session.class_of(rows[pod.name])).feasible()
        for number, name in enumerate(session.nodes.names):
            assert bool(fits[number]) == (give(deepcopy(nodes[name]), pod) is not None), (pod, name)


@settings(max_examples=80)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_cards_follow_placements(seed: int, by_memory: bool) -> None:
    draw, drawn = Random(seed), Drawn(seed, by_memory=by_memory)
    nodes, session = drawn.nodes, drawn.session()
    job = job_of(session, "j")
    rows = {session.task(row).name: row for row in job.tasks}
    check(session, nodes, drawn.pods)
    statement = session.statement()
    for pod in draw.sample(drawn.pods, k=len(drawn.pods) // 2):
        task = session.class_of(rows[pod.name])
        open_to = np.flatnonzero(session.view(task).feasible()).tolist()
        if open_to:
            row = draw.choice(open_to)
            statement.allocate(job, [rows[pod.name]], [row], task)
            found = give(nodes[session.nodes.names[row]], pod)
            assert found is not None
            assert session.bind_annotations[rows[pod.name]][GPU_INDEX] == ",".join(map(str, found))
    check(session, nodes, drawn.pods)
    statement.discard()
    assert not session.bind_annotations
    for cards in nodes.values():
        for pod in drawn.pods:
            take_back(cards, pod.name)
    check(session, nodes, drawn.pods)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_run_equals_one_by_one(seed: int, by_memory: bool) -> None:
    drawn = Drawn(seed, by_memory=by_memory)
    first = drawn.pods[0]
    drawn.pods = [Pod(f"j-{n}", first.memory, first.cards) for n in range(6)]
    decisions = []
    for at_once in (1, len(drawn.pods)):
        session = drawn.session()
        placed = place_in_steps(session, "j", at_once)
        decisions.append([(session.task(task).name, node, session.bind_annotations[task][GPU_INDEX]) for task, node in placed])
    assert decisions[0] == decisions[1]
