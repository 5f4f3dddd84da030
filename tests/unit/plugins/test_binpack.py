"""Binpack: fuller nodes score higher, by the formula users know."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds.plugin_session import GPU, World, job_of, place

from navarch.engine.session import Session
from navarch.plugins.binpack import Binpack


def world() -> World:
    made = World().node("empty", cpu=4, memory="8Gi", gpu=2).node("half", cpu=4, memory="8Gi", gpu=2)
    made.node("tiny", cpu=1, memory="8Gi")
    return made.queue("q").job("old").pods("old", cpu=2, memory="2Gi", gpu=1, node="half").job("new")


def scores(session: Session, job: str = "new") -> dict[str, float]:
    view = session.view(session.class_of(job_of(session, job).tasks[0]))
    totals = view.totals(np.ones(len(session.nodes), dtype=bool))
    return dict(zip(session.nodes.names, totals.tolist()))


def test_the_mean_filling_of_requested_resources_decides() -> None:
    session = world().pods("new", cpu=1, memory="2Gi").session(Binpack)
    assert scores(session) == {
        "empty": pytest.approx(100 * (1 / 4 + 2 / 8) / 2),
        "half": pytest.approx(100 * (3 / 4 + 4 / 8) / 2),
        "tiny": pytest.approx(100 * (1 / 1 + 2 / 8) / 2),
    }


def test_weights_and_listed_resources_count() -> None:
    arguments = {
        "binpack.weight": 10,
        "binpack.cpu": 2,
        "binpack.memory": 0,
        "binpack.resources": f"{GPU}, example.com/none",
        f"binpack.resources.{GPU}": 3,
    }
    session = world().pods("new", cpu=1, memory="2Gi", gpu=1).session(Binpack, arguments=arguments)
    found = scores(session)
    assert found["empty"] == pytest.approx(1000 * (2 * 1 / 4 + 3 * 1 / 2) / 5)
    assert found["half"] == pytest.approx(1000 * (2 * 3 / 4 + 3 * 2 / 2) / 5)
    assert found["tiny"] == pytest.approx(1000 * (2 * 1 / 1) / 5), "no such device: its weight counts, its score does not"


def test_a_node_that_overflows_scores_nothing() -> None:
    session = world().pods("new", cpu=3, memory="1Gi").session(Binpack)
    assert scores(session)["half"] == 0


def test_promised_pods_do_not_count_and_placed_ones_do() -> None:
    session = world().pods("new", 3, cpu=1).session(Binpack)
    before = scores(session)["empty"]
    place(session, "new", "empty", pipelined=True)
    assert scores(session)["empty"] == before
    place(session, "new", "empty")
    assert scores(session)["empty"] == 2 * before


def test_equal_tasks_fill_a_node_before_the_next() -> None:
    session = world().pods("new", 6, cpu=1).session(Binpack)
    task = session.class_of(job_of(session, "new").tasks[0])
    chosen, pipelined = session.view(task).choose(6)
    names = [session.nodes.names[row] for row in chosen]
    assert names == ["tiny", "half", "half", "empty", "empty", "empty"] and not pipelined


def test_a_task_without_requests_is_not_scored() -> None:
    session = world().pods("new").session(Binpack)
    assert set(scores(session).values()) == {0.0}


def test_weight_zero_switches_it_off() -> None:
    session = world().pods("new", cpu=1).session(Binpack, arguments={"binpack.weight": 0})
    assert session.scorers == []
