"""What suites need to run against a real kube-apiserver. A suite takes the fixture by name:

    from tests.envtest.fixtures import kube_apiserver  # noqa: F401

One server serves a whole session: a suite works in namespaces of its own and cleans up what has none.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.envtest import assets
from tests.envtest.server import UPSTREAM_GROUPS, KubeApiServer


def binaries_or_skip() -> assets.Assets:
    """What a real kube-apiserver is run from, or a skip that says how to get it."""
    try:
        return assets.find()
    except assets.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def kube_apiserver() -> Iterator[KubeApiServer]:
    """A real kube-apiserver, or a skip that says how to get one."""
    with KubeApiServer(UPSTREAM_GROUPS, binaries=binaries_or_skip()) as server:
        yield server
