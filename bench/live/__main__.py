"""Run the contenders in turn, round after round, and print what they reached, with ratios.

A shared machine can be half as fast a minute later. So contenders take turns within a round, and what is printed is the median
over the rounds: one slow minute then hits one figure of each, not all of one."""

from __future__ import annotations

import asyncio
import compileall
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from tests.envtest import assets

import navarch
from bench.live import measure
from bench.live.cold import cold_table, measure_cold
from bench.live.contenders import Contender, contenders
from bench.live.measure import Latency, Throughput
from bench.live.observer import Observer
from bench.live.takeover import measure_takeovers, takeover_table
from bench.live.wire import Target

NAVARCH = ".venv/bin/navarch run"


@click.command()
@click.option("--cold", is_flag=True, help="Measure the time from a start to the first binding instead.")
@click.option("--takeover", is_flag=True, help="Measure how a standby follows a leader that ends instead.")
@click.option(
    "--nodes", "sizes", multiple=True, type=int, help="May repeat.  [default: 1000 and 5000; 5000 with --cold or --takeover]"
)
@click.option("--pods", type=int, help="The backlog, or the running pods.  [default: 5000; 100000 with --cold, 20000 with --takeover]")
@click.option("--rate", default=100.0, show_default=True, help="Pods a second of the steady stream.")
@click.option("--seconds", default=30.0, show_default=True, help="Length of each steady stream; 0 leaves them out.")
@click.option("--gang", default=10, show_default=True, help="Size of the gangs of the second stream.")
@click.option("--contender", "names", multiple=True, help="Whom to measure.  [default: all]")
@click.option("--navarch", "navarch_command", default=NAVARCH, show_default=True, help="Command of our scheduler.")
@click.option("--rounds", default=1, show_default=True, help="How often each contender is measured; medians are printed.")
@click.option("--timeout", default=300.0, show_default=True, help="Seconds for a backlog to be bound.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also write the figures there.")
def main(
    cold: bool,
    takeover: bool,
    sizes: tuple[int, ...],
    pods: int | None,
    rate: float,
    seconds: float,
    gang: int,
    names: tuple[str, ...],
    navarch_command: str,
    rounds: int,
    timeout: float,
    json_file: Path | None,
) -> None:
    """Binds a second and creation-to-binding latency through a real kube-apiserver."""
    compileall.compile_dir(Path(navarch.__path__[0]), quiet=1)  # as an installed package has it, whatever the environment says
    everyone = contenders(navarch_command, elected=takeover)
    if cold or takeover:
        deciding = [contender for name, contender in everyone.items() if contender.decides and (not names or name in names)]
        size = sizes[0] if sizes else 5000
        try:
            if cold:
                _cold(deciding, size, 100_000 if pods is None else pods, rounds, timeout, json_file)
            else:
                _takeover(deciding, size, 20_000 if pods is None else pods, rate, rounds, timeout, json_file)
        except assets.Unavailable as reason:
            raise click.ClickException(str(reason)) from reason
        return
    chosen = [everyone[name] for name in (names or everyone)]
    sizes = sizes or (1000, 5000)
    backlog = 5000 if pods is None else pods
    throughputs: list[Throughput] = []
    latencies: list[Latency] = []

    async def try_one(contender: Contender, nodes: int) -> None:
        async with measure.server() as server:
            await measure.prepare(server, nodes)
            await measure.create_backlog(server, contender, backlog)
            await measure.settle(server)
            async with Observer(Target.read(server.kubeconfig)) as observer:
                started = time.monotonic()
                with contender.running(server, backlog, nodes) as process:
                    trial = measure.Trial(contender, server, observer, process, nodes, timeout)
                    throughputs.append(await trial.backlog(backlog, started))
                    for size in (1, gang) if contender.decides and rate * seconds >= gang and nodes == sizes[0] else ():
                        # What the backlog left to do (events, status) is not part of the stream.
                        await measure.settle(server)
                        latencies.append(await trial.steady(rate, seconds, size))

    try:
        for nodes in sizes:
            for _ in range(rounds):
                for contender in chosen:
                    asyncio.run(try_one(contender, nodes))
    except assets.Unavailable as reason:
        raise click.ClickException(str(reason)) from reason
    console = Console(width=120)
    console.print(throughput_table(measure.medians(throughputs, "contender", "nodes")))
    if latencies:
        console.print(latency_table(measure.medians(latencies, "contender", "nodes", "shape"), rate))
    figures = {
        "throughput": [dataclasses.asdict(row) for row in throughputs],
        "latency": [dataclasses.asdict(row) for row in latencies],
    }
    _write(json_file, figures)


def _cold(chosen: list[Contender], nodes: int, pods: int, rounds: int, timeout: float, json_file: Path | None) -> None:
    rows = asyncio.run(measure_cold(chosen, nodes, pods, rounds, timeout))
    Console(width=120).print(cold_table(measure.medians(rows, "contender")))
    _write(json_file, {"cold": [dataclasses.asdict(row) for row in rows]})


def _takeover(
    chosen: list[Contender], nodes: int, pods: int, rate: float, rounds: int, timeout: float, json_file: Path | None
) -> None:
    rows = asyncio.run(measure_takeovers(chosen, nodes, pods, rate, rounds, timeout))
    Console(width=120).print(takeover_table(measure.medians(rows, "contender", "end")))
    _write(json_file, {"takeover": [dataclasses.asdict(row) for row in rows]})


def _write(json_file: Path | None, figures: dict[str, list[dict[str, Any]]]) -> None:
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _ratio(row: Throughput, rows: list[Throughput], name: str) -> str:
    base = next((other for other in rows if other.contender == name and other.nodes == row.nodes), None)
    return f"{row.rate / base.rate:.2f}" if base is not None and base.rate else "-"


def throughput_table(rows: list[Throughput]) -> Table:
    table = Table(title="Backlog: binds a second from the first to the last")
    for column in ("nodes", "pods", "who", "binds/s", "of bare", "of kube-scheduler", "CPU s", "MB", "wall s", "server CPU s"):
        table.add_column(column, justify="left" if column == "who" else "right")
    for row in rows:
        ratios = (_ratio(row, rows, "bare"), _ratio(row, rows, "kube-scheduler"))
        figures = (f"{row.cpu:.1f}", f"{row.memory:.0f}", f"{row.wall:.1f}", f"{row.server_cpu:.1f}")
        table.add_row(str(row.nodes), str(row.pods), row.contender, f"{row.rate:.0f}", *ratios, *figures)
    return table


def latency_table(rows: list[Latency], rate: float) -> Table:
    table = Table(title=f"Steady {rate:.0f} pods a second: milliseconds from creation to binding")
    for column in ("nodes", "who", "shape", "pods", "p50", "p99", "worst", "CPU s"):
        table.add_column(column, justify="left" if column in ("who", "shape") else "right")
    for row in rows:
        waits = (f"{row.p50:.0f}", f"{row.p99:.0f}", f"{row.worst:.0f}")
        table.add_row(str(row.nodes), row.contender, row.shape, str(row.pods), *waits, f"{row.cpu:.1f}")
    return table


if __name__ == "__main__":
    main()
