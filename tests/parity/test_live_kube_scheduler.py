"""The same random clusters for kube-scheduler and for us. `make parity SEED=N` asks about more."""

from __future__ import annotations

import pytest
from tests.envtest.fixtures import binaries_or_skip
from tests.envtest.server import KubeApiServer
from tests.parity.live_kube_scheduler import Answer, LiveCases, differences

from navarch.testing.builders import node, pod

OBJECTS = [dict(each) for each in (node("big").cpu(8), node("small").cpu(1), pod("p").cpu(4))]


@pytest.mark.slow
@pytest.mark.live
def test_kube_scheduler_decides_the_same() -> None:
    binaries = binaries_or_skip()
    if binaries.scheduler is None:
        pytest.skip("no kube-scheduler: run `make envtest` (needs Go)")
    with KubeApiServer(binaries=binaries) as server:
        cases = LiveCases(server)
        outcomes = [cases.compare(seed) for seed in range(40, 48)]
    assert [(each.seed, each.differences) for each in outcomes if each.differences] == []
    assert sum(each.compared for each in outcomes) >= 12


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (Answer(node="big"), ""),
        (Answer(node="small"), "kube-scheduler binds to small; navarch: binds to big"),
        (Answer(message="0/2 nodes are available"), "kube-scheduler: waits (0/2 nodes are available); navarch binds to big"),
    ],
)
def test_a_difference_is_told(theirs: Answer, said: str) -> None:
    assert differences(OBJECTS, "p", theirs) == ([said] if said else [])


def test_nodes_of_equal_score_are_the_same_answer() -> None:
    equal = [dict(each) for each in (node("a").cpu(4), node("b").cpu(4), pod("p").cpu(1))]
    assert differences(equal, "p", Answer(node="a")) == differences(equal, "p", Answer(node="b")) == []
