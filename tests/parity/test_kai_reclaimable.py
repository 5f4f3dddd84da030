"""Every recorded answer to "may this queue take from that one" comes out the same here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.parity.recorded import recorded_cases

from navarch.plugins.kai.proportion.queue_tree import QueueTree
from navarch.plugins.kai.proportion.reclaim_rules import may_reclaim, may_take, worth_reclaiming
from navarch.plugins.kai.proportion.share_division import UNLIMITED

Case = dict[str, Any]
RESOURCES = ("cpu", "memory", "gpu")


def tree_of(case: Case) -> tuple[QueueTree, dict[str, int]]:
    queues = case["queues"]
    rows = {queue["uid"]: row for row, queue in enumerate(queues)}

    def column(field: str) -> np.ndarray:
        return np.array([[float(queue.get(name, {}).get(field, 0)) for queue in queues] for name in RESOURCES])

    def bound(field: str) -> np.ndarray:
        figures = column(field)
        return np.where(figures == -1, UNLIMITED, figures)

    tree = QueueTree(
        parent=np.array([rows.get(queue.get("parentQueue", ""), -1) for queue in queues], dtype=np.intp),
        quota=bound("deserved"),
        limit=bound("limit"),
        share=bound("fairShare"),
        allocated=column("allocated"),
        fixed=column("allocatedNonPreemptible"),
    )
    return tree, rows


def amount(resources: dict[str, float]) -> np.ndarray:
    return np.array([float(resources.get(name, 0)) for name in RESOURCES])


@pytest.mark.parametrize("case", recorded_cases("kai/reclaimable.jsonl"))
def test_the_answer_is_the_recorded_one(case: Case) -> None:
    tree, rows = tree_of(case)
    reclaimer = case["reclaimer"]
    queue, required, preemptible = rows[reclaimer["queue"]], amount(reclaimer["required"]), reclaimer["preemptible"]
    if case["function"] == "CanReclaimResources":
        found = may_reclaim(tree, queue, required, preemptible)
    elif case["function"] == "FilterVictim":
        found = worth_reclaiming(tree, queue, required, rows[case["reclaimeeQueue"]])
    else:
        takings = [(rows[uid], [amount(unit) for unit in units]) for uid, units in case["reclaimeesByQueue"].items()]
        multiplier = case["reclaimerSaturationMultiplier"]
        found = may_take(tree, queue, required, preemptible, takings, multiplier)
    assert found in case["expect"]["allowed"]
