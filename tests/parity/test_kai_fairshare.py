"""Every recorded division of a resource among sibling queues, answered by KAI's own code, comes out the same here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.parity.recorded import recorded_cases

from navarch.plugins.kai.proportion.share_division import UNLIMITED, QueueClaims, divide, fair_shares, seniority, share_surplus

Case = dict[str, Any]


def claims_of(case: Case, resources: list[str]) -> tuple[QueueClaims, np.ndarray]:
    queues = case["queues"]

    def column(field: str) -> np.ndarray:
        rows = [[float(queue.get(resource, {}).get(field, 0)) for queue in queues] for resource in resources]
        return np.array(rows).reshape(len(resources), len(queues))

    def bound(field: str) -> np.ndarray:
        figures = column(field)
        return np.where(figures == -1, UNLIMITED, figures)

    # Timestamps in one format and zone sort as text; only their order matters.
    ages = {stamp: float(age) for age, stamp in enumerate(sorted({queue["creationTimestamp"] for queue in queues}))}
    claims = QueueClaims(
        quota=bound("deserved"),
        limit=bound("limit"),
        weight=column("overQuotaWeight"),
        request=column("request"),
        usage=column("usage"),
        priority=np.array([queue["priority"] for queue in queues], dtype=np.intp),
        seniority=seniority([ages[queue["creationTimestamp"]] for queue in queues], [queue["uid"] for queue in queues]),
    )
    return claims, column("fairShare")


def answer(case: Case) -> dict[str, Any]:
    resources = [case["resource"]] if "resource" in case else ["cpu", "gpu", "memory"]
    claims, start = claims_of(case, resources)
    uids = [queue["uid"] for queue in case["queues"]]
    total = np.array([[float(case["total"].get(resource, 0))] for resource in resources])
    siblings = np.zeros(len(uids), dtype=np.intp)
    if case["function"] == "SetResourcesShare":
        top = np.full(len(uids), -1, dtype=np.intp)
        shares = fair_shares(top, claims, total[:, 0], case["kValue"])
        rows = {uid: {resource: shares[r, q] for r, resource in enumerate(resources)} for q, uid in enumerate(uids)}
        return {"fairShare": rows}
    if case["function"] == "setResourceShare":
        shares, left = divide(total, siblings, claims, case["kValue"])
    else:
        shares, left = share_surplus(total, siblings, start, claims, case["kValue"])
    return {"fairShare": dict(zip(uids, shares[0], strict=True)), "remaining": left[0, 0]}


def flat(figures: Any, path: str = "") -> dict[str, float]:
    if isinstance(figures, dict):
        return {k: v for name, part in figures.items() for k, v in flat(part, f"{path}/{name}").items()}
    return {path: float(figures)}


@pytest.mark.parametrize("case", recorded_cases("kai/fairshare.jsonl"))
def test_the_division_is_the_recorded_one(case: Case) -> None:
    found = flat(answer(case))
    # Recorded with nine decimals; byte counts of 1e10 in doubles carry no more than five behind the point.
    assert any(found == pytest.approx(flat(allowed), abs=1e-5, rel=0) for allowed in case["expect"]["allowed"])
