"""Resource names that tenants invent: they cost one column together, whatever their number."""

from __future__ import annotations

import numpy as np

import navarch
from navarch.model.resources import MOST_NAMES, OTHERS, ResourceSpace
from navarch.testing.builders import node, pod


def test_names_of_pods_share_a_column_past_the_bound() -> None:
    space = ResourceSpace()
    for number in range(5000):
        space.learn(((f"example.com/r{number}", 1),))
    assert len(space) == MOST_NAMES + 1
    asked = space.vector((("example.com/r4998", 2), ("example.com/r4999", 3), ("cpu", 1)))
    assert (asked[space.index(OTHERS)], asked[0], int(np.count_nonzero(asked))) == (5, 1, 2)


def test_names_of_nodes_have_their_own() -> None:
    space = ResourceSpace()
    for number in range(500):
        space.learn(((f"example.com/r{number}", 1),))
    space.learn((("example.com/real", 1),), trusted=True)
    assert space.names[-1] == "example.com/real"


def test_pods_with_invented_resources_wait_and_others_are_placed() -> None:
    odd = [pod(f"odd-{number:03}").request(f"example.com/r{number}", 1) for number in range(400)]
    record = navarch.plan([node("n").cpu("8"), pod("plain").cpu(1), *odd], policy="navarch").records[0]
    assert [bind.pod for bind in record.binds] == ["default/plain"]
    told = {refusal.message.partition(". Next")[0] for job in record.jobs for refusal in job.refusals}
    assert told == {f"cannot start: no node offers example.com/r{number}" for number in range(400)}
