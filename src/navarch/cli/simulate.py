"""`navarch simulate`: a trace of jobs through the scheduler in virtual time, as a table for people or as JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from navarch.cli.plan import moment
from navarch.cli.plugin_dirs import plugin_dirs_option
from navarch.cli.policy.mistakes import MISTAKES, tell
from navarch.engine.policy import PRESETS, PolicyError
from navarch.engine.registry import RegistrationError
from navarch.simulator.clusters import ClusterError
from navarch.simulator.simulate import SimulationResult
from navarch.simulator.simulate import simulate as run_simulation
from navarch.simulator.traces import TraceError, Window

POLICIES = ", ".join(PRESETS)
EXAMPLES = """\b
Examples:
  navarch simulate --trace philly:philly.csv --from 2017-10-01 --to 2017-11-30T23:59:00 --cluster philly/3 --policy fifo --policy sjf
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
    return tuple(found)


@click.command(epilog=EXAMPLES)
@click.option("--trace", required=True, metavar="KIND:FILE", help="The jobs.")
@click.option("--cluster", required=True, metavar="SPEC", help="Manifests, KIND:FILE, philly/D or kind=COUNTxRESOURCES.")
@click.option(
    "--policy", "policies", multiple=True, metavar="FILE|PRESET", help=f"One of {', '.join(PRESETS)}, or a file; may repeat."
)
@click.option("--from", "start", type=moment, metavar="TIME", help="Jobs submitted from then on.")
@click.option("--to", "end", type=moment, metavar="TIME", help="Jobs submitted until then.")
@click.option(
    "--arrivals",
    type=click.FloatRange(min=0, min_open=True),
    metavar="RATIO",
    help="Jobs come in random order and stay, until they ask for RATIO times the cluster's GPUs.",
)
@click.option("--seeds", callback=_seeds, metavar="A-B|A,B", help="One run a seed; figures are means.")
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table", show_default=True)
@plugin_dirs_option
def simulate(
    trace: str,
    cluster: str,
    policies: tuple[str, ...],
    start: float | None,
    end: float | None,
    arrivals: float | None,
    seeds: tuple[int, ...],
    output: str,
    plugin_dirs: tuple[Path, ...],
) -> None:
    """Play a trace of jobs in virtual time, with the code that schedules real clusters, and compare policies.

    Exits with 2 and lists every mistake if the trace, the cluster or a policy cannot be used.
    """
    window = Window(**_limits(start, end))
    try:
        result = run_simulation(
            trace, cluster, policies or ("navarch",), window=window, arrivals=arrivals, seeds=seeds, plugin_dirs=plugin_dirs
        )
    except (TraceError, ClusterError) as error:
        click.echo(str(error), err=True)
        raise SystemExit(MISTAKES) from None
    except PolicyError as error:
        tell(error, error.source, plugin_dirs)
        raise SystemExit(MISTAKES) from None
    except RegistrationError as error:
        raise click.UsageError(str(error)) from None
    _remark(result)
    click.echo(json.dumps(result.to_dict(), indent=2, sort_keys=True))


def _limits(start: float | None, end: float | None) -> dict[str, float]:
    return {name: limit for name, limit in (("start", start), ("end", end)) if limit is not None}


def _remark(result: SimulationResult) -> None:
    """What was left out or never started goes to standard error."""
    for run in result.runs:
        for reason, count in sorted(run.left_out.items()):
            click.echo(f"{run.name}: left out {count} jobs: {reason}", err=True)
        if run.waiting:
            shown = ", ".join(run.waiting[:5]) + (" ..." if len(run.waiting) > 5 else "")
            click.echo(f"{run.name}: {len(run.waiting)} jobs never started: {shown}", err=True)
        for warning in run.warnings:
            click.echo(f"{run.name}: warning: {warning}", err=True)
