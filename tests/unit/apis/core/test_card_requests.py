"""What a pod asks of GPU cards, container by container."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.apis.core.card_requests import card_request
from navarch.apis.core.objects import from_manifest
from navarch.apis.core.pod_objects import Pod
from navarch.model.spec import CardRequest, VgpuRequest

N, M, C = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"


def asked(
    *limits: dict[str, str], first: tuple[dict[str, str], ...] = (), requests: dict[str, str] | None = None
) -> CardRequest | None:
    def container(name: str, given: dict[str, str]) -> dict[str, Any]:
        return {"name": name, "resources": {"limits": given, "requests": requests or {}}}

    spec = {
        "containers": [container(f"c{i}", each) for i, each in enumerate(limits)],
        "initContainers": [container(f"i{i}", each) for i, each in enumerate(first)],
    }
    return card_request(from_manifest({"spec": spec}, Pod).spec)


def test_each_container_asks_for_itself() -> None:
    found = asked({N: "2", M: "4000", C: "30"}, {"cpu": "1"}, {M: "1k"})
    assert found == CardRequest((VgpuRequest(2, 4000, 30), VgpuRequest(1, 1000, 0)))


def test_cores_alone_ask_for_no_card() -> None:
    assert asked({C: "50"}) is None
    assert asked({}) is None


def test_memory_and_cores_may_be_requests_and_the_number_is_a_limit() -> None:
    assert asked({N: "1"}, requests={M: "500", C: "10"}) == CardRequest((VgpuRequest(1, 500, 10),))
    assert asked({"cpu": "1"}, requests={N: "1"}) is None


@pytest.mark.parametrize("number", ["1500m", "-1", "many"])
def test_a_request_that_is_no_whole_number_counts_as_none(number: str) -> None:
    assert asked({N: number}) == CardRequest((VgpuRequest(0, 0, 0),))


def test_memory_and_whole_cards_are_those_of_all_containers_or_of_the_largest_init_container() -> None:
    memory, number = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
    assert asked({memory: "3000"}, {memory: "2000"}, first=({memory: "4000"},)) == CardRequest(memory=5000)
    assert asked({number: "1"}, first=({number: "3"}, {number: "2"})) == CardRequest(number=3)
