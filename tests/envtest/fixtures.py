"""The pytest fixture. A suite takes it by name:

    from tests.envtest.fixtures import kube_apiserver  # noqa: F401

One server serves a whole session: a suite works in namespaces of its own and cleans up what has none.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.envtest import assets
from tests.envtest.server import UPSTREAM_GROUPS, KubeApiServer


@pytest.fixture(scope="session")
def kube_apiserver() -> Iterator[KubeApiServer]:
    """A real kube-apiserver, or a skip that says how to get one."""
    try:
        binaries = assets.find()
    except assets.Unavailable as reason:
        pytest.skip(str(reason))
    with KubeApiServer(UPSTREAM_GROUPS, binaries=binaries) as server:
        yield server
