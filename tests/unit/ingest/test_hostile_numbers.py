"""Numbers in annotations that fit into no column: one pod's mistake, which costs no other pod its place."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.worlds.live_parts.cluster_cache import SETTINGS, node, pod

from navarch.actions.allocate import Allocate
from navarch.apis.core.pod_objects import Pod
from navarch.engine.policy.values import Policy
from navarch.engine.registry import Registry
from navarch.live.core import LiveCore

DIGITS = ("9" * 30, "9" * 400, "9" * 5000, "-" + "9" * 30, "²")


def hostile(key: str, text: str) -> Pod:
    made = pod("bad")
    annotations = {key: text, **({"gpu-fraction": "0.5"} if key == "gpu-fraction-num-devices" else {})}
    return replace(made, metadata=replace(made.metadata, annotations=annotations))


@pytest.mark.parametrize("text", DIGITS, ids=lambda text: f"{text[:2]} x {len(text)}")
@pytest.mark.parametrize(
    "key",
    [
        "volcano.sh/task-priority",
        "scheduling.k8s.io/group-min-member",
        "scheduling.volcano.sh/group-min-member",
        "gpu-memory",
        "gpu-fraction-num-devices",
    ],
)
@pytest.mark.parametrize("in_bulk", [True, False], ids=["in a list", "one by one"])
def test_others_of_the_list_are_bound(key: str, text: str, in_bulk: bool) -> None:
    core = LiveCore(SETTINGS, lambda instruction: None)
    core.start_leading(0.0)
    core.cache.put(node("n1"))
    pods = [pod("a"), hostile(key, text), pod("b")]
    if in_bulk:
        core.cache.put_new_pods(pods)
    else:
        for each in (pods[0], pods[2]):
            core.cache.put_pod(each)
        unread = core.cache.put_new_pods(pods[1:2])
        assert [name.metadata.name for name, _ in unread] in ([], ["bad"])
    record = core.decide(Policy(("allocate",), ()), Registry([], [Allocate]), 0.0).record
    assert {"default/a", "default/b"} <= {bind.pod for bind in record.binds}
    assert record.failures == []


def test_a_priority_beyond_64_bits_changes_nothing_in_the_model() -> None:
    core = LiveCore(SETTINGS, lambda instruction: None)
    core.cache.put(node("n1"))
    core.cache.put_pod(pod("a", "n1", "Running"))
    cluster = core.cache.cluster
    (known,) = (spec for spec in cluster.tasks.specs if spec is not None)
    before = cluster.snapshot().nodes.used.tolist()
    for uid in (known.uid, "another"):
        with pytest.raises(OverflowError, match="64 bits"):
            cluster.put_task(replace(known, uid=uid, priority=1 << 70))
        with pytest.raises(OverflowError, match="64 bits"):
            cluster.add_tasks([replace(known, uid="third"), replace(known, uid="fourth", pod_priority=-(1 << 70))])
    assert cluster.snapshot().nodes.used.tolist() == before
    assert [*cluster.tasks.rows.of] == [known.uid]
