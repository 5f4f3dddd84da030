"""Runs the cluster of `navarch up` until the command is stopped or the sample has settled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
import time
from typing import Any, NamedTuple

import click

from navarch.cli.cluster.embedded_kubeconfig import USUAL_KUBECONFIG
from navarch.cli.tables.text import output_console
from navarch.cli.up.cluster import UpCluster, UpOptions
from navarch.cli.up.dashboard import DashboardProcess
from navarch.cli.up.event_log import EventLog, WarningHandler
from navarch.cli.up.farewell import farewell
from navarch.cli.up.sample import Sample
from navarch.cli.up.sample_fit import evicts, how_long, misfit
from navarch.cli.up.summary import summary
from navarch.cli.up.view import View
from navarch.kube.listener import raise_descriptor_limit
from navarch.live.ops.log_lines import CollapsingHandler

REST_WITHIN = 600.0
"""Seconds of the cluster's time without a change after which the sample is given up."""


class _Announcement(NamedTuple):
    """What is said about the sample before it starts."""

    lines: tuple[str, ...] = ()
    left_out: bool = False


async def run_cluster(options: UpOptions) -> int:
    """Returns the exit code of the command."""
    started = time.perf_counter()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    console = output_console()
    live = console.is_terminal and not options.until_settled
    _quiet_logs()
    raise_descriptor_limit()
    async with UpCluster(options) as cluster:
        events = EventLog(cluster.server.store, cluster.hollow.timers, None if live else _line)
        handler = CollapsingHandler(WarningHandler(events))
        logging.getLogger().addHandler(handler)
        events.start()
        sample = Sample(cluster, events)
        work: list[asyncio.Task[Any]] = []
        settled = False
        try:
            _line(cluster.export)
            if cluster.is_second:
                events.add(f"another `navarch up` runs with {USUAL_KUBECONFIG}: this one has a kubeconfig of its own")
            nodes = cluster.server.store.count("nodes")
            size = "1 node" if nodes == 1 else f"{nodes} nodes"
            events.add(f"{cluster.server.url} with {size} is up after {time.perf_counter() - started:.1f} s")
            for warning in cluster.policy.warnings:
                events.add(f"policy: {warning}")
            assert cluster.scheduling is not None
            work.append(asyncio.create_task(stop.wait(), name="stop"))
            announced = _announced(cluster, options)
            for line in announced.lines:
                events.add(line)
            if announced.left_out and options.until_settled:
                return 1
            if options.sample and not announced.left_out:
                work.append(asyncio.create_task(_play(sample, options), name="sample"))
            if options.web:
                work.append(asyncio.create_task(_serve(cluster, events), name="dashboard"))
            if options.metrics_names:
                work.append(asyncio.create_task(_name_metrics(cluster, events), name="metrics"))
            if live:
                work.append(asyncio.create_task(View(cluster, events, console).run(), name="view"))
            settled = await _until_over([cluster.scheduling, *work])
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            events.stop()
            logging.getLogger().removeHandler(handler)
        if options.until_settled and not stop.is_set():
            ran = summary(cluster, events, console, settled, time.perf_counter() - started)
            return 0 if settled and ran else 1
    for line in farewell(options, cluster.kubeconfig):
        _line(line)
    return 0


async def _serve(cluster: UpCluster, events: EventLog) -> None:
    """The dashboard beside the cluster, until cancelled."""
    await cluster.published()
    process = DashboardProcess(await cluster.scheduler_port(), cluster.kubeconfig, cluster.options)
    try:
        cluster.dashboard = await process.start()
        events.add(f"dashboard: {cluster.dashboard}" if cluster.dashboard else "the dashboard did not start: is its port in use?")
        await asyncio.Event().wait()
    finally:
        await process.stop()


async def _name_metrics(cluster: UpCluster, events: EventLog) -> None:
    """Say where the metrics are, once they are served; then wait until cancelled."""
    events.add(f"metrics: http://127.0.0.1:{await cluster.scheduler_port()}/metrics")
    await asyncio.Event().wait()


def _announced(cluster: UpCluster, options: UpOptions) -> _Announcement:
    if not options.sample:
        return _Announcement()
    reason = misfit(cluster.policy, cluster.server.store.count("nodes"), cluster.size())
    if reason:
        return _Announcement((f"the sample is left out: {reason}",), left_out=True)
    lines = [how_long(options.speed)]
    if not evicts(cluster.policy):
        lines.append("this policy evicts nothing: where the sample takes something back, jobs wait until pods have ended")
    return _Announcement(tuple(lines))


async def _play(sample: Sample, options: UpOptions) -> bool:
    """Returns whether the sample settled. Without --until-settled it runs until the command ends."""
    await sample.play()
    settled = await sample.settled(REST_WITHIN)
    if not options.until_settled:
        await asyncio.Event().wait()
    return settled


async def _until_over(tasks: list[asyncio.Task[Any]]) -> bool:
    """Wait for the first of these tasks to end; raises its error."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    settled = False
    for task in done:
        found = task.result()
        settled = settled or (task.get_name() == "sample" and bool(found))
    return settled


def _line(text: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        click.echo(text)
        sys.stdout.flush()


def _quiet_logs() -> None:
    """Keep log lines off the terminal."""
    root = logging.getLogger()
    root.handlers[:] = [logging.NullHandler()]
    root.setLevel(logging.WARNING)
