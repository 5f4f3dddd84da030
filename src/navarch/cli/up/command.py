"""`navarch up`: an embedded cluster with a scheduler, a sample workload and a live view."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import click

from navarch.cli.cluster.metrics_names_option import metrics_names_option
from navarch.cli.cluster.scheduler_flags import SchedulerCommand
from navarch.cli.namespace_queues import namespace_as_queue_option
from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.policy.shard_option import shard_option
from navarch.live.ops.event_loop import run_in_event_loop

DIALECTS = ("volcano", "kai", "kube-batch", "coscheduling", "kubernetes")
EXAMPLES = """\b
Examples:
  navarch up                                   # a small GPU cluster and a workload that shows what scheduling does
  navarch up --nodes 100 --gpus 8 --no-sample  # an empty one
  navarch up --until-settled --speed 20        # run the sample, print a summary, stop
  navarch up --data-dir ./cluster              # the state survives a restart
"""
REST_WITHIN = 600.0
"""Seconds of the cluster's time without a change after which the sample is given up."""


class _Told(NamedTuple):
    """What is said about the sample before it starts."""

    lines: tuple[str, ...] = ()
    left_out: bool = False


@click.command(cls=SchedulerCommand, epilog=EXAMPLES)
@click.option("--nodes", type=click.IntRange(min=0), default=4, show_default=True, help="How many hollow nodes.")
@click.option("--gpus", type=click.IntRange(min=0), default=8, show_default=True, help="GPUs of each node.")
@click.option(
    "--node-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Nodes from a file instead: Node, NodeSet, or List.",
)
@click.option("--data-dir", type=click.Path(file_okay=False, path_type=Path), help="Keep the cluster's state here.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the API server; 0: any free one.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Where to write the kubeconfig.")
@click.option("--no-sample", is_flag=True, help="Start without the sample workload.")
@click.option("--speed", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Factor of the cluster's time.")
@click.option("--policy", metavar="FILE|PRESET", help="Policy of the scheduler.  [default: navarch]")
@shard_option("in the cluster of --data-dir, or in the file of --policy,")
@plugin_dirs_option
@namespace_as_queue_option
@metrics_names_option
@click.option("--web-port", type=click.IntRange(0, 65535), default=0, help="Port of the dashboard; 0: any free one.")
@click.option("--no-web", is_flag=True, help="Start without the dashboard.")
@click.option(
    "--dialect", type=click.Choice(DIALECTS), help="What `kubectl get podgroup|pg|queue` means.  [kai under its policy, else volcano]"
)
@click.option("--until-settled", is_flag=True, help="Stop when the sample has settled, with a summary.")
def up(no_sample: bool, no_web: bool, **given: Any) -> None:
    """Start an embedded cluster with a scheduler in it.

    One process runs a Kubernetes API server on loopback, hollow nodes (pods start and end there, but run nothing), controllers
    and the live scheduler. Use kubectl with the printed kubeconfig, and open the printed address of the dashboard in a browser.
    """
    if given["until_settled"] and no_sample:
        raise click.UsageError("--until-settled waits for the sample: it cannot go with --no-sample")
    if given["shard"] and given["policy"] is None and given["data_dir"] is None:
        raise click.UsageError("--shard: expected --data-dir with a cluster that has the SchedulingShard, or --policy with a file")
    given["policy"] = given["policy"] or (f"SchedulingShard/{given['shard']}" if given["shard"] else "navarch")
    from navarch.cli.policy.mistakes import MISTAKES, tell
    from navarch.cli.up.cluster import UpOptions
    from navarch.embedded.node_sets import NodeSetError
    from navarch.embedded.storage.sqlite_log import DataDirInUse, set_aside_if_broken
    from navarch.engine.policy import PolicyError
    from navarch.engine.registry import RegistrationError

    options = UpOptions(sample=not no_sample, web=not (no_web or given["until_settled"]), **given)
    if options.data_dir is not None and (said := set_aside_if_broken(options.data_dir / "store.db")):
        click.echo(said, err=True)
    try:
        code = run_in_event_loop(_main(options))
    except PolicyError as error:
        tell(error, options.policy, options.plugin_dirs)
        raise SystemExit(MISTAKES) from None
    except (NodeSetError, RegistrationError) as error:
        raise click.UsageError(str(error)) from None
    except DataDirInUse as error:
        raise click.ClickException(f"{error}; another `navarch up` runs with it: stop that one, or name another --data-dir") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise click.ClickException(f"port {options.port} of this machine is in use already; --port 0 takes any free one") from None
        raise click.ClickException(f"the cluster cannot start: {error}") from None
    raise SystemExit(code)


async def _main(options: Any) -> int:
    from navarch.cli.tables.text import output_console
    from navarch.cli.up.cluster import UpCluster
    from navarch.cli.up.event_log import EventLog, WarningHandler
    from navarch.cli.up.sample import Sample
    from navarch.cli.up.summary import summary
    from navarch.cli.up.view import View

    started = time.perf_counter()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    console = output_console()
    live = console.is_terminal and not options.until_settled
    _quiet_logs()
    async with UpCluster(options) as cluster:
        events = EventLog(cluster.server.store, cluster.hollow.timers, None if live else _line)
        handler = WarningHandler(events)
        logging.getLogger().addHandler(handler)
        events.start()
        sample = Sample(cluster, events)
        work: list[asyncio.Task[Any]] = []
        settled = False
        try:
            _line(cluster.export)
            nodes = cluster.server.store.count("nodes")
            size = "1 node" if nodes == 1 else f"{nodes} nodes"
            events.add(f"{cluster.server.url} with {size} is up after {time.perf_counter() - started:.1f} s")
            for warning in cluster.policy.warnings:
                events.add(f"policy: {warning}")
            assert cluster.scheduling is not None
            work.append(asyncio.create_task(stop.wait(), name="stop"))
            told = _sample_told(cluster, options)
            for line in told.lines:
                events.add(line)
            if told.left_out and options.until_settled:
                return 1
            if options.sample and not told.left_out:
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
    if live:
        _line("stopped")
    return 0


async def _serve(cluster: Any, events: Any) -> None:
    """The dashboard beside the cluster, until cancelled."""
    from navarch.cli.up.dashboard import DashboardProcess

    await cluster.published()
    process = DashboardProcess(await cluster.scheduler_port(), cluster.kubeconfig, cluster.options)
    try:
        cluster.dashboard = await process.start()
        events.add(f"dashboard: {cluster.dashboard}" if cluster.dashboard else "the dashboard did not start: is its port in use?")
        await asyncio.Event().wait()
    finally:
        await process.stop()


async def _name_metrics(cluster: Any, events: Any) -> None:
    """Say where the metrics are, once they are served; then wait until cancelled."""
    events.add(f"metrics: http://127.0.0.1:{await cluster.scheduler_port()}/metrics")
    await asyncio.Event().wait()


def _sample_told(cluster: Any, options: Any) -> _Told:
    from navarch.cli.up.sample_fit import evicts, how_long, misfit

    if not options.sample:
        return _Told()
    reason = misfit(cluster.policy, cluster.server.store.count("nodes"), cluster.size())
    if reason:
        return _Told((f"the sample is left out: {reason}",), left_out=True)
    lines = [how_long(options.speed)]
    if not evicts(cluster.policy):
        lines.append("this policy evicts nothing: where the sample takes something back, jobs wait until pods have ended")
    return _Told(tuple(lines))


async def _play(sample: Any, options: Any) -> bool:
    """Returns whether the sample settled. Without --until-settled it runs until the command ends."""
    await sample.play()
    settled: bool = await sample.settled(REST_WITHIN)
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
