"""`navarch simulate`: a trace of jobs through the scheduler in virtual time, as a table for people or as JSON for programs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress as ProgressBar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from navarch.cli.cycle_timeout import limits_cycles
from navarch.cli.plan import moment
from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.policy.mistakes import MISTAKES, tell
from navarch.cli.tables.simulation import show
from navarch.cli.tables.text import output_console
from navarch.engine.arguments import WrongKind
from navarch.engine.arguments import duration as read_duration
from navarch.engine.policy import PRESETS, PolicyError
from navarch.engine.registry import RegistrationError
from navarch.simulator.clusters import ClusterError
from navarch.simulator.estimates import KINDS as ESTIMATES
from navarch.simulator.failures import NodeFailures
from navarch.simulator.report.write import write_report
from navarch.simulator.simulate import PolicyRun, Progress, RunOptions, SimulationResult, comparison, policy_names
from navarch.simulator.simulate import simulate as run_simulation
from navarch.simulator.sweep.executors import Failure, execute
from navarch.simulator.sweep.parameters import SweepError, combinations
from navarch.simulator.sweep.results import Results
from navarch.simulator.sweep.runs import RunSpec, check
from navarch.simulator.traces import TraceError, Window

FAILED = 1
"""The exit code where a run failed or the report could not be written."""
POLICIES = ", ".join(PRESETS)
EXAMPLES = """\b
Examples:
  navarch simulate --trace jsonl:examples/traces/two-teams.jsonl --cluster h100=4x8gpu --policy fifo --policy easy --report out
  navarch simulate --trace philly:philly.csv --from 2017-10-01 --to 2017-11-30T23:59:00 --cluster philly/3 --policy fifo --policy sjf
  navarch simulate --trace recording:recordings/ --cluster recording:recordings/ --policy new.yaml
