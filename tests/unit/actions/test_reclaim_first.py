"""Actions that evict may come before `allocate`, whatever pods ask for."""

from __future__ import annotations

import pytest

import navarch
from navarch.testing.builders import node, pod

PLUGINS = ("gang", "priority", "drf", "predicates", "proportion")


@pytest.mark.parametrize("actions", ["reclaim, allocate", "preempt, allocate", "gangreclaim, allocate", "gangpreempt, allocate"])
def test_parts_of_gpus_are_counted_from_the_first_action_on(actions: str) -> None:
    """An evicting action looks at classes of tasks. The accounts of shared devices have to be there by then."""
    policy = {"actions": actions, "tiers": [{"plugins": [{"name": name} for name in PLUGINS]}]}
    half = pod("half").cpu(1).annotate("gpu-fraction", "0.5")
    rest = pod("large").cpu(64)
    found = navarch.plan([node("n").cpu(8).gpu(1).label("nvidia.com/gpu.memory", "40960"), half, rest], policy)
    placed = [bind.pod for bind in found.binds] + [promise.pod for promise in found.records[0].nominations]
    assert placed == ["default/half"], "preempt promises it the node"
