"""Which CustomResourceDefinitions wake which informers."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from navarch.kube.resources import Resource
from navarch.kube.watch.informer import Informer
from navarch.kube.watch.informer_group import Crd, _Poker

QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
KAI_QUEUES = Resource("scheduling.run.ai", "v2", "queues", namespaced=False)
GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups")


class Waiting:
    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.poked = 0

    def poke(self) -> None:
        self.poked += 1


def crd(conditions: Any) -> Crd:
    body = {
        "metadata": {"name": "queues.scheduling.volcano.sh"},
        "spec": {"group": "scheduling.volcano.sh", "names": {"plural": "queues", "kind": "Queue"}},
        "status": {"conditions": conditions},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=Crd)


NAMED = {"type": "NamesAccepted", "status": "True"}


@pytest.mark.parametrize(
    ("conditions", "pokes"),
    [
        ([NAMED, {"type": "Established", "status": "True"}], [1, 0, 0]),
        ([NAMED, {"type": "Established", "status": "False"}], [0, 0, 0]),
        ([NAMED], [0, 0, 0]),
        ([], [0, 0, 0]),
        (None, [0, 0, 0]),
    ],
)
@pytest.mark.parametrize("new", [True, False])
def test_a_definition_wakes_whoever_waits_for_its_kind_once_the_kind_is_served(conditions: Any, pokes: list[int], new: bool) -> None:
    waiting = [Waiting(resource) for resource in (QUEUES, KAI_QUEUES, GROUPS)]
    poker = _Poker([cast(Informer[Any], each) for each in waiting])
    if new:
        poker.added(crd(conditions))
    else:
        poker.updated(crd(None), crd(conditions))
    assert [each.poked for each in waiting] == pokes
    poker.deleted(crd(conditions))
    assert [each.poked for each in waiting] == pokes
