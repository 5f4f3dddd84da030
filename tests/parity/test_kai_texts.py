"""Every recorded refusal of KAI comes out letter by letter, but those listed here and in docs/parity.md with their reason."""

from __future__ import annotations

import pytest
from tests.parity.kai_counts import COUNTS
from tests.parity.kai_texts import Compared
from tests.parity.recorded import ABSENT, cases_in, parity_root

SERVED = "a node set that was tried in vain is not told of a job that found another"
BY_NODE = "one text for each node's name is no histogram: the same is said without the name"
CLAIMS = "devices that claims lack have no words in KAI; the nodes that cannot serve them are counted"
PROMISED = "a node whose GPUs are promised has no words in KAI; it is counted among those that lack them"
VICTIM = "noted on a promised pod that was a victim later in the cycle"
OVERFLOW = "a count of devices beyond 64 bits is shown as it is"
TOPOLOGY, MIG, DRA = "TestHandleTopologyAllocation", "TestHandleMIGAllocation", "TestDRAAllocation"
TOPOLOGIES = "TestHandleTopologyAllocation_HierarchicalMultiTopologiesAcrossSubgroups"
RECLAIM = "TestReclaimGpuDRAIntegrationTest"
OVER = (
    "TestDRAOverflowDoesNotBlockReclaimInSameQueue",
    "overflowing DRA request does not block reclaim for a valid request in the same queue",
)
SCARCE = (
    "2 jobs running for queue0 on 3 GPUs, 1 job running for queue1 on 1 GPU, 1 pending job for queue1, deserved of queue1 is 1 -  "
    "don't reclaim"
)
DIFFERS = {
    (TOPOLOGY, "Required topology level - could not schedule on first domain due to affinity, goes to next", "pending_job0"): SERVED,
    (TOPOLOGIES, "Allocate one hierarchical job with parent and children using different topology CRs", "pending_job1"): SERVED,
    (MIG, "Pending legacy MIG job", "pending_job-0"): BY_NODE,
    (MIG, "Pending legacy MIG job", "pending_job"): BY_NODE,
    (DRA, "2 pods requesting node-bound device, can't schedule on same node", "pending_job0"): BY_NODE,
    (DRA, "Partially over claim max consumers limit", "pending_job0"): CLAIMS,
    (*OVER, "overflow-job"): OVERFLOW,
    (*OVER, "valid-job"): CLAIMS,
    (RECLAIM, "queue0 is under fair share, queue1 is over fair share - reclaim", "q0_job2"): CLAIMS,
    (RECLAIM, "1 train job running for queue0, 1 train job pending for queue1 - reclaim", "pending_job0"): CLAIMS,
    (RECLAIM, SCARCE, "pending_job0"): CLAIMS,
    ("random", "seed-1004", "job-6"): PROMISED,
    ("random", "seed-1004", "job-7"): PROMISED,
    ("random", "seed-1039", "job-3"): VICTIM,
}


@pytest.mark.parametrize("name", COUNTS)
def test_refusals_are_in_the_recorded_words(name: str) -> None:
    file = parity_root() / "kai" / f"{name}.jsonl"
    if not file.exists():
        pytest.skip(ABSENT)
    found = Compared()
    for case in cases_in(file):
        found.take(case)
    assert [key for key in found.differ if key not in DIFFERS] == []
    assert (found.agree, found.simulated, sum(map(len, found.differ.values()))) == COUNTS[name]


def test_nearly_all_refusals_agree() -> None:
    agree, simulated, differ = (sum(column) for column in zip(*COUNTS.values(), strict=True))
    assert (agree, simulated, differ) == (1088, 416, 15)
    assert agree / (agree + differ) > 0.98
