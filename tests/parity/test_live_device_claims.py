"""The same random clusters of devices for kube-scheduler and for us. `make parity-devices SEED=N` asks about more."""

from __future__ import annotations

import pytest
from tests.envtest.fixtures import binaries_or_skip
from tests.envtest.server import KubeApiServer
from tests.parity.live_device_claims import DeviceCases


@pytest.mark.slow
@pytest.mark.live
def test_kube_scheduler_allocates_the_same_devices() -> None:
    binaries = binaries_or_skip()
    if binaries.scheduler is None:
        pytest.skip("no kube-scheduler: run `make envtest` (needs Go)")
    with KubeApiServer(binaries=binaries) as server:
        cases = DeviceCases(server)
        outcomes = [cases.compare(seed) for seed in range(6)]
    assert [(each.seed, each.differences) for each in outcomes if each.differences] == []
    assert cases.compared >= 12
