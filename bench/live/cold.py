"""A cold start: from the start of a scheduler's process to its first binding, on a cluster that is full of running pods.

One server holds the nodes and the running pods for all contenders and rounds. Each start finds one pending pod of its own. `cpu` is
the CPU of the scheduler until that pod was seen bound. `memory` is the most that it ever held, read once the process has become idle.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from tests.envtest.server import KubeApiServer

from bench.live import measure, objects, running_pods
from bench.live.contenders import Contender, Usage
from bench.live.observer import Observer
from bench.live.wire import Pool, Target

IDLE_SECONDS = 15.0
"""A process that is still busy this long after its first binding is read as it is."""


@dataclass(frozen=True)
class ColdStart:
    """Seconds and MB of one start. `load` is the machine's load average of the last minute."""

    contender: str
    nodes: int
    pods: int
    first_bind: float
    cpu: float
    memory: float
    server_cpu: float
    load: float


async def measure_cold(chosen: Sequence[Contender], nodes: int, pods: int, rounds: int, timeout: float) -> list[ColdStart]:
    rows: list[ColdStart] = []
    async with running_pods.full_cluster(nodes, pods) as (server, observer):
        for number in range(rounds):
            for contender in chosen:
                rows += [await _start(contender, server, observer, nodes, pods, f"first-{number}", timeout)]
    return rows


async def _start(
    contender: Contender, server: KubeApiServer, observer: Observer, nodes: int, pods: int, stem: str, timeout: float
) -> ColdStart:
    name = f"{stem}-{contender.name}"
    async with Pool(Target.read(server.kubeconfig), 1) as pool:
        await pool.post(objects.PODS, objects.pod(name, contender.scheduler_name))
    await measure.settle(server)
    server_before = measure.server_cpu(server)
    started = time.monotonic()
    with contender.running(server, pods, nodes) as process:

        def check_alive() -> None:
            if process.poll() is not None:
                raise RuntimeError(f"{contender.name} ended with {process.returncode}")

        await observer.wait_for_pod(name, timeout, check_alive)
        cpu, server_cpu = Usage.of(process.pid).cpu, measure.server_cpu(server) - server_before
        await measure.idle(process.pid, IDLE_SECONDS)
        memory = Usage.of(process.pid).memory
    first_bind = observer.bound[name] - started
    return ColdStart(contender.name, nodes, pods, first_bind, cpu, memory, server_cpu, os.getloadavg()[0])


def cold_table(rows: Sequence[ColdStart]) -> Table:
    table = Table(title="Cold start: from the start of the process to its first binding")
    for column in (
        "nodes",
        "running pods",
        "who",
        "first bind s",
        "of kube-scheduler",
        "CPU s",
        "us/pod",
        "MB",
        "server CPU s",
        "load",
    ):
        table.add_column(column, justify="left" if column == "who" else "right")
    beside = next((row for row in rows if row.contender == "kube-scheduler"), None)
    for row in rows:
        ratio = f"{row.first_bind / beside.first_bind:.2f}" if beside is not None else "-"
        each = f"{row.cpu / row.pods * 1e6:.0f}" if row.pods else "-"
        figures = (f"{row.cpu:.2f}", each, f"{row.memory:.0f}", f"{row.server_cpu:.1f}", f"{row.load:.1f}")
        table.add_row(str(row.nodes), str(row.pods), row.contender, f"{row.first_bind:.2f}", ratio, *figures)
    return table
