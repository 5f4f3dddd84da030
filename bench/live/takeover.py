"""A standby takes over: two replicas of a scheduler with leader election, a steady stream of pods, and the leader ends.

The leader is killed with -9, or stopped on purpose (SIGTERM). `gap` is the longest time without a binding from then on. `after_lease`
is the time from the moment at which the standby wrote its name into the Lease to its first binding.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import count, pairwise

from rich.table import Table
from tests.envtest.server import KubeApiServer

from bench.live import measure, objects, running_pods
from bench.live.contenders import Contender
from bench.live.observer import Observer
from bench.live.wire import Pool, Target

ENDS = {"killed": signal.SIGKILL, "stopped": signal.SIGTERM}
LEAD_SECONDS = 5.0
"""Length of the stream before the leader ends, and after the standby has bound its first pod."""
IDLE_SECONDS = 60.0
"""The stream begins when the standby is idle, or after this time. `AT_LEAST` is its time to start."""
AT_LEAST = 2.0


@dataclass(frozen=True)
class Takeover:
    """Seconds of one takeover. `load` is the machine's load average of the last minute."""

    contender: str
    end: str
    nodes: int
    pods: int
    rate: float
    gap: float
    after_lease: float
    load: float


async def measure_takeovers(
    chosen: Sequence[Contender], nodes: int, pods: int, rate: float, rounds: int, timeout: float
) -> list[Takeover]:
    rows = []
    async with running_pods.full_cluster(nodes, pods) as (server, observer):
        for number in range(rounds):
            for contender in chosen:
                for end in ENDS:
                    trial = _Trial(contender, server, observer, f"{end}-{number}-{contender.name}", rate, timeout)
                    rows.append(await trial.run(end, nodes, pods))
    return rows


@dataclass
class _Trial:
    contender: Contender
    server: KubeApiServer
    observer: Observer
    stem: str
    rate: float
    timeout: float

    async def run(self, end: str, nodes: int, pods: int) -> Takeover:
        with ExitStack() as stack:
            leader = stack.enter_context(self.contender.running(self.server, pods, nodes, "-leader", may_end=True))
            async with Pool(Target.read(self.server.kubeconfig), measure.LOAD_CONNECTIONS) as pool:
                await self._create(pool, 0)
                await self.observer.wait_for_pod(self._name(0), self.timeout, lambda: None)
                standby = stack.enter_context(self.contender.running(self.server, pods, nodes, "-standby"))
                await measure.idle(standby.pid, IDLE_SECONDS, at_least=AT_LEAST)
                acquired = self._acquired()
                stream = asyncio.create_task(self._stream(pool))
                try:
                    await asyncio.sleep(LEAD_SECONDS)
                    ended = time.monotonic()
                    leader.send_signal(ENDS[end])
                    after_lease = await asyncio.wait_for(self._bound_after_lease(acquired), self.timeout)
                    await asyncio.sleep(LEAD_SECONDS)
                finally:
                    stream.cancel()
                    await asyncio.gather(stream, return_exceptions=True)
        moments = sorted(moment for moment in self.observer.bound.values() if moment > ended - 1.0)
        gap = max(later - earlier for earlier, later in pairwise(moments))
        return Takeover(self.contender.name, end, nodes, pods, self.rate, gap, after_lease, os.getloadavg()[0])

    async def _stream(self, pool: Pool) -> None:
        start = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number in count(1):
                await asyncio.sleep(max(0.0, start + number / self.rate - time.monotonic()))
                tasks.create_task(self._create(pool, number))

    async def _create(self, pool: Pool, number: int) -> None:
        await pool.post(objects.PODS, objects.pod(self._name(number), self.contender.scheduler_name))

    def _name(self, number: int) -> str:
        return f"{self.stem}-{number:05d}"

    async def _bound_after_lease(self, before: str) -> float:
        """Seconds from the standby's lease to its first binding. The Lease has this machine's wall clock time."""
        while (acquired := await asyncio.to_thread(self._acquired)) == before:
            await asyncio.sleep(0.1)
        since = datetime.fromisoformat(acquired).timestamp() - time.time() + time.monotonic()
        while not (after := [moment for moment in self.observer.bound.values() if moment > since]):
            await asyncio.sleep(0.05)
        return min(after) - since

    def _acquired(self) -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{self.contender.lease}"
        return str(self.server.request("GET", path)["spec"]["acquireTime"])


def takeover_table(rows: Sequence[Takeover]) -> Table:
    table = Table(title="Takeover: the leader ends, the standby goes on (leases of 15 s)")
    for column in ("nodes", "running pods", "pods/s", "who", "leader", "gap s", "of kube-scheduler", "after the lease s", "load"):
        table.add_column(column, justify="left" if column in ("who", "leader") else "right")
    beside = {row.end: row for row in rows if row.contender == "kube-scheduler"}
    for row in rows:
        ratio = f"{row.gap / beside[row.end].gap:.2f}" if row.end in beside else "-"
        sizes = (str(row.nodes), str(row.pods), f"{row.rate:.0f}")
        table.add_row(*sizes, row.contender, row.end, f"{row.gap:.2f}", ratio, f"{row.after_lease:.2f}", f"{row.load:.1f}")
    return table
