"""Which CustomResourceDefinitions make which informers retry."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from navarch.kube.resources import Resource
from navarch.kube.watch.informer import Informer
from navarch.kube.watch.informer_group import Crd, CrdHandler

QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", namespaced=False)
KAI_QUEUES = Resource("scheduling.run.ai", "v2", "queues", namespaced=False)
GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups")


class Waiting:
    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.retries = 0

    def retry_now(self) -> None:
        self.retries += 1


def crd(conditions: Any) -> Crd:
    body = {
        "metadata": {"name": "queues.scheduling.volcano.sh"},
        "spec": {"group": "scheduling.volcano.sh", "names": {"plural": "queues", "kind": "Queue"}},
        "status": {"conditions": conditions},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=Crd)


NAMED = {"type": "NamesAccepted", "status": "True"}


@pytest.mark.parametrize(
    ("conditions", "retries"),
    [
        ([NAMED, {"type": "Established", "status": "True"}], [1, 0, 0]),
        ([NAMED, {"type": "Established", "status": "False"}], [0, 0, 0]),
        ([NAMED], [0, 0, 0]),
        ([], [0, 0, 0]),
        (None, [0, 0, 0]),
    ],
)
@pytest.mark.parametrize("new", [True, False])
def test_a_crd_retries_the_informers_of_its_kind_when_it_is_established(conditions: Any, retries: list[int], new: bool) -> None:
    waiting = [Waiting(resource) for resource in (QUEUES, KAI_QUEUES, GROUPS)]
    handler = CrdHandler([cast(Informer[Any], each) for each in waiting])
    if new:
        handler.added(crd(conditions))
    else:
        handler.updated(crd(None), crd(conditions))
    assert [each.retries for each in waiting] == retries
    handler.deleted(crd(conditions))
    assert [each.retries for each in waiting] == retries
