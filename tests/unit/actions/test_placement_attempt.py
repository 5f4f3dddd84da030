"""After a task found no node: are the others worth trying?"""

from __future__ import annotations

from typing import Any

import pytest
from tests.worlds.small_cluster import job_in, open_session, row_in, shape, task, with_nodes

from navarch.actions.placement_attempt import can_still_start
from navarch.engine.placement.fit_errors import FitErrors
from navarch.engine.semantics import STRICT, Semantics
from navarch.model.spec import JobSpec, Requests, SubGroupSpec


def go_on(
    minimum: int, roles: Requests, pods: dict[str, str], *, running: tuple[str, ...] = (), failed: str = "", **spec: Any
) -> bool:
    """`pods`: name -> role; the one that `failed` found no node."""
    cluster = with_nodes(("n", {"cpu": 9}))
    semantics = spec.pop("semantics", STRICT)
    assert isinstance(semantics, Semantics)
    cluster.put_job(JobSpec("ns/j", "default", min_member=minimum, roles=roles, **spec))
    for name, role in pods.items():
        cluster.put_task(task(name, shape(cpu=1), "ns/j", "n" if name in running else "", role=role))
    session = open_session(cluster, semantics=semantics)
    job = job_in(session, "j")
    job.fit_errors[row_in(session, failed or next(iter(pods)))] = FitErrors(1)
    return can_still_start(job)


ROLES: Requests = (("master", 1), ("worker", 2))


@pytest.mark.parametrize(
    ("minimum", "roles", "pods", "expected"),
    [
        (2, (), {"a": "", "b": ""}, False),
        (3, (), {"a": "", "b": ""}, False),
        (1, (), {"a": "", "b": ""}, True),
        (0, (), {"a": "", "b": ""}, True),
        (3, ROLES, {"m": "master", "w1": "worker", "w2": "worker", "w3": "worker"}, False),
        (1, ROLES, {"m": "master", "w1": "worker", "w2": "worker"}, True),
        (2, ROLES, {"m": "master", "w1": "worker", "w2": "worker"}, True),
        (2, ROLES, {"w1": "worker", "w2": "worker", "m": "master"}, False),
    ],
)
def test_without_the_roles_that_failed_can_the_minimum_be_reached(
    minimum: int, roles: Requests, pods: dict[str, str], expected: bool
) -> None:
    assert go_on(minimum, roles, pods) == expected


def test_a_role_that_has_its_minimum_already_may_fail() -> None:
    pods = {"m": "master", "w1": "worker", "w2": "worker", "w3": "worker"}
    assert go_on(3, ROLES, pods, running=("w1", "w2"), failed="w3")
    assert not go_on(3, ROLES, pods, running=("w1",), failed="w3")


def test_sub_groups_are_tried_one_by_one() -> None:
    assert go_on(1, (), {"a": "", "b": ""}, sub_groups=(SubGroupSpec("x"),))


def test_where_a_misfit_ends_the_turn_nothing_else_is_tried() -> None:
    assert not go_on(1, (), {"a": "", "b": ""}, semantics=Semantics(misfit_ends_turn=True))
