"""A cycle over the cluster that is decided and not carried out: what the policy would do now, and why jobs wait.

Pages of jobs and queues read its record. One record serves all viewers until the cluster changed and some time has passed.
"""

from __future__ import annotations

import time
from typing import Final

from navarch.engine.cycle import decide
from navarch.engine.record import CycleRecord
from navarch.web.cluster.cluster_state import ClusterState

LASTS: Final = 2.0
"""Seconds for which a record serves although the cluster changed."""
TIMES: Final = 20.0
"""It serves at least so many times as long as it took."""


class DryRun:
    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._record: CycleRecord | None = None
        self._number = -1
        self._until = 0.0

    async def record(self) -> CycleRecord:
        state = self._state
        if self._record is not None and (self._number == state.log.number or time.monotonic() < self._until):
            return self._record
        number, started = state.log.number, time.monotonic()
        policy, registry, now = state.policy, state.registry, state.clock()
        record = await state.assessor.run(lambda snapshot: decide(snapshot, policy, registry, now, report_all=False))
        self._record, self._number = record, number
        took = time.monotonic() - started
        self._until = time.monotonic() + max(LASTS, TIMES * took)
        return record