"""


def _seeds(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...]:
    """
    >>> _seeds(None, None, "42-44,7")
    (42, 43, 44, 7)
    """
    found: list[int] = []
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise click.BadParameter(f"found {part!r}, expected a whole number or a range such as 42-51", context, parameter)
        found += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(found))


def _span(text: str) -> float:
    """Seconds, or a duration such as 1h30m or 30d."""
    number = text.removesuffix("d")
    try:
        if number.replace(".", "", 1).isdecimal():
            seconds = float(number) * (1 if number == text else 86400)
        else:
            seconds = read_duration(text)
    except WrongKind:
        seconds = 0.0
    if seconds <= 0:
        raise click.BadParameter(f"{text!r}: expected a duration such as 30m or seconds, above 0")
    return seconds


def _failures(context: click.Context, parameter: click.Parameter, text: str | None) -> NodeFailures | None:
    if text is None:
        return None
    between, slash, repair = text.partition("/")
    return NodeFailures(_span(between), _span(repair) if slash else 3600.0)


@click.command(epilog=EXAMPLES)
@click.option("--trace", required=True, metavar="KIND:FILE", help="The jobs: jsonl, openb, philly, recording or swf.")
@click.option("--cluster", required=True, metavar="SPEC", help="Manifests, KIND:FILE, philly/D or kind=COUNTxRESOURCES.")
@click.option("--policy", "policies", multiple=True, metavar="FILE|PRESET", help=f"One of {POLICIES}, or a file; may repeat.")
@click.option("--from", "start", type=moment, metavar="TIME", help="Jobs submitted from then on.")
@click.option("--to", "end", type=moment, metavar="TIME", help="Jobs submitted until then.")
@click.option(
    "--arrivals",
    type=click.FloatRange(min=0, min_open=True),
    metavar="RATIO",
    help="Jobs come in random order and stay, until they ask for RATIO times the cluster's GPUs.",
)
@click.option("--seeds", callback=_seeds, metavar="A-B|A,B", help="One run a seed; figures are means.")
@click.option("--checkpoint", type=_span, metavar="DURATION", help="Work between checkpoints of evicted jobs.  [they start over]")
@click.option("--estimates", type=click.Choice(ESTIMATES), default="walltime", show_default=True, help="Expected durations.")
@click.option("--node-failures", "failures", callback=_failures, metavar="BETWEEN[/REPAIR]", help="Mean times, such as 30d/4h.")
@click.option("--sweep", "sweeps", multiple=True, metavar="PLUGIN.ARGUMENT=V,V", help="Values of an argument; may repeat.")
@click.option("--processes", type=click.IntRange(min=1), default=1, show_default=True, help="Runs at a time on this machine.")
@click.option("--executor", default="", metavar="dask://HOST:PORT", help="Run on a Dask cluster.")
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON Lines or .parquet, one run a row; what is in it is not run again.",
)
@click.option(
    "--report", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write index.html, report.json and CSV."
)
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True)
@plugin_dirs_option
@limits_cycles
def simulate(
    trace: str,
    cluster: str,
    policies: tuple[str, ...],
    start: float | None,
    end: float | None,
    arrivals: float | None,
    seeds: tuple[int, ...],
    checkpoint: float | None,
    estimates: str,
    failures: NodeFailures | None,
    sweeps: tuple[str, ...],
    processes: int,
    executor: str,
    results: Path | None,
    report: Path | None,
    output: str,
    plugin_dirs: tuple[Path, ...],
) -> None:
    """Play a trace of jobs in virtual time, with the code that schedules real clusters, and compare policies.

    Exits with 2 and lists every mistake if the trace, the cluster or a policy cannot be used. Exits with 1 if a run of a sweep
    failed or the report could not be written.
    """
    if start is not None and end is not None and start > end:
        raise click.UsageError(f"--from {_date(start)} UTC is after --to {_date(end)} UTC, so no job lies between them")
    window = Window(**_limits(start, end))
    options = RunOptions(checkpoint, estimates, failures, arrivals)
    chosen = tuple(dict.fromkeys(policies)) or ("navarch",)
    started = perf_counter()
    failed = False
    try:
        if report is not None:
            _make_folder(report)
        if sweeps or results is not None or executor or processes > 1:
            specs = [
                RunSpec(trace, cluster, policy, parameters, seed, window, options, tuple(map(str, plugin_dirs)), name)
                for name, policy in zip(policy_names(chosen), chosen)
                for parameters in combinations(sweeps)
                for seed in seeds or (None,)
            ]
            check(specs)
            runs, figures, failed = _many(specs, executor, processes, results, keep=report is not None)
            result = SimulationResult(runs, perf_counter() - started)
        else:
            with _progress() as progress:
                result = run_simulation(
                    trace,
                    cluster,
                    chosen,
                    window=window,
                    checkpoint=checkpoint,
                    estimates=estimates,
                    failures=failures,
                    arrivals=arrivals,
                    seeds=seeds,
                    plugin_dirs=plugin_dirs,
                    progress=progress,
                )
            figures = result.to_dict()["policies"]
    except (TraceError, ClusterError, SweepError) as error:
        click.echo(str(error), err=True)
        raise SystemExit(MISTAKES) from None
    except PolicyError as error:
        tell(error, error.source, plugin_dirs)
        raise SystemExit(MISTAKES) from None
    except RegistrationError as error:
        raise click.UsageError(str(error)) from None
    for remark in result.remarks() if result.runs else comparison(figures):
        click.echo(remark, err=True)
    if report is not None and result.runs:
        try:
            write_report(result, report, f"{trace} on {cluster}", conditions(window, options))
            click.echo(f"report: {report / 'index.html'}", err=True)
        except OSError as error:  # the figures took long: show them all the same
            click.echo(f"report {report}: not written: {error}", err=True)
            failed = True
    if output == "json":
        click.echo(json.dumps({"policies": figures, "seconds": result.seconds}, indent=2, sort_keys=True))
    elif figures:
        show(output_console(), figures)
    if failed:
        raise SystemExit(FAILED)


def conditions(window: Window, options: RunOptions) -> list[str]:
    """What else decides the figures, in words for the report."""
    limits = [(word, limit) for word, limit in (("from", window.start), ("until", window.end)) if math.isfinite(limit)]
    said = [f"jobs submitted {' '.join(f'{word} {_date(limit)} UTC' for word, limit in limits)}"] if limits else []
    if options.arrivals is not None:
        said.append(f"jobs come in random order and stay, up to {100 * options.arrivals:g} % of the GPUs")
    if options.checkpoint is not None:
        said.append(f"a checkpoint after {options.checkpoint:g} s of work")
    if options.failures is not None:
        said.append(f"a node fails every {options.failures.between / 3600:g} h and is back after {options.failures.repair / 3600:g} h")
    if options.estimates != RunOptions().estimates:
        said.append(f"expected durations by {options.estimates}")
    return said


def _date(moment: float) -> str:
    """
    >>> _date(0), _date(1e300)
    ('1970-01-01 00:00', '1e+300 s')
    """
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):  # no year of the calendar
        return f"{moment:g} s"


def _make_folder(report: Path) -> None:
    """Before the runs, which take long, rather than after them."""
    try:
        report.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SweepError(f"report {report}: expected a folder that can be made, but: {error.strerror or error}") from None
    if not os.access(report, os.W_OK):
        raise SweepError(f"report {report}: found a folder that is read-only, expected one that can be written")


def _many(
    specs: list[RunSpec], executor: str, processes: int, path: Path | None, *, keep: bool
) -> tuple[list[PolicyRun], dict[str, Any], bool]:
    """Carry out the runs that are not on file. `keep`: all of them, because a report needs more than the file has. Runs, figures, and
    whether a run failed."""
    known = Results(path)
    todo = [spec for spec in specs if keep or not known.has(spec)]
    if len(todo) < len(specs):
        click.echo(f"{len(specs) - len(todo)} of {len(specs)} runs are in {path} already", err=True)
    done: dict[str, PolicyRun] = {}
    failed = False
    seconds = click.get_current_context().params["cycle_timeout"]
    for number, (spec, run) in enumerate(execute(todo, executor, processes, seconds), start=1):
        which = f"{number}/{len(todo)} {spec.label}{'' if spec.seed is None else f' seed {spec.seed}'}"
        if isinstance(run, Failure):
            click.echo(f"{which}: failed: {run.message}", err=True)
            failed = True
            continue
        known.add(spec, run)
        if keep:
            done[spec.key] = run
        for remark in () if keep else run.remarks():
            click.echo(f"{spec.label}: {remark}", err=True)
        click.echo(f"{which}: {run.seconds:.1f} s", err=True)
    return [done[spec.key] for spec in specs if spec.key in done], known.policies(specs), failed


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A line with the simulated date and the speed, on a terminal; nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with ProgressBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading")
        started: dict[str, tuple[float, float]] = {}

        def progress(name: str, time: float, done: int) -> None:
            began, first = started.setdefault(name, (perf_counter(), time))
            speed = (time - first) / max(perf_counter() - began, 1e-9) / 86400
            bar.update(task, description=f"{name}  {_date(time)}  {done:,} jobs done  {speed:,.1f} days a second")

        yield progress


def _limits(start: float | None, end: float | None) -> dict[str, float]:
    return {name: limit for name, limit in (("start", start), ("end", end)) if limit is not None}
