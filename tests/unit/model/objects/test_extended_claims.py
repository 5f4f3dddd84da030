"""Requests for devices that stand for an extended resource, by container."""

from __future__ import annotations

import pytest

from navarch.model.objects.extended_claims import ContainerRequest, DeviceRequests, device_requests

GPU = "example.com/gpu"


def container(name: str, count: int, *, is_init: bool = False) -> ContainerRequest:
    return ContainerRequest(name, is_init, (("cpu", 1), (GPU, count)) if count else (("cpu", 1),))


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([container("a", 2)], DeviceRequests((("container-0-request-1", 2),), (("a", "container-0-request-1"),))),
        ([container("a", 0)], DeviceRequests((), ())),
        (
            [container("i", 1, is_init=True), container("a", 2)],
            DeviceRequests((("container-1-request-1", 2),), (("a", "container-1-request-1"), ("i", "container-1-request-1"))),
        ),
        (
            [container("i", 3, is_init=True), container("a", 2)],
            DeviceRequests(
                (("container-0-request-1", 1), ("container-1-request-1", 2)),
                (("a", "container-1-request-1"), ("i", "container-1-request-1"), ("i", "container-0-request-1")),
            ),
        ),
        (
            [container("i", 1, is_init=True), container("j", 2, is_init=True), container("a", 0)],
            DeviceRequests((("container-1-request-1", 2),), (("i", "container-1-request-1"), ("j", "container-1-request-1"))),
        ),
        (
            [container("sidecar", 1), container("i", 1, is_init=True), container("a", 1)],
            DeviceRequests(
                (("container-0-request-1", 1), ("container-2-request-1", 1)),
                (("sidecar", "container-0-request-1"), ("a", "container-2-request-1"), ("i", "container-2-request-1")),
            ),
        ),
    ],
    ids=["one container", "none", "an init container reuses", "and needs one more", "init containers reuse each other's", "a sidecar"],
)
def test_the_requests_of_a_pod(containers: list[ContainerRequest], expected: DeviceRequests) -> None:
    assert device_requests(containers, GPU) == expected
