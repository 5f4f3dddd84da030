"""Task-topology: annotations and scores."""

from __future__ import annotations

import numpy as np
import pytest
from tests.worlds.plugin_session import World, job_of, place

from navarch.engine.session import Session
from navarch.plugins.volcano.task_topology.annotations import AFFINITY, ANTI_AFFINITY, TASK_ORDER, read_relations
from navarch.plugins.volcano.task_topology.plugin import TaskTopology


def world(**annotations: str) -> World:
    names = {"affinity": AFFINITY, "anti": ANTI_AFFINITY, "order": TASK_ORDER}
    made = World().queue("q").job("j", annotations={names[key]: text for key, text in annotations.items()})
    return made.node("n0", cpu=8, memory="16Gi").node("n1", cpu=8, memory="16Gi")


def pods(made: World, role: str, count: int = 1, node: str = "") -> World:
    return made.pods("j", count, node=node, role=role, cpu=1, memory="1Gi")


def scores(session: Session) -> dict[str, list[float]]:
    """Pod -> score of each node."""
    out = {}
    for row in job_of(session, "j").tasks:
        view = session.view(session.class_of(row))
        out[session.task(row).name] = view.totals(np.ones(len(session.nodes), dtype=bool)).tolist()
    return out


@pytest.mark.parametrize(
    ("text", "near", "mistakes"),
    [
        ("a,b;c", {("a", "b"), ("b", "a"), ("c", "c")}, 0),
        (" a , b ", {("a", "b"), ("b", "a")}, 0),
        ("a,a", None, 1),
        ("nobody", None, 1),
        ("", set(), 0),
    ],
)
def test_the_annotation_relates_the_roles_that_it_names(text: str, near: set[tuple[str, str]] | None, mistakes: int) -> None:
    found, wrong = read_relations({AFFINITY: text}, {"a", "b", "c"})
    assert (None if found is None else set(found.near), len(wrong)) == (near, mistakes)


def test_a_mistake_names_the_annotation_and_what_was_expected() -> None:
    (wrong,) = read_relations({TASK_ORDER: "master"}, {"ps", "worker"})[1]
    assert wrong == f"{TASK_ORDER}: found 'master', expected a role of the job (ps, worker)"


def test_one_mistake_leaves_out_one_annotation() -> None:
    session = pods(world(affinity="ps", anti="nobody"), "ps").session(TaskTopology)
    assert scores(session) == {"j-0": [100.0, 100.0]}
    assert any("nobody" in text for text in session.record.warnings)


def test_running_pods_repel() -> None:
    made = pods(pods(world(anti="ps"), "ps", node="n0"), "ps")
    assert scores(made.session(TaskTopology))["j-1"] == [0.0, 100.0]


def test_an_undone_placement_is_forgotten() -> None:
    session = pods(world(affinity="ps"), "ps", 2).session(TaskTopology)
    job, statement = job_of(session, "j"), session.statement()
    statement.allocate(job, [job.tasks[0]], [0], session.class_of(job.tasks[0]))
    assert scores(session)["j-1"] == [100.0, 50.0]
    statement.discard()
    assert scores(session)["j-1"] == [100.0, 100.0]


def test_an_evicted_pod_repels_no_longer() -> None:
    session = pods(pods(world(anti="ps"), "ps", node="n0"), "ps").session(TaskTopology)
    statement = session.statement()
    statement.evict(job_of(session, "j").tasks[0])
    assert scores(session)["j-1"] == [100.0, 100.0]
    statement.discard()
    assert scores(session)["j-1"] == [0.0, 100.0]


def test_the_weight_multiplies() -> None:
    made = pods(world(affinity="ps"), "ps")
    for weight, score in ((3, 300.0), (0, 0.0), (-2, -200.0)):
        session = made.session(TaskTopology, arguments={"task-topology.weight": weight})
        assert scores(session) == {"j-0": [score, score]}


def test_a_bucket_counts_only_what_a_node_could_hold() -> None:
    made = pods(world(affinity="ps"), "ps", 4).node("small", cpu=2, memory="16Gi")
    session = made.session(TaskTopology)
    assert scores(session)["j-0"] == [100.0, 100.0, 50.0]
    place(session, "j", "small")
    assert scores(session)["j-1"] == [75.0, 75.0, 50.0]
