"""The same random groups for kube-scheduler and for us. `make parity-groups SEED=N` asks about more."""

from __future__ import annotations

import pytest
from tests.envtest.fixtures import binaries_or_skip
from tests.envtest.server import UPSTREAM_GROUPS, KubeApiServer
from tests.parity.live_groups import GroupCases


@pytest.mark.slow
@pytest.mark.live
def test_kube_scheduler_starts_the_same_groups() -> None:
    binaries = binaries_or_skip()
    if binaries.scheduler is None:
        pytest.skip("no kube-scheduler: run `make envtest` (needs Go)")
    with KubeApiServer(UPSTREAM_GROUPS, binaries=binaries) as server:
        cases = GroupCases(server)
        outcomes = [cases.compare(seed) for seed in range(6)]
    assert [(each.seed, each.differences) for each in outcomes if each.differences] == []
    assert sum(each.compared for each in outcomes) >= 10
