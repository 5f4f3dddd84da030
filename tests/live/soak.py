"""Histories with faults, one seed after the other, on the embedded server and on a real kube-apiserver in turn.

    make soak HISTORIES=1000 SEED=1            # or: python -m tests.live.soak --histories 1000 --seed 1
    make soak MINUTES=30                       # as many as fit
    make soak HISTORIES=1000 PROCESSES=3       # three at the same time; most of a history is waiting

Each history has two to four replicas, two to four faults at once and a check of what the API server saw
(`tests.worlds.live.fault_history`). Each is a line of the results file. A run that was stopped goes on where it ended: seeds with a
line are not run again. A violation does not end the run; the summary names its seed, and `--only SEED` repeats it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import click
import msgspec
from tests.envtest import assets
from tests.envtest.server import UPSTREAM_GROUPS, KubeApiServer
from tests.worlds.live.fault_history import Report, draw, run_history

SERVERS = ("embedded", "kube-apiserver")
KEPT = 50
"""Histories on one kube-apiserver: then another one is started."""
LONGEST = 900.0
"""Seconds of one history."""


class Servers:
    """Whether there is a kube-apiserver, and the one in use."""

    def __init__(self) -> None:
        self._used = 0
        self._real: KubeApiServer | None = None
        try:
            assets.find()
            self.available = True
        except assets.Unavailable as reason:
            click.echo(f"embedded server only: {reason}")
            self.available = False

    def for_seed(self, seed: int, wanted: str) -> str:
        if wanted:
            return wanted
        return SERVERS[seed % 2] if self.available else SERVERS[0]

    def real(self) -> KubeApiServer:
        if self._real is not None and self._used >= KEPT:
            self.stop()
        if self._real is None:
            self._real, self._used = KubeApiServer(UPSTREAM_GROUPS), 0
            self._real.__enter__()
        self._used += 1
        return self._real

    def stop(self) -> None:
        if self._real is not None:
            self._real.__exit__()
            self._real = None


def one(seed: int, server: str, servers: Servers) -> Report:
    report, rng = draw(seed, server)
    started = time.monotonic()

    async def bounded(folder: Path) -> None:
        asyncio.get_running_loop().call_later(0.98 * LONGEST, _print_stacks)
        async with asyncio.timeout(LONGEST):
            await run_history(report, rng, folder, servers.real() if server == SERVERS[1] else None)

    with tempfile.TemporaryDirectory(prefix="navarch-soak-") as folder:
        try:
            asyncio.run(bounded(Path(folder)))
        except Exception as broken:
            report.violation = f"{type(broken).__name__}: {broken}"
            servers.stop()  # the next history does not inherit what this one left
    report.seconds = round(time.monotonic() - started, 1)
    gc.unfreeze()  # each scheduler freezes what is in memory when it begins to lead, and with it what earlier histories left
    gc.collect()
    return report


def _print_stacks() -> None:
    """Where a history stands that is about to be ended by its time limit."""
    for task in asyncio.all_tasks():
        task.print_stack()


def read(results: Path) -> list[Report]:
    if not results.exists():
        return []
    lines = results.read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Report) for line in lines if line.endswith(b"}")]  # the last one may be cut off


def summary(reports: list[Report]) -> str:
    lines = [f"{len(reports)} histories, seeds {_ranges([report.seed for report in reports])}"]
    for server in SERVERS:
        found = [report for report in reports if report.server == server]
        if found:
            seconds = sum(report.seconds for report in found)
            replicas = Counter(len(report.replicas) for report in found)
            counts = ", ".join(f"{count} with {size} replicas" for size, count in sorted(replicas.items()))
            lines.append(f"{server}: {len(found)} histories ({counts}), {seconds / len(found):.1f} s each")
    faults = Counter(fault for report in reports for fault in report.faults)
    fates = Counter(fate for report in reports for fate in report.replicas)
    lines.append("faults: " + ", ".join(f"{name} {count}" for name, count in sorted(faults.items())))
    lines.append("replicas: " + ", ".join(f"{name} {count}" for name, count in sorted(fates.items())))
    broken = [report for report in reports if report.violation]
    lines.append(f"violations: {len(broken)}")
    lines += [f"  seed {each.seed}, {each.server}, {each.replicas}, {each.faults}: {each.violation[:500]}" for each in broken]
    return "\n".join(lines)


def _ranges(seeds: list[int]) -> str:
    """
    >>> _ranges([3, 1, 2, 7])
    '1-3, 7'
    """
    ranges: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if ranges and seed == ranges[-1][-1] + 1:
            ranges[-1][1:] = [seed]
        else:
            ranges.append([seed])
    return ", ".join("-".join(map(str, each)) for each in ranges)


@click.command()
@click.option("--histories", type=int, default=0, help="Run so many seeds.  [default: as many as fit into --minutes]")
@click.option("--minutes", type=float, default=0.0, help="Stop after this time.  [default: 10, none with --histories]")
@click.option("--seed", type=int, default=1, show_default=True, help="The first seed.")
@click.option("--server", type=click.Choice(SERVERS), help="Use this server alone.  [default: both in turn]")
@click.option("--results", type=click.Path(path_type=Path), default=Path("build/soak.jsonl"), show_default=True)
@click.option("--only", type=int, help="Run this seed again, and write no results.")
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="Histories at the same time.")
@click.option("--part", type=int, hidden=True, help="The number of this process among them.")
def main(
    histories: int,
    minutes: float,
    seed: int,
    server: str | None,
    results: Path,
    only: int | None,
    processes: int,
    part: int | None,
) -> None:
    """Run histories with faults and check them."""
    logging.basicConfig(level=logging.CRITICAL)
    if only is not None:
        servers = Servers()
        try:
            report = one(only, servers.for_seed(only, server or ""), servers)
        finally:
            servers.stop()
        click.echo(_line(report))
        raise SystemExit(1 if report.violation else 0)
    results.parent.mkdir(parents=True, exist_ok=True)
    seeds = range(seed, seed + histories) if histories else range(seed, 1 << 30)
    last = time.monotonic() + (minutes or (10.0 if not histories else 1e9)) * 60
    try:
        if processes > 1 and part is None:
            _run_parts(processes)
        else:
            _run((number for number in seeds if part is None or number // 2 % processes == part), last, server or "", results)
    except KeyboardInterrupt:
        click.echo("stopped; the same command goes on from here")
    if part is not None:
        return
    reports = [report for report in read(results) if report.seed in seeds]
    click.echo(summary(reports))
    if any(report.violation for report in reports):
        raise SystemExit(1)


def _run(seeds: Iterable[int], last: float, server: str, results: Path) -> None:
    """One history after the other until the moment `last`."""
    servers = Servers()
    done = {report.seed for report in read(results)}
    try:
        with results.open("ab") as file:
            for number in seeds:
                if number in done:
                    continue
                if time.monotonic() >= last:
                    break
                report = one(number, servers.for_seed(number, server), servers)
                file.write(msgspec.json.encode(report) + b"\n")
                file.flush()  # one write to the end of the file: lines of several processes do not mix
                click.echo(_line(report))
    finally:
        servers.stop()


def _run_parts(processes: int) -> None:
    """The same command in several processes, each with servers and seeds of its own."""
    command = [sys.executable, "-m", "tests.live.soak", *sys.argv[1:]]
    parts = [subprocess.Popen([*command, f"--part={number}"]) for number in range(processes)]
    try:
        for process in parts:
            process.wait()
    except KeyboardInterrupt:
        for process in parts:  # it was for them too, and they end their servers
            process.wait()
        raise


def _line(report: Report) -> str:
    what = f"{len(report.replicas)} replicas ({', '.join(report.replicas)}), {', '.join(report.faults)}"
    return f"seed {report.seed}, {report.server}: {what}: {report.violation or 'every rule held'} ({report.seconds:.1f} s)"


if __name__ == "__main__":
    main()
